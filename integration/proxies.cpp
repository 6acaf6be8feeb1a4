// SPDX-License-Identifier: Zlib
#include "proxies.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Whether min may have been greater than max before both were rounded outward, each by at most one
/// ulp. Requires min <= max. True if in doubt, and for infinite values.
bool mayMiss(float min, float max) {
  constexpr float kStep = std::numeric_limits<float>::epsilon();
  const float far = std::fabs(min) + std::fabs(max) + std::numeric_limits<float>::min();
  return !(max - min > kStep * far);
}

/// Whether the filter of any of kCount proxies differs from the known one.
template <std::size_t kCount>
bool differ(const GpuLbvhProxy* proxies, const lbvh::Filter* known) {
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const lbvh::Filter now = filterOf(proxies + i);
    std::uint64_t bits, knownBits;
    std::memcpy(&bits, &now, sizeof bits);
    std::memcpy(&knownBits, known + i, sizeof bits);
    difference |= bits ^ knownBits;
  }
  return difference != 0;
}

}  // namespace

const lbvh::Aabb GpuLbvhProxies::kNanBox{{kNaN, kNaN, kNaN}, {kNaN, kNaN, kNaN}};

bool GpuLbvhProxies::isUndecided(lbvh::Pair pair) const {
  if (!m_planes.empty() && (at(pair.first)->m_isPlane || at(pair.second)->m_isPlane)) return true;
  if (!kRoundsBoxes || m_margin > 0) return false;
  const lbvh::Aabb &a = m_boxes[pair.first], &b = m_boxes[pair.second];
  bool isClose = false;
  for (int axis = 0; axis < 3; ++axis)
    isClose = isClose || mayMiss(a.min[axis], b.max[axis]) || mayMiss(b.min[axis], a.max[axis]);
  return isClose;
}

bool GpuLbvhProxies::overlap(const GpuLbvhProxy* a, const GpuLbvhProxy* b) const {
  if (a->m_isPlane && isAbovePlane(b, a)) return false;
  if (b->m_isPlane && isAbovePlane(a, b)) return false;
  if (m_margin > 0) return lbvh::overlap(m_boxes[a->m_slot], m_boxes[b->m_slot]);
  return lbvh::overlap(GpuLbvhBox(a), GpuLbvhBox(b));
}

/// Whether the proxy's box is above the plane. False if the lowest corner has a NaN, or is
/// infinitely far below.
bool GpuLbvhProxies::isAbovePlane(const GpuLbvhProxy* proxy, const GpuLbvhProxy* plane) const {
  const auto it = std::find_if(m_planes.begin(), m_planes.end(),
                               [&](const Plane& one) { return one.proxy == plane; });
  const lbvh::Aabb& fat = m_boxes[proxy->m_slot];
  double lowest = -double(it->constant);
  for (int axis = 0; axis < 3; ++axis) {
    const double n = it->normal[axis];
    const double lo = m_margin > 0 ? double(fat.min[axis]) : double(proxy->m_aabbMin[axis]);
    const double hi = m_margin > 0 ? double(fat.max[axis]) : double(proxy->m_aabbMax[axis]);
    if (n != 0) lowest += n * (n > 0 ? lo : hi);
  }
  return lowest > 0;
}

void GpuLbvhProxies::setPlane(GpuLbvhProxy* proxy, const btVector3& normal, btScalar constant) {
  m_planes.reserve(m_planes.size() + 1);
  clearPlane(proxy);
  m_planes.push_back({proxy, normal, constant});
  proxy->m_isPlane = true;
  m_changed.add(proxy->m_slot);
}

void GpuLbvhProxies::clearPlane(GpuLbvhProxy* proxy) {
  if (!proxy->m_isPlane) return;
  proxy->m_isPlane = false;
  m_planes.erase(std::find_if(m_planes.begin(), m_planes.end(),
                              [&](const Plane& one) { return one.proxy == proxy; }));
  m_changed.add(proxy->m_slot);
}

void GpuLbvhProxies::addBlocks(std::size_t count) {
  const std::size_t all = m_blocks.size() + count;
  if (all > m_blocks.capacity()) m_blocks.reserve(2 * all + 8);
  if (all > m_byAddress.capacity()) m_byAddress.reserve(2 * all + 8);
  if (m_groups.size() == m_groups.capacity()) m_groups.reserve(2 * m_groups.size() + 8);
  m_groups.emplace_back(count);
  for (std::size_t i = 0; i < count; ++i) {
    GpuLbvhProxyBlock* block = &m_groups.back()[i];
    block->firstSlot = static_cast<std::uint32_t>(m_blocks.size()) * GpuLbvhProxyBlock::kProxies;
    m_blocks.push_back(block);
    m_byAddress.insert(
        std::upper_bound(m_byAddress.begin(), m_byAddress.end(), block, std::less<>()), block);
  }
}

bool GpuLbvhProxies::owns(const btBroadphaseProxy* proxy) const {
  const std::less<const void*> isBefore;  // unlike <, a total order of pointers
  const auto after = std::upper_bound(m_byAddress.begin(), m_byAddress.end(), proxy, isBefore);
  return after != m_byAddress.begin() && isBefore(proxy, after[-1] + 1);
}

/// Adds a slot at the end.
std::uint32_t GpuLbvhProxies::addSlot() {
  const auto slot = static_cast<std::uint32_t>(m_boxes.size());
  // Adds several blocks at once, because an allocation aligned to a block's size leaves a gap.
  if (slot == m_blocks.size() * GpuLbvhProxyBlock::kProxies) addBlocks(1 + m_blocks.size() / 16);
  reserveBoxes(slot + 1);
  if (slot % lbvh::kMaskBits == 0) resizeSets(slot + lbvh::kMaskBits);
  m_boxes.push_back(kNanBox);
  m_filters.emplace_back();
  (new (at(slot)) GpuLbvhProxy)->m_slot = slot;
  return slot;
}

GpuLbvhProxy* GpuLbvhProxies::create(const btVector3& aabbMin, const btVector3& aabbMax,
                                     void* client, int group, int mask) {
  const std::uint32_t slot =
      m_count < m_boxes.size() ? static_cast<std::uint32_t>(m_free.takeLowest()) : addSlot();
  GpuLbvhProxy* proxy = at(slot);
  ++m_count;
  proxy->m_clientObject = client;
  proxy->m_collisionFilterGroup = group;
  proxy->m_collisionFilterMask = mask;
  proxy->m_uniqueId = m_nextId != 0 ? m_nextId : m_largestId + 1;
  proxy->m_serial = ++m_lastSerial;
  m_nextId = 0;
  m_largestId = std::max(m_largestId, proxy->m_uniqueId);
  proxy->m_aabbMin = aabbMin;
  proxy->m_aabbMax = aabbMax;
  m_boxes[slot] = fattened(aabbMin, aabbMax);
  m_filters[slot] = filterOf(proxy);
  m_changed.add(slot);
  return proxy;
}

bool GpuLbvhProxies::setNextId(int id) {
  constexpr int kLargest = 1 << 30;  // leaves 2^30 - 1 larger ids for later proxies
  m_nextId = 0;
  if (id < 1 || id > kLargest) return id == 0;
  for (std::uint32_t slot = 0; id <= m_largestId && slot < m_boxes.size(); ++slot)
    if (at(slot)->m_uniqueId == id) return false;
  m_nextId = id;
  return true;
}

// Grows by a sixteenth. With doubling, a quarter of all memory for objects could be unused.
void GpuLbvhProxies::reserveBoxes(std::size_t all) {
  if (all > m_boxes.capacity())
    m_boxes.reserve(all + m_boxes.size() / 16 + GpuLbvhProxyBlock::kProxies);
  m_filters.reserve(m_boxes.capacity());
  for (lbvh::SparseBits* set : {&m_changed, &m_moved, &m_toAsk, &m_free})
    set->reserve(m_boxes.capacity() + lbvh::kMaskBits);
}

void GpuLbvhProxies::resizeSets(std::size_t slots) {
  for (lbvh::SparseBits* set : {&m_changed, &m_moved, &m_toAsk, &m_free}) set->resize(slots);
}

void GpuLbvhProxies::reserve(std::size_t more) {
  const std::size_t all = m_count + more;
  reserveBoxes(all);
  const std::size_t blocks = all / GpuLbvhProxyBlock::kProxies + 1;
  if (blocks > m_blocks.size()) addBlocks(blocks - m_blocks.size());
}

lbvh::View<const lbvh::Filter> GpuLbvhProxies::readFilters(Read read) {
  const std::size_t n = m_boxes.size();
  if (read == Read::all || (read == Read::inTurn && n <= kSmallWorld)) {
    readFilters(0, n);
  } else if (read == Read::inTurn) {
    m_changed.forEach([this](std::uint32_t slot) { readFilterInStep(*at(slot)); });
    const std::size_t first = m_nextFilter < n ? m_nextFilter : 0;
    m_nextFilter = std::min(first + kInTurn, n);
    readFilters(first, m_nextFilter);
  }
  return {m_filters.data(), n};
}

/// Reads the filters of some slots. Usually none has changed, so several are compared at once.
void GpuLbvhProxies::readFilters(std::size_t begin, std::size_t end) {
  constexpr std::size_t kTogether = 8;
  constexpr std::size_t kProxies = GpuLbvhProxyBlock::kProxies;
  while (begin < end) {
    const GpuLbvhProxy* proxy = at(static_cast<std::uint32_t>(begin));
    const std::size_t last = std::min(end, (begin / kProxies + 1) * kProxies);  // within the block
    for (; begin + kTogether <= last; begin += kTogether, proxy += kTogether)
      if (differ<kTogether>(proxy, &m_filters[begin]))
        for (std::size_t i = 0; i < kTogether; ++i) readFilterInStep(proxy[i]);
    for (; begin < last; ++begin) readFilterInStep(*proxy++);
  }
}

void GpuLbvhProxies::destroy(GpuLbvhProxy* proxy) {
  clearPlane(proxy);
  m_boxes[proxy->m_slot] = kNanBox;
  m_free.add(proxy->m_slot);
  --m_count;
  m_changed.add(proxy->m_slot);
  proxy->m_uniqueId = 0;
  proxy->m_serial = 0;
  proxy->m_hasNoPairs = false;
  m_anyDestroyed = true;
  proxy->m_clientObject = nullptr;
}

void GpuLbvhProxies::giveBackSlots() {
  std::size_t slots = m_boxes.size();
  while (slots > 0 && m_free.contains(slots - 1)) --slots;
  if (slots == m_boxes.size()) return;
  m_boxes.resize(slots);
  m_filters.resize(slots);
  resizeSets(slots);
}

// Keeps about as many spare blocks as are in use. Otherwise a game would free and allocate memory
// with each level that it loads.
void GpuLbvhProxies::giveBackMemory() {
  const std::size_t kept = 2 * (m_boxes.size() / GpuLbvhProxyBlock::kProxies) + 16;
  if (m_blocks.size() <= 2 * kept) return;
  while (m_blocks.size() - m_groups.back().count() >= kept) {
    const GpuLbvhProxyBlocks& gone = m_groups.back();
    for (std::size_t i = 0; i < gone.count(); ++i)
      m_byAddress.erase(
          std::lower_bound(m_byAddress.begin(), m_byAddress.end(), &gone[i], std::less<>()));
    m_blocks.resize(m_blocks.size() - gone.count());
    m_groups.pop_back();
  }
  m_boxes.shrink_to_fit();
  m_filters.shrink_to_fit();
}

void GpuLbvhProxies::reset() {
  if (count() != 0) return;
  giveBackSlots();
  m_largestId = m_nextId = 0;
}

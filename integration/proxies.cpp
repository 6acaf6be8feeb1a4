#include "proxies.h"

#include <cmath>
#include <limits>

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
// Outward, so that with double-precision Bullet no overlap is lost; exact with float.
float roundDown(btScalar x) {
  const auto f = static_cast<float>(x);
  return f > x ? std::nextafter(f, -std::numeric_limits<float>::infinity()) : f;
}
float roundUp(btScalar x) {
  const auto f = static_cast<float>(x);
  return f < x ? std::nextafter(f, std::numeric_limits<float>::infinity()) : f;
}

bool sameValue(const btVector3& a, const btVector3& b) {
  return a.x() == b.x() && a.y() == b.y() && a.z() == b.z();
}

}  // namespace

const lbvh::Aabb GpuLbvhProxies::kNoBox{{kNaN, kNaN, kNaN}, {kNaN, kNaN, kNaN}};

bool GpuLbvhProxies::overlap(const GpuLbvhProxy* a, const GpuLbvhProxy* b) const {
  return lbvh::overlap(m_boxes[a->m_slot], m_boxes[b->m_slot]);
}

lbvh::Aabb GpuLbvhProxies::toAabb(const btVector3& lo, const btVector3& hi) {
  return {{roundDown(lo.x()), roundDown(lo.y()), roundDown(lo.z())},
          {roundUp(hi.x()), roundUp(hi.y()), roundUp(hi.z())}};
}

void GpuLbvhProxies::addSlot() {
  const auto slot = static_cast<std::uint32_t>(m_boxes.size());
  if (slot == m_blocks.size() * kBlock)
    m_blocks.push_back(std::make_unique<GpuLbvhProxy[]>(kBlock));
  // Growth by a sixteenth: doubling would hold a quarter of an object's bytes in reserve.
  if (slot == m_boxes.capacity()) m_boxes.reserve(slot + slot / 16 + kBlock);
  m_boxes.push_back(kNoBox);
  at(slot)->m_slot = slot;
  at(slot)->m_nextFree = kNoSlot;
  m_firstFree = slot;
}

GpuLbvhProxy* GpuLbvhProxies::create(const btVector3& aabbMin, const btVector3& aabbMax,
                                     void* client, int group, int mask) {
  if (m_firstFree == kNoSlot) addSlot();
  const std::uint32_t slot = m_firstFree;
  GpuLbvhProxy* proxy = at(slot);
  m_firstFree = proxy->m_nextFree;
  ++m_count;
  proxy->m_clientObject = client;
  proxy->m_collisionFilterGroup = group;
  proxy->m_collisionFilterMask = mask;
  proxy->m_uniqueId = ++m_lastId;
  proxy->m_isAlive = true;
  proxy->m_aabbMin = aabbMin;
  proxy->m_aabbMax = aabbMax;
  m_boxes[slot] = toAabb(aabbMin, aabbMax);
  touch();
  return proxy;
}

void GpuLbvhProxies::destroy(GpuLbvhProxy* proxy) {
  m_boxes[proxy->m_slot] = kNoBox;
  proxy->m_nextFree = m_firstFree;
  m_firstFree = proxy->m_slot;
  --m_count;
  touch();
  proxy->m_isAlive = false;
  proxy->m_clientObject = nullptr;
}

bool GpuLbvhProxies::setAabb(GpuLbvhProxy* proxy, const btVector3& aabbMin,
                             const btVector3& aabbMax) {
  if (sameValue(proxy->m_aabbMin, aabbMin) && sameValue(proxy->m_aabbMax, aabbMax)) return false;
  proxy->m_aabbMin = aabbMin;
  proxy->m_aabbMax = aabbMax;
  m_boxes[proxy->m_slot] = toAabb(aabbMin, aabbMax);
  touch();
  return true;
}

void GpuLbvhProxies::reset() {
  if (count() != 0) return;
  m_boxes.clear();
  m_firstFree = kNoSlot;
  m_lastId = 0;
}

lbvh::View<const lbvh::Filter> GpuLbvhProxies::readFilters() {
  m_filters.reserve(m_boxes.capacity());
  m_filters.resize(m_boxes.size());
  for (std::uint32_t slot = 0; slot < m_filters.size(); ++slot) {
    const GpuLbvhProxy* proxy = at(slot);
    const lbvh::Filter now{proxy->m_collisionFilterGroup, proxy->m_collisionFilterMask};
    if (m_filters[slot].group != now.group || m_filters[slot].mask != now.mask) touch();
    m_filters[slot] = now;
  }
  return {m_filters.data(), m_filters.size()};
}

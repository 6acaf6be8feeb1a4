// SPDX-License-Identifier: Zlib
#include "ghosts.h"

#include <BulletCollision/CollisionDispatch/btCollisionObject.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr lbvh::Aabb kEverything{{-kInfinity, -kInfinity, -kInfinity},
                                 {kInfinity, kInfinity, kInfinity}};

/// The box around both, of which one may be NaN.
lbvh::Aabb boundsOf(const lbvh::Aabb& a, const lbvh::Aabb& b) {
  lbvh::Aabb both{};
  for (int axis = 0; axis < 3; ++axis) {
    both.min[axis] = std::fmin(a.min[axis], b.min[axis]);
    both.max[axis] = std::fmax(a.max[axis], b.max[axis]);
  }
  return both;
}

/// Calls visit(i) for each of `boxes` that overlaps `one`.
template <class Visit>
void forEachOverlapping(const lbvh::Aabb& one, lbvh::View<const lbvh::Aabb> boxes,
                        const Visit& visit) {
#if defined(__SSE2__)
  // Two loads a box, which share the z of its minimum and the x of its maximum.
  static_assert(sizeof(lbvh::Aabb) == 6 * sizeof(float));
  const __m128 most = _mm_setr_ps(one.max[0], one.max[1], one.max[2], kInfinity);
  const __m128 least = _mm_setr_ps(-kInfinity, one.min[0], one.min[1], one.min[2]);
  for (const lbvh::Aabb& box : boxes) {
    const auto* corners = reinterpret_cast<const float*>(&box);
    const __m128 fits = _mm_and_ps(_mm_cmple_ps(_mm_loadu_ps(corners), most),
                                   _mm_cmpge_ps(_mm_loadu_ps(corners + 2), least));
    if (_mm_movemask_ps(fits) == 0xF) visit(static_cast<std::uint32_t>(&box - boxes.data));
  }
#else
  for (std::uint32_t i = 0; i < boxes.size; ++i)
    if (lbvh::overlap(one, boxes[i])) visit(i);
#endif
}

btDbvtVolume volumeOf(const lbvh::Aabb& box) {
  return btDbvtVolume::FromMM(btVector3(box.min[0], box.min[1], box.min[2]),
                              btVector3(box.max[0], box.max[1], box.max[2]));
}

}  // namespace

/// Makes the list of ghosts anew.
void GpuLbvhGhosts::setActive(bool active) {
  m_isActive = active;
  for (const Ghost& ghost : m_ghosts) ghost.proxy->m_isGhost = false;
  m_ghosts.clear();
  m_tree.clear();
  for (std::uint32_t slot = 0; active && slot < m_proxies.boxes().size; ++slot)
    if (m_proxies.at(slot)->isAlive()) addIfGhost(m_proxies.at(slot));
}

void GpuLbvhGhosts::addIfGhost(GpuLbvhProxy* proxy) {
  if (proxy->m_isGhost) return;  // setActive() has just added all
  const auto* object = static_cast<const btCollisionObject*>(proxy->m_clientObject);
  if (object == nullptr || object->getInternalType() != btCollisionObject::CO_GHOST_OBJECT) return;
  try {
    m_ghosts.push_back({proxy, nullptr});
  } catch (const std::bad_alloc&) {
    return;  // then its pairs wait for the step, as all others do
  }
  proxy->m_isGhost = true;
  proxy->m_link = static_cast<std::uint32_t>(m_ghosts.size() - 1);
  placeLeaf(m_ghosts.back());
}

void GpuLbvhGhosts::placeLeaf(Ghost& ghost) {
  const lbvh::Aabb& box = m_proxies.boxes()[ghost.proxy->m_slot];
  btDbvtVolume volume = volumeOf(box);
  const bool hasNan = !lbvh::overlap(box, kEverything);
  if (ghost.leaf != nullptr && !hasNan) return m_tree.update(ghost.leaf, volume);
  if (ghost.leaf != nullptr) m_tree.remove(ghost.leaf);
  ghost.leaf = hasNan ? nullptr : m_tree.insert(volume, ghost.proxy);
}

void GpuLbvhGhosts::updateAdded(GpuLbvhProxy* proxy) {
  addIfGhost(proxy);
  updatePairs(proxy, GpuLbvhProxies::kNanBox, nullptr);
}

void GpuLbvhGhosts::updateMoved(GpuLbvhProxy* proxy, const lbvh::Aabb& before,
                                btDispatcher* dispatcher) {
  if (proxy->m_isGhost) placeLeaf(m_ghosts[proxy->m_link]);
  updatePairs(proxy, before, dispatcher);
}

void GpuLbvhGhosts::removeProxy(GpuLbvhProxy* proxy) {
  if (!proxy->m_isGhost) return;
  proxy->m_isGhost = false;
  Ghost& ghost = m_ghosts[proxy->m_link];
  if (ghost.leaf != nullptr) m_tree.remove(ghost.leaf);
  ghost = m_ghosts.back();
  ghost.proxy->m_link = proxy->m_link;
  m_ghosts.pop_back();
}

void GpuLbvhGhosts::findAmongAll(const lbvh::Aabb& box) {
  // A query tests the exact boxes, not the fattened ones. And it is no use to build a tree of all
  // boxes here: the next few moves would make it stale.
  if (m_queries.areQuick() && !m_proxies.areFattened())
    m_queries.query([&](const auto& bounds) { return lbvh::overlap(box, bounds); },
                    [this](GpuLbvhProxy* proxy) { m_partners.push_back(proxy); });
  else
    forEachOverlapping(box, m_proxies.boxes(),
                       [this](std::uint32_t slot) { m_partners.push_back(m_proxies.at(slot)); });
}

void GpuLbvhGhosts::findAmongGhosts(const lbvh::Aabb& box) {
  struct Collect : btDbvt::ICollide {
    explicit Collect(std::vector<GpuLbvhProxy*>& f) : found(f) {}
    // On Windows Bullet takes it as a template's argument, and it overrides nothing.
    void Process(const btDbvtNode* leaf) {  // NOLINT(modernize-use-override)
      found.push_back(static_cast<GpuLbvhProxy*>(leaf->data));
    }
    std::vector<GpuLbvhProxy*>& found;
  } collect(m_partners);
  m_tree.collideTV(m_tree.m_root, volumeOf(box), collect);
}

/// Sorts them by slot, so that their order does not depend on where the finder runs.
void GpuLbvhGhosts::findPartners(const GpuLbvhProxy* proxy, const lbvh::Aabb& before) {
  const lbvh::Aabb both = boundsOf(before, m_proxies.boxes()[proxy->m_slot]);
  m_partners.clear();
  if (proxy->m_isGhost)
    findAmongAll(both);
  else
    findAmongGhosts(both);
  std::sort(m_partners.begin(), m_partners.end(),
            [](const auto* a, const auto* b) { return a->m_slot < b->m_slot; });
}

/// False if there is no memory: then the pair must wait for the step.
bool GpuLbvhGhosts::rememberEarly(lbvh::Pair pair) {
  try {
    m_early.push_back(pair);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void GpuLbvhGhosts::updatePairs(GpuLbvhProxy* proxy, const lbvh::Aabb& before,
                                btDispatcher* dispatcher) {
  try {
    findPartners(proxy, before);
  } catch (const std::bad_alloc&) {
    return;  // the step makes up for it
  }
  if (m_sink.cache().getOverlapFilterCallback() != m_filter) m_hasAskedAnother = true;
  const GpuLbvhObjects one(proxy);
  std::vector<GpuLbvhProxy*> partners;
  partners.swap(m_partners);  // a callback may come back here, and destroy any of them
  for (GpuLbvhProxy* other : partners) {
    if (other == proxy) continue;
    if (!one.areAlive() || !rememberEarly(lbvh::makePair(proxy->m_slot, other->m_slot))) break;
    updatePair(proxy, other, dispatcher);
  }
  partners.swap(m_partners);
}

/// The filter may move the two while it is asked. So their boxes are compared again after it.
void GpuLbvhGhosts::updatePair(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher) {
  if (!a->isAlive() || !b->isAlive()) return;
  if (m_proxies.overlap(a, b)) m_sink.add(a, b);
  if (!m_proxies.overlap(a, b)) m_sink.remove(a, b, dispatcher);
}

void GpuLbvhGhosts::confirmPairs(const GpuLbvhExactPairs& pairs, btDispatcher* dispatcher) {
  for (const lbvh::Pair pair : m_unconfirmed) {
    if (!m_proxies.wereInLastStep(pair)) continue;  // a callback has destroyed one
    GpuLbvhProxy *a = m_proxies.at(pair.first), *b = m_proxies.at(pair.second);
    if (!pairs.isPair(pair)) {
      m_sink.remove(a, b, dispatcher);
    } else if (!m_sink.has(a, b) && !m_sink.refusedPairs().contains(pair)) {
      // The two parted and met again between two steps, which the finder has not seen.
      const bool isIn = m_sink.add(a, b);
      if (m_proxies.wereInLastStep(pair)) m_sink.refusedPairs().note(pair, !isIn);
    }
  }
  m_unconfirmed.clear();
  // The step does not know of what its callbacks have moved.
  for (std::size_t i = 0, end = m_early.size(); i < end; ++i)
    updatePair(m_proxies.at(m_early[i].first), m_proxies.at(m_early[i].second), dispatcher);
}

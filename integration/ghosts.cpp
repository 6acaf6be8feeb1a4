// SPDX-License-Identifier: Zlib
#include "ghosts.h"

#include <BulletCollision/CollisionDispatch/btCollisionObject.h>

#include <algorithm>
#include <limits>
#include <new>

#include "box_test.h"
#include "broadphase/core/compiler.h"

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr lbvh::Aabb kEverything{{-kInfinity, -kInfinity, -kInfinity},
                                 {kInfinity, kInfinity, kInfinity}};

/// Calls visit(i) for each of `boxes` that overlaps `one`.
template <class Visit>
void forEachOverlapping(const lbvh::Aabb& one, lbvh::View<const lbvh::Aabb> boxes,
                        const Visit& visit) {
#if defined(GPULBVH_SSE2)
  // Two overlapping loads read a box. Both read the z of its minimum and the x of its maximum.
  static_assert(sizeof(lbvh::Aabb) == 6 * sizeof(float));
  const __m128 most = _mm_setr_ps(one.max[0], one.max[1], one.max[2], kInfinity);
  const __m128 least = _mm_setr_ps(-kInfinity, one.min[0], one.min[1], one.min[2]);
  for (const lbvh::Aabb& box : boxes) {
    const auto* corners = reinterpret_cast<const float*>(&box);
    const __m128 fits = _mm_and_ps(_mm_cmple_ps(_mm_loadu_ps(corners), most),
                                   _mm_cmpge_ps(_mm_loadu_ps(corners + 2), least));
    if (_mm_movemask_ps(fits) == 0xF) visit(static_cast<std::uint32_t>(&box - boxes.data()));
  }
#else
  for (std::uint32_t i = 0; i < boxes.size(); ++i)
    if (lbvh::overlap(one, boxes[i])) visit(i);
#endif
}

/// A ghost with more proxies near it than this does not reuse their list, and searches whenever it
/// moves.
constexpr std::size_t kMaxNear = 256;

/// A ghost's box, enlarged by a fifth of its size on each side. A ghost usually stays within it for
/// some steps.
lbvh::Aabb enlargedBoxOf(const lbvh::Aabb& box) {
  lbvh::Aabb enlarged = box;
  for (int axis = 0; axis < 3; ++axis) {
    const float more = std::max(0.0f, (box.max[axis] - box.min[axis]) / 5);
    enlarged.min[axis] -= more;
    enlarged.max[axis] += more;
  }
  return enlarged;
}

btDbvtVolume volumeOf(const lbvh::Aabb& box) {
  return btDbvtVolume::FromMM(btVector3(box.min[0], box.min[1], box.min[2]),
                              btVector3(box.max[0], box.max[1], box.max[2]));
}

/// Calls visit(proxy) for each leaf of the tree that overlaps the box.
template <class Visit>
void forEachLeaf(btDbvt& tree, const lbvh::Aabb& box, const Visit& visit) {
  struct Collide : btDbvt::ICollide {
    explicit Collide(const Visit& v) : visit(v) {}
    // On Windows Bullet takes the callback as a template argument, and this overrides nothing.
    void Process(const btDbvtNode* leaf) {  // NOLINT(modernize-use-override)
      visit(*leaf, static_cast<GpuLbvhProxy*>(leaf->data));
    }
    const Visit& visit;
  } collide(visit);
  tree.collideTV(tree.m_root, volumeOf(box), collide);
}

}  // namespace

/// Rebuilds the list of ghosts.
void GpuLbvhGhosts::setActive(bool active) {
  m_isActive = active;
  for (const Ghost& ghost : m_ghosts) ghost.proxy->m_isGhost = false;
  m_ghosts.clear();
  m_tree.clear();
  for (std::uint32_t slot = 0; active && slot < m_proxies.boxes().size(); ++slot)
    if (m_proxies.at(slot)->isAlive()) addIfGhost(m_proxies.at(slot));
}

void GpuLbvhGhosts::addIfGhost(GpuLbvhProxy* proxy) {
  if (proxy->m_isGhost) return;  // setActive() has just added all ghosts
  const auto* object = static_cast<const btCollisionObject*>(proxy->m_clientObject);
  if (object == nullptr || object->getInternalType() != btCollisionObject::CO_GHOST_OBJECT) return;
  try {
    m_ghosts.push_back({proxy});
  } catch (const std::bad_alloc&) {
    return;  // the step then adds its pairs, as it does for other proxies
  }
  proxy->m_isGhost = true;
  proxy->m_ghost = static_cast<std::uint32_t>(m_ghosts.size() - 1);
  placeLeaf(m_ghosts.back());
}

/// Gives the ghost a new enlarged box.
void GpuLbvhGhosts::placeLeaf(Ghost& ghost) {
  ghost.knowsNear = false;
  const lbvh::Aabb box = m_proxies.boxes()[ghost.proxy->m_slot];
  btDbvtVolume volume = volumeOf(enlargedBoxOf(box));
  const bool hasNan = !lbvh::overlap(box, kEverything);
  if (ghost.leaf != nullptr && !hasNan) return m_tree.update(ghost.leaf, volume);
  if (ghost.leaf != nullptr) m_tree.remove(ghost.leaf);
  ghost.leaf = hasNan ? nullptr : m_tree.insert(volume, ghost.proxy);
}

void GpuLbvhGhosts::addNewProxy(GpuLbvhProxy* proxy) {
  addIfGhost(proxy);
  addPairsOf(proxy);
}

void GpuLbvhGhosts::moveProxy(GpuLbvhProxy* proxy) {
  ++m_moves;
  addPairsOf(proxy);
}

void GpuLbvhGhosts::removeProxy(GpuLbvhProxy* proxy) {
  if (!proxy->m_isGhost) return;
  proxy->m_isGhost = false;
  Ghost& ghost = m_ghosts[proxy->m_ghost];
  if (ghost.leaf != nullptr) m_tree.remove(ghost.leaf);
  if (&ghost != &m_ghosts.back()) ghost = std::move(m_ghosts.back());
  ghost.proxy->m_ghost = proxy->m_ghost;
  m_ghosts.pop_back();
}

/// Whether a query should pack all boxes. Packing takes about as long as forty tests of a ghost
/// against all boxes.
bool GpuLbvhGhosts::isPackingWorthIt() {
  constexpr std::size_t kEnough = 32;
  const bool wouldLast = std::exchange(m_moves, 0) <= m_queries.mostWaiting();
  m_tests = wouldLast ? m_tests + 1 : 1;
  if (m_tests <= kEnough) return false;
  m_tests = 0;
  return true;
}

void GpuLbvhGhosts::findAmongAll(const lbvh::Aabb& box) {
  // A query tests the exact boxes, not the fattened ones.
  if (!m_proxies.areFattened() && (m_queries.areQuick() || isPackingWorthIt()))
    m_queries.query(GpuLbvhBoxTest(box),
                    [this](GpuLbvhProxy* proxy) { m_partners.push_back(proxy); });
  else
    forEachOverlapping(box, m_proxies.boxes(),
                       [this](std::uint32_t slot) { m_partners.push_back(m_proxies.at(slot)); });
}

/// Gives the ghost a new enlarged box around its current box, and lists the proxies near it.
void GpuLbvhGhosts::renewNear(Ghost& ghost) {
  placeLeaf(ghost);
  ghost.near.clear();
  if (ghost.leaf == nullptr) return;  // a box with a NaN overlaps nothing
  const lbvh::Aabb enlarged = enlargedBoxOf(m_proxies.boxes()[ghost.proxy->m_slot]);
  if (m_proxies.count() != m_ghosts.size()) findAmongAll(enlarged);
  const auto isGhost = [](const GpuLbvhProxy* one) { return one->m_isGhost; };
  m_partners.erase(std::remove_if(m_partners.begin(), m_partners.end(), isGhost), m_partners.end());
  forEachLeaf(m_tree, enlarged, [&](const btDbvtNode&, GpuLbvhProxy* other) {
    if (other == ghost.proxy) return;
    m_partners.push_back(other);
    addNear(m_ghosts[other->m_ghost], ghost.proxy->m_slot);
  });
  for (const GpuLbvhProxy* other : m_partners) ghost.near.push_back(other->m_slot);
  ghost.knowsNear = ghost.near.size() <= kMaxNear;
}

/// Lists a proxy that has entered the ghost's enlarged box.
void GpuLbvhGhosts::addNear(Ghost& ghost, std::uint32_t slot) {
  if (!ghost.knowsNear) return;
  if (std::find(ghost.near.begin(), ghost.near.end(), slot) != ghost.near.end()) return;
  ghost.knowsNear = false;  // in case push_back() throws
  ghost.near.push_back(slot);
  ghost.knowsNear = ghost.near.size() <= kMaxNear;
}

/// Finds the ghosts near a proxy that is not a ghost itself.
void GpuLbvhGhosts::findGhosts(const GpuLbvhProxy* proxy) {
  forEachLeaf(m_tree, m_proxies.boxes()[proxy->m_slot],
              [&](const btDbvtNode&, GpuLbvhProxy* ghost) {
                m_partners.push_back(ghost);
                addNear(m_ghosts[ghost->m_ghost], proxy->m_slot);
              });
}

/// Fills m_partners, sorted by slot: the order must not depend on the finder's backend.
void GpuLbvhGhosts::findPartners(const GpuLbvhProxy* proxy) {
  const lbvh::Aabb box = m_proxies.boxes()[proxy->m_slot];
  m_partners.clear();
  if (!proxy->m_isGhost) {
    findGhosts(proxy);
  } else if (Ghost& ghost = m_ghosts[proxy->m_ghost];
             ghost.knowsNear && ghost.leaf->volume.Contain(volumeOf(box))) {
    for (const std::uint32_t slot : ghost.near)
      if (slot < m_proxies.boxes().size()) m_partners.push_back(m_proxies.at(slot));
  } else {
    renewNear(ghost);
  }
  const auto isApart = [&](const GpuLbvhProxy* one) {
    return !lbvh::overlap(m_proxies.boxes()[one->m_slot], box);
  };
  m_partners.erase(std::remove_if(m_partners.begin(), m_partners.end(), isApart), m_partners.end());
  std::sort(m_partners.begin(), m_partners.end(),
            [](const auto* a, const auto* b) { return a->m_slot < b->m_slot; });
}

/// Sorts m_early in ascending order, and removes duplicates.
void GpuLbvhGhosts::forgetRepeated() {
  std::sort(m_early.begin(), m_early.end());
  m_early.erase(std::unique(m_early.begin(), m_early.end()), m_early.end());
}

/// Returns false if there is no memory. Then the pair must wait for the step.
bool GpuLbvhGhosts::rememberEarly(lbvh::Pair pair) {
  try {
    // Each move may append the same refused pair again. So duplicates are removed before the list
    // grows.
    if (m_early.size() == m_early.capacity() && !m_isInStep) {
      forgetRepeated();
      m_early.reserve(2 * m_early.size() + 64);
    }
    m_early.push_back(pair);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void GpuLbvhGhosts::addPairsOf(GpuLbvhProxy* proxy) {
  try {
    findPartners(proxy);
  } catch (const std::bad_alloc&) {
    // The step will update the proxy's pairs. But `near` of some ghosts may now lack the proxy.
    for (Ghost& ghost : m_ghosts) ghost.knowsNear = false;
    return;
  }
  if (m_sink.rule() != m_rule) m_hasAskedAnother = true;
  const std::uint32_t serial = proxy->m_serial;
  std::vector<GpuLbvhProxy*> partners;
  partners.swap(m_partners);  // a callback may call this again, and destroy any of the partners
  for (GpuLbvhProxy* other : partners) {
    if (proxy->m_serial != serial) break;
    if (!other->isAlive() || !m_proxies.overlap(proxy, other)) continue;
    // A running step found its pairs before this move, so it may still remove the pair.
    if (!m_isInStep && m_sink.has(proxy, other)) continue;
    const lbvh::Pair pair = lbvh::makePair(proxy->m_slot, other->m_slot);
    if (!rememberEarly(pair)) break;
    addPair(pair);
  }
  partners.swap(m_partners);
}

void GpuLbvhGhosts::addPair(lbvh::Pair pair) {
  GpuLbvhProxy *a = m_proxies.at(pair.first), *b = m_proxies.at(pair.second);
  if (!a->isAlive() || !b->isAlive() || !m_proxies.overlap(a, b)) return;
  // The cache reads the current groups and masks, so the step must know them.
  for (const GpuLbvhProxy* one : {a, b}) m_proxies.filterChanged(one);
  m_sink.add(a, b);
}

void GpuLbvhGhosts::confirmPairs(const GpuLbvhExactPairs& pairs, btDispatcher* dispatcher) {
  for (const lbvh::Pair pair : m_unconfirmed) {
    if (!m_proxies.wereInLastStep(pair)) continue;  // a callback has destroyed a proxy
    GpuLbvhProxy *a = m_proxies.at(pair.first), *b = m_proxies.at(pair.second);
    if (!pairs.isPair(pair)) {
      m_sink.remove(a, b, dispatcher);
    } else if (!m_sink.has(a, b) && !m_sink.refusedPairs().contains(pair)) {
      // The program removed the pair from the cache, and then one of the two objects moved.
      const bool isIn = m_sink.add(a, b);
      if (m_proxies.wereInLastStep(pair)) m_sink.refusedPairs().note(pair, !isIn);
    }
  }
  m_unconfirmed.clear();
  // The step may have removed a pair although a callback has moved its boxes together again.
  for (std::size_t i = 0, end = m_early.size(); i < end; ++i) addPair(m_early[i]);
  m_isInStep = false;
}

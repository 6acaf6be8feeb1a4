// The proxies of one broad phase, and their boxes and filters as the dense arrays that the core
// reads. A proxy keeps its address and its slot for as long as it lives. Slots of destroyed proxies
// are used again. Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btBroadphaseProxy.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "broadphase/types.h"

struct alignas(16) GpuLbvhProxy : public btBroadphaseProxy {
  std::uint32_t m_slot = 0;
  std::uint32_t m_link = 0;   ///< not alive: the next free slot; a ghost: its place among ghosts
  bool m_isChanged = false;   ///< since the last step, or since a tree was built for queries
  bool m_isPlane = false;     ///< a half space, beside its box
  bool m_hasNoPairs = false;  ///< they were removed, because it is about to be destroyed
  bool m_isGhost = false;     ///< its pairs do not wait for the step (ghosts.h)

  /// Unique ids begin at 1; a destroyed proxy has none.
  bool isAlive() const { return m_uniqueId > 0; }

  // Bullet's own operator new[] answers an exhausted memory with null instead of an exception.
  static void* operator new[](std::size_t size) {
    return ::operator new[](size, std::align_val_t{alignof(GpuLbvhProxy)});
  }
  static void operator delete[](void* p) {
    ::operator delete[](p, std::align_val_t{alignof(GpuLbvhProxy)});
  }
};

/// A pair of proxies as the core names it.
inline lbvh::Pair slotsOf(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return lbvh::makePair(static_cast<const GpuLbvhProxy*>(a)->m_slot,
                        static_cast<const GpuLbvhProxy*>(b)->m_slot);
}

inline lbvh::Filter filterOf(const btBroadphaseProxy* proxy) {
  return {proxy->m_collisionFilterGroup, proxy->m_collisionFilterMask};
}

/// One object, or two, across a callback. The callback may destroy an object and create another,
/// which then has the same proxy, but another unique id.
class GpuLbvhObjects {
 public:
  explicit GpuLbvhObjects(const btBroadphaseProxy* one) : GpuLbvhObjects(one, one) {}
  GpuLbvhObjects(const btBroadphaseProxy* a, const btBroadphaseProxy* b)
      : m_a(a), m_b(b), m_idA(a->m_uniqueId), m_idB(b->m_uniqueId) {}
  /// Whether the proxies are still those of the same objects.
  bool areAlive() const {
    return m_idA > 0 && m_a->m_uniqueId == m_idA && m_idB > 0 && m_b->m_uniqueId == m_idB;
  }

 private:
  const btBroadphaseProxy *m_a, *m_b;
  int m_idA, m_idB;
};

/// A box of Bullet's in the form that lbvh::overlap takes. Refers to its corners.
struct GpuLbvhBox {
  GpuLbvhBox(const btVector3& lo, const btVector3& hi) : min(lo), max(hi) {}
  explicit GpuLbvhBox(const btBroadphaseProxy* proxy)
      : GpuLbvhBox(proxy->m_aabbMin, proxy->m_aabbMax) {}
  const btScalar *min, *max;
};

class GpuLbvhProxies {
 public:
  /// @param margin by which boxes are fattened; 0: not at all
  explicit GpuLbvhProxies(btScalar margin = 0) : m_margin(margin > 0 ? margin : 0) {}

  /// @throws std::bad_alloc, with nothing changed
  GpuLbvhProxy* create(const btVector3& aabbMin, const btVector3& aabbMax, void* client, int group,
                       int mask);
  void destroy(GpuLbvhProxy* proxy);

  /// After it, creating `more` proxies does not fail. @throws std::bad_alloc
  void reserve(std::size_t more);

  /// @return false if boxes() stays as it was: the proxy's box was that already, or lies within the
  ///   fattened one
  bool setAabb(GpuLbvhProxy* proxy, const btVector3& aabbMin, const btVector3& aabbMax);

  bool areFattened() const { return m_margin > 0; }

  /// Overlaps nothing.
  static const lbvh::Aabb kNanBox;

  /// Makes the proxy a half space: all points with normal * point <= constant. It keeps its box.
  /// @throws std::bad_alloc
  void setPlane(GpuLbvhProxy* proxy, const btVector3& normal, btScalar constant);
  void clearPlane(GpuLbvhProxy* proxy);

  /// Whether the two may not be a pair although their boxes() overlap.
  bool isUndecided(lbvh::Pair pair) const;
  /// False if no pair is undecided.
  bool mayLeavePairsUndecided() const { return kRoundsBoxes || !m_planes.empty(); }

  /// Whether the two are a pair, if their filters allow it: by their exact or fattened boxes, and
  /// by the planes' equations.
  bool overlap(const GpuLbvhProxy* a, const GpuLbvhProxy* b) const;

  /// Restarts slots and unique ids. Does nothing while there are proxies.
  void reset();

  std::size_t count() const { return m_count; }

  /// False for a proxy of another broad phase. Does not read the proxy.
  bool owns(const btBroadphaseProxy* proxy) const;
  bool ownBoth(const btBroadphaseProxy* a, const btBroadphaseProxy* b) const {
    return owns(a) && owns(b);
  }
  GpuLbvhProxy* at(std::uint32_t slot) const { return &m_blocks[slot / kBlock][slot % kBlock]; }

  /// By slot: fattened by the margin, and rounded outward where Bullet is built with double
  /// precision. A free slot's box is NaN, so that it overlaps nothing.
  lbvh::View<const lbvh::Aabb> boxes() const { return {m_boxes.data(), m_boxes.size()}; }

  /// Group and mask as they are now: users change them in place.
  lbvh::View<const lbvh::Filter> readFilters();

  /// Whether a box, or a filter that was read, has changed since the last call.
  bool takeChanges() { return std::exchange(m_hasChanges, false); }
  void markChanged() { m_hasChanges = true; }

  /// A bit for each slot: whether its box or filter has changed since the end of the last step.
  lbvh::View<const std::uint64_t> changedBits() const {
    return {m_changed.data(), m_changed.size()};
  }
  void endStep() {
    m_moved.swap(m_changed);
    std::fill(m_changed.begin(), m_changed.end(), std::uint64_t{0});
    m_lastIdOfStep = m_lastId;
    m_anyDestroyed = false;
  }
  /// Whether the slots hold the same objects as in the last step.
  bool wereInLastStep(lbvh::Pair pair) const {
    return wasInLastStep(at(pair.first)) && wasInLastStep(at(pair.second));
  }
  /// The same for a pair of the last step. False if a callback has destroyed one of the two since.
  bool stillLives(lbvh::Pair pair) const { return !m_anyDestroyed || wereInLastStep(pair); }
  bool movedInLastStep(const GpuLbvhProxy* proxy) const {
    return (m_moved[proxy->m_slot / 64] >> proxy->m_slot % 64 & 1) != 0;
  }

 private:
  static constexpr std::uint32_t kBlock = 256;
  static constexpr bool kRoundsBoxes = sizeof(btScalar) > sizeof(float);

  struct Plane {
    const GpuLbvhProxy* proxy;
    btVector3 normal;
    btScalar constant;
  };
  bool wasInLastStep(const GpuLbvhProxy* proxy) const {
    return proxy->isAlive() && proxy->m_uniqueId <= m_lastIdOfStep;
  }
  bool isAbovePlane(const GpuLbvhProxy* proxy, const GpuLbvhProxy* plane) const;
  lbvh::Aabb fattened(const btVector3& aabbMin, const btVector3& aabbMax) const;
  void addSlot();
  void markChanged(std::uint32_t slot) {
    m_changed[slot / 64] |= std::uint64_t{1} << slot % 64;
    markChanged();
  }
  void reserveBoxes(std::size_t all);
  void addBlock();

  const btScalar m_margin;
  std::vector<std::unique_ptr<GpuLbvhProxy[]>> m_blocks;
  std::vector<const btBroadphaseProxy*> m_byAddress;  ///< the first proxy of each block
  std::vector<lbvh::Aabb> m_boxes;
  std::vector<Plane> m_planes;  ///< a few
  std::vector<lbvh::Filter> m_filters;
  std::vector<std::uint64_t> m_changed, m_moved;  ///< in this step, and in the last one
  std::uint32_t m_firstFree = lbvh::kNullIndex;
  std::size_t m_count = 0;
  int m_lastId = 0, m_lastIdOfStep = 0;
  bool m_hasChanges = true;
  bool m_anyDestroyed = false;  ///< since the last step
};

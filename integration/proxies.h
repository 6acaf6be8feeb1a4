// The proxies of one broad phase, and their boxes and filters as the dense arrays the core reads.
// A proxy lives at one address and in one slot; slots of destroyed proxies are used again.
// Not installed.
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
  std::uint32_t m_link = 0;  ///< not alive: the next free slot; a ghost: its place among ghosts
  bool m_isChanged = false;  ///< since the last step, or since a tree was built for queries
  bool m_isPlane = false;    ///< a half space, beside its box
  bool m_isDoomed = false;   ///< among the many that are just being destroyed
  bool m_isGhost = false;    ///< its pairs do not wait for the step (ghosts.h)

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

/// Proxies as the objects that they are now: a callback may destroy one, and its slot be used
/// again.
class GpuLbvhObjects {
 public:
  explicit GpuLbvhObjects(const btBroadphaseProxy* one) : GpuLbvhObjects(one, one) {}
  GpuLbvhObjects(const btBroadphaseProxy* a, const btBroadphaseProxy* b)
      : m_a(a), m_b(b), m_idA(a->m_uniqueId), m_idB(b->m_uniqueId) {}
  bool areAlive() const {
    return m_idA > 0 && m_a->m_uniqueId == m_idA && m_idB > 0 && m_b->m_uniqueId == m_idB;
  }

 private:
  const btBroadphaseProxy *m_a, *m_b;
  int m_idA, m_idB;
};

/// A box of Bullet's, as lbvh::overlap takes it.
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

  /// So that creating as many more does not fail. @throws std::bad_alloc
  void reserve(std::size_t more);

  /// False if nothing follows: the box was that already, or lies within the fattened one.
  bool setAabb(GpuLbvhProxy* proxy, const btVector3& aabbMin, const btVector3& aabbMax);

  bool areFattened() const { return m_margin > 0; }

  /// NaN: overlaps nothing.
  static const lbvh::Aabb kNoBox;

  /// The proxy is a half space: all points with normal * point <= constant. Its box is what it was.
  /// @throws std::bad_alloc
  void setPlane(GpuLbvhProxy* proxy, const btVector3& normal, btScalar constant);
  void clearPlane(GpuLbvhProxy* proxy);

  /// Whether boxes() can overlap without the two being a pair.
  bool isOpen(lbvh::Pair pair) const;
  /// False if that is so for no pair.
  bool leavesPairsOpen() const { return kRoundsBoxes || !m_planes.empty(); }

  /// Whether the two are a pair, filters aside: exactly, or as fattened; planes as such.
  bool overlap(const GpuLbvhProxy* a, const GpuLbvhProxy* b) const;

  /// Restarts slots and unique ids; only while there are no proxies.
  void reset();

  std::size_t count() const { return m_count; }

  /// False for proxies of another broad phase, of which it reads nothing.
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

  /// Whether a box, or a filter that was read, is another than at the last call.
  bool takeChanges() { return std::exchange(m_hasChanges, false); }
  void touch() { m_hasChanges = true; }

  /// A bit a slot: those that are others than at the end of the last step.
  lbvh::View<const std::uint64_t> changed() const { return {m_changed.data(), m_changed.size()}; }
  void endStep() {
    m_moved.swap(m_changed);
    std::fill(m_changed.begin(), m_changed.end(), std::uint64_t{0});
    m_lastIdOfStep = m_lastId;
    m_anyDestroyed = false;
  }
  /// Whether the slots are of the same objects as in the last step.
  bool wereInLastStep(lbvh::Pair pair) const {
    return wasInLastStep(at(pair.first)) && wasInLastStep(at(pair.second));
  }
  /// The same for a pair of the last step's, which a callback may have destroyed since.
  bool stillLives(lbvh::Pair pair) const { return !m_anyDestroyed || wereInLastStep(pair); }
  bool movedInLastStep(const GpuLbvhProxy* proxy) const {
    return (m_moved[proxy->m_slot / 64] >> proxy->m_slot % 64 & 1) != 0;
  }

 private:
  static constexpr std::uint32_t kBlock = 256;
  static constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

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
  void touch(std::uint32_t slot) {
    m_changed[slot / 64] |= std::uint64_t{1} << slot % 64;
    touch();
  }
  void reserveBoxes(std::size_t all);
  void addBlock();

  const btScalar m_margin;
  std::vector<std::unique_ptr<GpuLbvhProxy[]>> m_blocks;
  std::vector<const btBroadphaseProxy*> m_byAddress;  // the first proxy of each block
  std::vector<lbvh::Aabb> m_boxes;
  std::vector<Plane> m_planes;  // a few
  std::vector<lbvh::Filter> m_filters;
  std::vector<std::uint64_t> m_changed, m_moved;  // in this step, and in the last one
  std::uint32_t m_firstFree = kNoSlot;
  std::size_t m_count = 0;
  int m_lastId = 0, m_lastIdOfStep = 0;
  bool m_hasChanges = true;
  bool m_anyDestroyed = false;  // since the last step
};

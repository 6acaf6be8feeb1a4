// SPDX-License-Identifier: Zlib
// The proxies of one broad phase, and their boxes and filters as the dense arrays that the core
// reads. A proxy keeps its address and its slot for as long as it lives. Slots of destroyed proxies
// are used again. Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btBroadphaseProxy.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "broadphase/core/compiler.h"
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
  /// @param one null: an object that is not alive
  explicit GpuLbvhObjects(const btBroadphaseProxy* one)
      : m_a(one), m_b(one), m_idA(one != nullptr ? one->m_uniqueId : 0), m_idB(m_idA) {}
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

/// Whether two boxes are the same by value: -0 is 0, and a NaN is not even itself.
template <class A, class B>
inline bool isSameBox(const A& a, const B& b) {
  bool isSame = true;  // without branches: as a rule all six are compared
  for (int axis = 0; axis < 3; ++axis)
    isSame = isSame & (a.min[axis] == b.min[axis]) & (a.max[axis] == b.max[axis]);
  return isSame;
}

#if defined(LBVH_SSE2) && !defined(BT_USE_DOUBLE_PRECISION)
/// The same by two loads a box. The fourth number of Bullet's corners is loaded and not compared.
inline bool isSameBox(const lbvh::Aabb& kept, const GpuLbvhBox& box) {
  const auto* corners = reinterpret_cast<const float*>(&kept);
  const __m128 zAndMax = _mm_loadu_ps(corners + 2);
  const __m128 max = _mm_shuffle_ps(zAndMax, zAndMax, _MM_SHUFFLE(0, 3, 2, 1));
  const __m128 same = _mm_and_ps(_mm_cmpeq_ps(_mm_loadu_ps(corners), _mm_loadu_ps(box.min)),
                                 _mm_cmpeq_ps(max, _mm_loadu_ps(box.max)));
  return (_mm_movemask_ps(same) & 7) == 7;
}
#endif

/// Proxies of consecutive slots. A block is aligned by its size, so that the address of a proxy
/// tells its slot: the proxy, of more than a cache line, need not be read for that.
struct GpuLbvhProxyBlock {
  static constexpr std::size_t kBytes = 16384;
  static constexpr std::uint32_t kProxies = (kBytes - sizeof(btVector3)) / sizeof(GpuLbvhProxy);

  static std::uint32_t slotOf(const btBroadphaseProxy* proxy) {
    const auto address = reinterpret_cast<std::uintptr_t>(proxy);
    const auto offset = static_cast<std::uint32_t>(address % kBytes);
    const auto* block = reinterpret_cast<const GpuLbvhProxyBlock*>(address - offset);
    return block->firstSlot + offset / std::uint32_t{sizeof(GpuLbvhProxy)};
  }

  GpuLbvhProxy proxies[kProxies];
  std::uint32_t firstSlot;
};
static_assert(sizeof(GpuLbvhProxyBlock) <= GpuLbvhProxyBlock::kBytes);

/// Memory of blocks. By hand, because Microsoft's compiler aligns no type by so much.
class GpuLbvhProxyBlocks {
 public:
  /// @throws std::bad_alloc
  explicit GpuLbvhProxyBlocks(std::size_t count) : m_memory(::operator new(count* kBytes, kAlign)) {
    for (std::size_t i = 0; i < count; ++i) new (&(*this)[i]) GpuLbvhProxyBlock();
  }
  GpuLbvhProxyBlock& operator[](std::size_t i) const {
    return *reinterpret_cast<GpuLbvhProxyBlock*>(static_cast<char*>(m_memory.get()) + i * kBytes);
  }

 private:
  static constexpr std::size_t kBytes = GpuLbvhProxyBlock::kBytes;
  static constexpr std::align_val_t kAlign{kBytes};
  struct Free {
    void operator()(void* memory) const noexcept { ::operator delete(memory, kAlign); }
  };
  static_assert(std::is_trivially_destructible_v<GpuLbvhProxyBlock>);
  std::unique_ptr<void, Free> m_memory;
};

class GpuLbvhProxies {
 public:
  /// @param margin by which boxes are fattened; 0: not at all
  /// @param announcedFilters whether filterChanged() tells of each change to a filter
  explicit GpuLbvhProxies(btScalar margin = 0, bool announcedFilters = false)
      : m_margin(margin > 0 ? margin : 0), m_areFiltersAnnounced(announcedFilters) {}

  /// @throws std::bad_alloc, with nothing changed
  GpuLbvhProxy* create(const btVector3& aabbMin, const btVector3& aabbMax, void* client, int group,
                       int mask);
  void destroy(GpuLbvhProxy* proxy);

  /// After it, creating `more` proxies does not fail. @throws std::bad_alloc
  void reserve(std::size_t more);

  /// @return false if boxes() stays as it was: the proxy's box lies within the fattened one
  bool setAabb(GpuLbvhProxy* proxy, const btVector3& aabbMin, const btVector3& aabbMax);

  bool areFattened() const { return m_margin > 0; }

  /// Whether the proxy has this box already: then setAabb() need not be called.
  bool hasAabb(const btBroadphaseProxy* proxy, const btVector3& aabbMin,
               const btVector3& aabbMax) const {
    const GpuLbvhBox box(aabbMin, aabbMax);
    // Where boxes() are exact, they are less to read than the proxies.
    if constexpr (!kRoundsBoxes)
      if (m_margin == 0) return isSameBox(m_boxes[GpuLbvhProxyBlock::slotOf(proxy)], box);
    return isSameBox(GpuLbvhBox(proxy), box);
  }

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
  GpuLbvhProxy* at(std::uint32_t slot) const {
    return &m_blocks[slot / GpuLbvhProxyBlock::kProxies]
                ->proxies[slot % GpuLbvhProxyBlock::kProxies];
  }

  /// By slot: fattened by the margin, and rounded outward where Bullet is built with double
  /// precision. A free slot's box is NaN, so that it overlaps nothing.
  lbvh::View<const lbvh::Aabb> boxes() const { return {m_boxes.data(), m_boxes.size()}; }

  /// Group and mask as they are now: users change them in place. @throws std::bad_alloc
  lbvh::View<const lbvh::Filter> readFilters();
  /// The proxy's group and mask may have changed.
  void filterChanged(GpuLbvhProxy* proxy) {
    if (m_areFiltersAnnounced) readFilter(*proxy, m_filters[proxy->m_slot]);
  }

  /// Whether a box, or a filter that was read, has changed since the last call.
  bool takeChanges() { return std::exchange(m_hasChanges, false); }
  void markChanged() { m_hasChanges = true; }

  /// A bit for each slot: whether its box or filter has changed since the end of the last step.
  lbvh::View<const std::uint64_t> changedBits() const {
    return {m_changed.data(), m_changed.size()};
  }
  /// Pairs of the proxy that were refused are asked again in the next step (refused_pairs.h).
  void askAgain(const GpuLbvhProxy* proxy) { mark(m_toAsk, proxy->m_slot); }
  /// A bit for each slot: askAgain() was called for it, or its proxy was given another box, even
  /// where boxes() stayed as it was.
  lbvh::View<const std::uint64_t> marksToAsk() const { return {m_toAsk.data(), m_toAsk.size()}; }
  void clearMarksToAsk() { std::fill(m_toAsk.begin(), m_toAsk.end(), std::uint64_t{0}); }

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
  void readFilter(const GpuLbvhProxy& proxy, lbvh::Filter& known) {
    const lbvh::Filter now = filterOf(&proxy);
    if (known.group == now.group && known.mask == now.mask) return;
    known = now;
    markChanged(proxy.m_slot);
  }
  void addSlot();
  static void mark(std::vector<std::uint64_t>& bits, std::uint32_t slot) {
    bits[slot / 64] |= std::uint64_t{1} << slot % 64;
  }
  void markChanged(std::uint32_t slot) {
    mark(m_changed, slot);
    markChanged();
  }
  void reserveBoxes(std::size_t all);
  void addBlocks(std::size_t count);

  const btScalar m_margin;
  const bool m_areFiltersAnnounced;  ///< then m_filters is kept up to date
  std::vector<GpuLbvhProxyBlocks> m_groups;
  std::vector<GpuLbvhProxyBlock*> m_blocks;  ///< by slot
  std::vector<const GpuLbvhProxyBlock*> m_byAddress;
  std::vector<lbvh::Aabb> m_boxes;
  std::vector<Plane> m_planes;  ///< a few
  std::vector<lbvh::Filter> m_filters;
  std::vector<std::uint64_t> m_changed, m_moved;  ///< in this step, and in the last one
  std::vector<std::uint64_t> m_toAsk;
  std::uint32_t m_firstFree = lbvh::kNullIndex;
  std::size_t m_count = 0;
  int m_lastId = 0, m_lastIdOfStep = 0;
  bool m_hasChanges = true;
  bool m_anyDestroyed = false;  ///< since the last step
};

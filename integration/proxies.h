// SPDX-License-Identifier: Zlib
// Stores the proxies of one broad phase, with their boxes and filters in the dense arrays that the
// core reads. A living proxy keeps its address and its slot. A new proxy gets the lowest free slot.
// Free slots at the end are given back, with their memory.
// Code that each step runs for each proxy is in this header. The rest is in proxies.cpp. Not
// installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btBroadphaseProxy.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "broadphase/core/compiler.h"
#include "broadphase/core/sparse_bits.h"
#include "broadphase/types.h"

struct alignas(16) GpuLbvhProxy : public btBroadphaseProxy {
  std::uint32_t m_slot = 0;
  std::uint32_t m_ghost = 0;   ///< for a ghost: its index in the list of ghosts
  std::uint32_t m_serial = 0;  ///< counts creations, so it is unique among objects; 0: no object
  // For changed_proxies.h: whether the proxy has changed, and whether it is in the list.
  bool m_isChanged : 1, m_isWaiting : 1;
  bool m_isPlane : 1;     ///< has a plane's equation in addition to its box
  bool m_hasNoPairs : 1;  ///< its pairs were removed, because the proxy is about to be destroyed
  bool m_isGhost : 1;     ///< its new pairs are added at once (ghosts.h)

  GpuLbvhProxy()
      : m_isChanged(false),
        m_isWaiting(false),
        m_isPlane(false),
        m_hasNoPairs(false),
        m_isGhost(false) {}

  /// Unique ids start at 1. A destroyed proxy has 0.
  bool isAlive() const { return m_uniqueId > 0; }
};

/// The core's pair (of slots) for two proxies.
inline lbvh::Pair slotsOf(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return lbvh::makePair(static_cast<const GpuLbvhProxy*>(a)->m_slot,
                        static_cast<const GpuLbvhProxy*>(b)->m_slot);
}

inline lbvh::View<const lbvh::Pair> viewOf(const std::vector<lbvh::Pair>& pairs) {
  return {pairs.data(), pairs.size()};
}

inline lbvh::Filter filterOf(const btBroadphaseProxy* proxy) {
  return {proxy->m_collisionFilterGroup, proxy->m_collisionFilterMask};
}

/// A Bullet box in the form that lbvh::overlap() takes. Points to the box's corners.
struct GpuLbvhBox {
  GpuLbvhBox(const btVector3& lo, const btVector3& hi) : min(lo), max(hi) {}
  explicit GpuLbvhBox(const btBroadphaseProxy* proxy)
      : GpuLbvhBox(proxy->m_aabbMin, proxy->m_aabbMax) {}
  const btScalar *min, *max;
};

/// Whether two boxes are equal by value. So -0 equals 0, and a NaN does not equal itself.
template <class A, class B>
inline bool isSameBox(const A& a, const B& b) {
  bool isSame = true;  // branchless, because usually all six numbers must be compared
  for (int axis = 0; axis < 3; ++axis)
    isSame = isSame & (a.min[axis] == b.min[axis]) & (a.max[axis] == b.max[axis]);
  return isSame;
}

#if defined(GPULBVH_SSE2) && !defined(BT_USE_DOUBLE_PRECISION)
/// A box from Bullet, in registers.
class GpuLbvhCorners {
 public:
  GpuLbvhCorners(const btVector3& lo, const btVector3& hi) : m_min(load(lo)), m_max(load(hi)) {}

  /// Whether isSameBox() holds for the two boxes.
  bool areThoseOf(const lbvh::Aabb& box) const {
    const auto* corners = reinterpret_cast<const float*>(&box);
    const int first = _mm_movemask_ps(_mm_cmpeq_ps(_mm_loadu_ps(corners), m_min));
    const int last = _mm_movemask_ps(_mm_cmpeq_ps(_mm_loadu_ps(corners + 2), zAndMax()));
    return ((first | 8) & last) == 15;
  }
  void copyTo(btBroadphaseProxy* proxy, lbvh::Aabb& box) const {
    _mm_storeu_ps(proxy->m_aabbMin, m_min);
    _mm_storeu_ps(proxy->m_aabbMax, m_max);
    auto* corners = reinterpret_cast<float*>(&box);
    _mm_storeu_ps(corners, m_min);
    _mm_storeu_ps(corners + 2, zAndMax());
  }

 private:
  /// Loads single numbers, because Bullet has just stored them one by one: a wider load would wait
  /// until the stores have reached the cache. Loads them as integers, because GCC 12 adds useless
  /// moves after _mm_load_ss.
  static __m128 load(const btScalar* corner) {
    std::int32_t x, y, z;
    std::memcpy(&x, corner, sizeof x);
    std::memcpy(&y, corner + 1, sizeof y);
    std::memcpy(&z, corner + 2, sizeof z);
    const __m128i xz = _mm_unpacklo_epi32(_mm_cvtsi32_si128(x), _mm_cvtsi32_si128(z));
    return _mm_castsi128_ps(_mm_unpacklo_epi32(xz, _mm_cvtsi32_si128(y)));
  }
  /// The last four of a box's six numbers.
  __m128 zAndMax() const {
    const __m128 zx = _mm_shuffle_ps(m_min, m_max, _MM_SHUFFLE(0, 0, 2, 2));
    return _mm_shuffle_ps(zx, m_max, _MM_SHUFFLE(2, 1, 2, 0));
  }

  const __m128 m_min, m_max;
};
#else
/// A box from Bullet.
class GpuLbvhCorners {
 public:
  GpuLbvhCorners(const btVector3& lo, const btVector3& hi) : m_min(lo), m_max(hi) {}

  bool areThoseOf(const lbvh::Aabb& box) const { return isSameBox(box, GpuLbvhBox(m_min, m_max)); }
  void copyTo(btBroadphaseProxy* proxy, lbvh::Aabb& box) const {
    proxy->m_aabbMin = m_min;
    proxy->m_aabbMax = m_max;
    for (int axis = 0; axis < 3; ++axis) {
      box.min[axis] = static_cast<float>(m_min[axis]);
      box.max[axis] = static_cast<float>(m_max[axis]);
    }
  }

 private:
  const btVector3 &m_min, &m_max;
};
#endif

/// Proxies of consecutive slots. A block is aligned to its size, so slotOf() needs only a proxy's
/// address. It does not read the proxy, which would often be a cache miss.
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

/// Uninitialised memory for several blocks. Allocated by hand, because MSVC does not align a type
/// to the size of a block.
class GpuLbvhProxyBlocks {
 public:
  /// @throws std::bad_alloc
  explicit GpuLbvhProxyBlocks(std::size_t count)
      : m_count(count), m_memory(::operator new(count* kBytes, kAlign)) {}
  std::size_t count() const { return m_count; }
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
  std::size_t m_count;
  std::unique_ptr<void, Free> m_memory;
};

class GpuLbvhProxies {
 public:
  /// @param margin distance by which boxes are fattened on all sides, in world units
  explicit GpuLbvhProxies(btScalar margin = 0)
      : m_margin(margin > 0 ? margin : 0), m_isExact(!kRoundsBoxes && m_margin == 0) {}

  /// @throws std::bad_alloc, with nothing changed
  GpuLbvhProxy* create(const btVector3& aabbMin, const btVector3& aabbMax, void* client, int group,
                       int mask);
  void destroy(GpuLbvhProxy* proxy);

  /// Ensures that creating `more` proxies does not fail. @throws std::bad_alloc
  void reserve(std::size_t more);

  /// @return false if boxes() is unchanged, because the fattened box contains the new box
  bool setAabb(GpuLbvhProxy* proxy, const btVector3& aabbMin, const btVector3& aabbMax) {
    proxy->m_aabbMin = aabbMin;
    proxy->m_aabbMax = aabbMax;
    askAgain(proxy);
    lbvh::Aabb& box = m_boxes[proxy->m_slot];
    if (m_margin > 0 && contains(box, aabbMin, aabbMax)) return false;
    box = fattened(aabbMin, aabbMax);
    m_changed.add(proxy->m_slot);
    return true;
  }

  /// A faster setAabb(). Requires areExact().
  /// @return false if the proxy already has this box
  bool setExactAabb(GpuLbvhProxy* proxy, const GpuLbvhCorners& corners) {
    // Compares with boxes(), because that reads less memory than the proxies.
    const std::uint32_t slot = GpuLbvhProxyBlock::slotOf(proxy);
    lbvh::Aabb& box = m_boxes[slot];
    if (corners.areThoseOf(box)) return false;
    corners.copyTo(proxy, box);
    m_toAsk.add(slot);
    m_changed.add(slot);
    return true;
  }
  bool areExact() const { return m_isExact; }
  bool areFattened() const { return m_margin > 0; }

  /// A box that overlaps nothing.
  static const lbvh::Aabb kNanBox;

  /// Makes the proxy a half space: all points with normal * point <= constant. Keeps its box.
  /// @throws std::bad_alloc
  void setPlane(GpuLbvhProxy* proxy, const btVector3& normal, btScalar constant);
  void clearPlane(GpuLbvhProxy* proxy);

  /// Whether overlap() must decide about a pair whose boxes() overlap.
  bool isUndecided(lbvh::Pair pair) const;
  /// Whether isUndecided() may be true for a pair.
  bool mayLeavePairsUndecided() const { return kRoundsBoxes || !m_planes.empty(); }

  /// Whether the two boxes overlap and, if one proxy is a plane, the other box reaches into its
  /// half space. The boxes are the exact ones, or the fattened ones if there is a margin. Filters
  /// are not read.
  bool overlap(const GpuLbvhProxy* a, const GpuLbvhProxy* b) const;

  /// Makes the next create() use this unique id, unless it is 0. Cancels an earlier call in any
  /// case.
  /// @return false if the id is out of range or a proxy has it
  bool setNextId(int id);
  /// Restarts slot numbers and unique ids. Does nothing while there are proxies.
  void reset();

  /// Gives back the free slots at the end. Afterwards boxes() has fewer boxes.
  void giveBackSlots();
  /// Frees the memory of slots that were given back. No pointers to their proxies may be left.
  void giveBackMemory();

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

  /// The boxes by slot, fattened by the margin. With double-precision Bullet they are rounded
  /// outward. The box of a free slot is NaN, so that it overlaps nothing.
  lbvh::View<const lbvh::Aabb> boxes() const { return {m_boxes.data(), m_boxes.size()}; }

  /// The proxies whose groups and masks a step reads.
  enum class Read {
    none,    ///< only those for which filterChanged() was called
    inTurn,  ///< changed proxies and kInTurn others; in a small world, all
    all
  };
  /// Reads the filters that `read` selects. @return all filters by slot, as last read
  lbvh::View<const lbvh::Filter> readFilters(Read read);
  /// Call this when the proxy's group or mask may have changed.
  void filterChanged(const GpuLbvhProxy* proxy) { readFilter(*proxy); }

  /// The slots whose box, plane or known filter has changed since the last step.
  const lbvh::SparseBits& changed() const { return m_changed; }
  bool anyChanged() const { return m_anyDestroyed || !m_changed.isEmpty(); }
  /// Lets the next step offer the proxy's refused pairs again (refused_pairs.h).
  void askAgain(const GpuLbvhProxy* proxy) { m_toAsk.add(proxy->m_slot); }
  /// The slots of proxies for which askAgain() was called, or which got a new box, even if boxes()
  /// is unchanged.
  const lbvh::SparseBits& toAsk() const { return m_toAsk; }
  void clearToAsk() { m_toAsk.clear(); }

  /// The serial number of the newest object. For areFrom().
  std::uint32_t lastSerial() const { return m_lastSerial; }
  /// Whether the proxies still belong to objects that existed when lastSerial() was `last`. A
  /// callback may destroy an object and create another one, which may get the same proxy and the
  /// same unique id.
  template <class... Proxy>
  static bool areFrom(std::uint32_t last, const Proxy*... proxies) {
    return ((static_cast<const GpuLbvhProxy*>(proxies)->m_serial - 1 < last) && ...);
  }

  void endStep() {
    std::swap(m_moved, m_changed);
    m_changed.clear();
    m_lastSerialOfStep = m_lastSerial;
    m_anyDestroyed = false;
  }
  /// Whether both slots have the same objects as in the last step. False if a slot was given back.
  bool wereInLastStep(lbvh::Pair pair) const {
    return pair.second < m_boxes.size() &&
           areFrom(m_lastSerialOfStep, at(pair.first), at(pair.second));
  }
  /// Like wereInLastStep(), but usually faster, and only for a pair of the last step. False if
  /// a callback has destroyed one of the two objects since.
  bool stillLives(lbvh::Pair pair) const { return !m_anyDestroyed || wereInLastStep(pair); }
  bool movedInLastStep(const GpuLbvhProxy* proxy) const { return m_moved.contains(proxy->m_slot); }

 private:
  static constexpr bool kRoundsBoxes = sizeof(btScalar) > sizeof(float);
  static constexpr std::size_t kInTurn = 1024;  ///< proxies whose filters a step reads in turn
  static constexpr std::size_t kSmallWorld =
      4 * kInTurn;  ///< up to this many slots, a step reads all filters

  struct Plane {
    const GpuLbvhProxy* proxy;
    btVector3 normal;
    btScalar constant;
  };
  bool isAbovePlane(const GpuLbvhProxy* proxy, const GpuLbvhProxy* plane) const;
  static bool contains(const lbvh::Aabb& box, const btVector3& lo, const btVector3& hi) {
    bool isInside = true;
    for (int axis = 0; axis < 3; ++axis)
      isInside &= box.min[axis] <= lo[axis] && hi[axis] <= box.max[axis];
    return isInside;
  }
  // Rounds outward, so that no overlap is lost with double-precision Bullet. Exact with float.
  static float roundDown(btScalar x) {
    const auto f = static_cast<float>(x);
    return f > x ? std::nextafter(f, -std::numeric_limits<float>::infinity()) : f;
  }
  static float roundUp(btScalar x) {
    const auto f = static_cast<float>(x);
    return f < x ? std::nextafter(f, std::numeric_limits<float>::infinity()) : f;
  }
  lbvh::Aabb fattened(const btVector3& aabbMin, const btVector3& aabbMax) const {
    const btVector3 margin(m_margin, m_margin, m_margin);
    const btVector3 lo = aabbMin - margin, hi = aabbMax + margin;
    return {{roundDown(lo.x()), roundDown(lo.y()), roundDown(lo.z())},
            {roundUp(hi.x()), roundUp(hi.y()), roundUp(hi.z())}};
  }
  /// @return whether the filter has changed
  bool readFilter(const GpuLbvhProxy& proxy) {
    lbvh::Filter& known = m_filters[proxy.m_slot];
    const lbvh::Filter now = filterOf(&proxy);
    if (known.group == now.group && known.mask == now.mask) return false;
    known = now;
    m_changed.add(proxy.m_slot);
    return true;
  }
  /// Also lets the step offer the proxy's refused pairs again, because the old filter may have
  /// refused them.
  void readFilterInStep(const GpuLbvhProxy& proxy) {
    if (readFilter(proxy)) m_toAsk.add(proxy.m_slot);
  }
  void readFilters(std::size_t begin, std::size_t end);
  std::uint32_t addSlot();
  void resizeSets(std::size_t slots);
  void reserveBoxes(std::size_t all);
  void addBlocks(std::size_t count);

  const btScalar m_margin;
  const bool m_isExact;  ///< boxes() equal the boxes that the proxies were given
  std::vector<GpuLbvhProxyBlocks> m_groups;
  std::vector<GpuLbvhProxyBlock*> m_blocks;  ///< by slot
  std::vector<const GpuLbvhProxyBlock*> m_byAddress;
  std::vector<lbvh::Aabb> m_boxes;
  std::vector<Plane> m_planes;  ///< only a few, so a linear search is fast
  std::vector<lbvh::Filter> m_filters;
  std::size_t m_nextFilter = 0;  ///< the slot whose filter is next in turn
  lbvh::SparseBits m_changed;
  lbvh::SparseBits m_moved;  ///< m_changed of the last step
  lbvh::SparseBits m_toAsk;
  lbvh::SparseBits m_free;  ///< slots below m_boxes.size() without a living proxy
  std::size_t m_count = 0;
  std::uint32_t m_lastSerial = 0, m_lastSerialOfStep = 0;
  int m_largestId = 0;          ///< of all ids since the last reset()
  int m_nextId = 0;             ///< chosen by setNextId(); 0: one more than the largest id
  bool m_anyDestroyed = false;  ///< whether a proxy was destroyed since the last step
};

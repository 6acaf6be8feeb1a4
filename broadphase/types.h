// SPDX-License-Identifier: Zlib
/// @file
/// The nouns of the core: boxes, filters, pairs, tree nodes, and views of arrays of them.
/// Owns no memory, computes nothing. C++17, without dependencies.
#pragma once

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "GpuLbvhBroadphase needs C++17: compile with -std=c++17 or a later standard"
#include "stop-here"  // Compilers go on after #error, but not after a file that is not there.
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// Marks functions for host and device, where a CUDA compiler reads them.
#if defined(__CUDACC__)
#define LBVH_HD __host__ __device__
#else
#define LBVH_HD
#endif

/// The core: boxes in, pairs out. Knows nothing of Bullet.
namespace lbvh {

/// Stands for no node, box, slot or pair where an index is expected.
inline constexpr std::uint32_t kNullIndex = 0xFFFFFFFF;

/// A closed axis-aligned box: touching counts as overlapping.
struct Aabb {
  float min[3];  ///< the least x, y and z
  float max[3];  ///< the greatest
};

/// Bullet's collision filter: two boxes should collide if the group of each meets the other's mask.
struct Filter {
  std::int32_t group;  ///< a bit for each group that the box is in
  std::int32_t mask;   ///< a bit for each group that it should meet
};

/// Two overlapping boxes by index, first < second. One 8-byte access on a GPU.
struct alignas(8) Pair {
  std::uint32_t first;   ///< index of the one box
  std::uint32_t second;  ///< index of the other, which is greater
};
static_assert(sizeof(Pair) == 8 && alignof(Pair) == 8, "Pair is one load on every space");

/// The overlapping pairs in the finder's memory, which is the GPU's or the host's, sorted by
/// (first, second). They are written in the order of the stream, and valid until the next search.
struct DevicePairs {
  const Pair* data = nullptr;            ///< the first min(*count, capacity) are there
  const std::uint64_t* count = nullptr;  ///< in the same memory: how many there are
  std::size_t capacity = 0;              ///< if *count exceeds it, the list is not complete
};

/// A non-owning array (std::span for C++17).
template <class T>
struct View {
  T* data = nullptr;     ///< the first element
  std::size_t size = 0;  ///< how many there are

  /// The first element, for loops.
  LBVH_HD T* begin() const { return data; }
  /// Behind the last element.
  LBVH_HD T* end() const { return data + size; }
  /// @param i must be less than `size`; not checked
  LBVH_HD T& operator[](std::size_t i) const { return data[i]; }
  /// Whether there is no element.
  LBVH_HD bool empty() const { return size == 0; }

  /// A view that may write is also one that only reads.
  template <class U, class = std::enable_if_t<std::is_same_v<const T, U> && !std::is_const_v<T>>>
  LBVH_HD operator View<U>() const {
    return {data, size};
  }
};

/// One node of the tree, 32 bytes, the same for inner nodes and leaves.
///
/// THE INDEX RULE. A tree over n sorted leaves keeps its n - 1 inner nodes at [0, n - 1) and leaf k
/// at n - 1 + k, so the root is node 0 for every n > 0. Inner nodes are numbered as in Karras 2012:
/// a left child has the index of its last leaf, a right child that of its first leaf. The rope of a
/// node whose last leaf is r is the right child whose range begins at leaf r + 1, or `kNullIndex`.
/// So the node after this one in a traversal is `left` if its box was hit, else `rope`, and the
/// right child is the rope of the left child.
struct alignas(16) Node {
  float min[3];        ///< of the box around all leaves below
  std::uint32_t left;  ///< inner node: index of the left child; leaf: ~(box index)
  float max[3];        ///< of the same box
  std::uint32_t rope;  ///< index of the node to go to when this box is not hit

  /// Whether it stands for one box.
  LBVH_HD bool isLeaf() const { return left >> 31 != 0; }  // indices are below 2^31
  /// The index of a leaf's box.
  LBVH_HD std::uint32_t box() const { return ~left; }
};
static_assert(sizeof(Node) == 32, "Node is two 16-byte loads on every space");

/// The tree of one step, in host memory, plus the boxes that are kept out of it.
struct Tree {
  View<const Node> nodes;                    ///< 2 n - 1 nodes over n leaves, or empty
  View<const std::uint32_t> oversizedBoxes;  ///< indices of infinite and giant boxes
};

struct PackedBoxes;

/// The boxes of an update that ran on the host, packed into blocks. Null: the update ran elsewhere
/// or failed. For host/scene_query.h.
struct PackedScene {
  const PackedBoxes* boxes = nullptr;  ///< the finder's
};

/// The one definition of overlap in this project: six closed comparisons. So a box with a NaN
/// overlaps nothing, and an inverted box (min > max) overlaps what satisfies all six.
template <class A, class B>
LBVH_HD inline bool overlap(const A& a, const B& b) {
  return (a.min[0] <= b.max[0]) & (b.min[0] <= a.max[0]) & (a.min[1] <= b.max[1]) &
         (b.min[1] <= a.max[1]) & (a.min[2] <= b.max[2]) & (b.min[2] <= a.max[2]);
}

/// Whether the group of each meets the other's mask.
LBVH_HD inline bool shouldCollide(Filter a, Filter b) {
  return (a.group & b.mask) != 0 && (b.group & a.mask) != 0;
}

/// The same for two boxes by index. Without filters every pair should collide.
LBVH_HD inline bool shouldCollide(View<const Filter> filters, std::uint32_t a, std::uint32_t b) {
  return filters.empty() || shouldCollide(filters[a], filters[b]);
}

/// Whether one of the pair's boxes is flagged. Boxes behind the end of the flags are not.
LBVH_HD inline bool involvesRemoved(Pair pair, View<const std::uint8_t> flags) {
  return (pair.first < flags.size && flags[pair.first] != 0) ||
         (pair.second < flags.size && flags[pair.second] != 0);
}

/// The pair of two boxes, whichever comes first.
LBVH_HD inline Pair makePair(std::uint32_t a, std::uint32_t b) {
  return a < b ? Pair{a, b} : Pair{b, a};
}

/// Whether both are of the same two boxes.
LBVH_HD inline bool operator==(Pair a, Pair b) {
  return a.first == b.first && a.second == b.second;
}
/// Whether they differ in a box.
LBVH_HD inline bool operator!=(Pair a, Pair b) { return !(a == b); }
/// The order in which pairs are sorted: by (first, second).
LBVH_HD inline bool operator<(Pair a, Pair b) {
  return a.first != b.first ? a.first < b.first : a.second < b.second;
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
/// @file
/// Defines the basic types of the core: boxes, filters, pairs, tree nodes, and non-owning views of
/// arrays. C++17, without dependencies.
#pragma once

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "GpuLbvhBroadphase needs C++17: compile with -std=c++17 or a later standard"
#include "stop-here"  // Compilers continue after #error, but not after a missing file.
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>
#if __cplusplus >= 202002L || (defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#include <span>
#include <version>
#endif

/// Marks functions that a CUDA compiler builds for host and device.
#if defined(__CUDACC__)
#define GPULBVH_HD __host__ __device__
#else
#define GPULBVH_HD
#endif
#define LBVH_HD GPULBVH_HD  ///< the name of GPULBVH_HD in version 0.2, to be removed in 0.4

/// The core: finds overlapping pairs of boxes. It does not depend on Bullet.
namespace lbvh {

/// Stands for "no node, box, slot or pair" where an index is expected.
inline constexpr std::uint32_t kNullIndex = 0xFFFFFFFF;

/// A closed axis-aligned box: boxes that touch overlap.
struct Aabb {
  float min[3];  ///< the minimum x, y and z
  float max[3];  ///< the maximum x, y and z
};

/// Bullet's collision filter. Two boxes should collide if each one's group shares a bit with the
/// other's mask.
struct Filter {
  std::int32_t group;  ///< one bit for each group that the box is in
  std::int32_t mask;   ///< one bit for each group that the box collides with
};

/// Two overlapping boxes by index, first < second. A GPU reads a Pair in one 8-byte access.
struct alignas(8) Pair {
  std::uint32_t first;   ///< the smaller index
  std::uint32_t second;  ///< the larger index
};
static_assert(sizeof(Pair) == 8 && alignof(Pair) == 8, "a Pair is one 8-byte load");

/// Makes View::data and View::size both functions and, as in version 0.2, variables. In 0.4 they
/// will only be functions.
template <class Value>
class ViewMember {
 public:
  /// @param value the value that a call returns
  GPULBVH_HD constexpr explicit ViewMember(Value value) : value_(value) {}

  /// @return the value
  GPULBVH_HD constexpr Value operator()() const { return value_; }

  /// For programs that read the variable of version 0.2. @return the value
  [[deprecated("call data() or size()")]] GPULBVH_HD constexpr operator Value() const {
    return value_;
  }
  /// For programs that assign to the variable of version 0.2. Changes the value.
  /// @return this member
  [[deprecated("assign a View")]] GPULBVH_HD constexpr ViewMember& operator=(Value value) {
    value_ = value;
    return *this;
  }

 private:
  Value value_;
};

/// A non-owning array: std::span for C++17. In C++20 it is a borrowed range, and converts to
/// std::span.
template <class T>
struct View {
  GPULBVH_HD constexpr View() : View(nullptr, 0) {}
  /// @param array the first element, or null if there is none
  /// @param count number of elements
  GPULBVH_HD constexpr View(T* array, std::size_t count) : data(array), size(count) {}

  ViewMember<T*> data;           ///< data(): the first element
  ViewMember<std::size_t> size;  ///< size(): number of elements

  /// The first element, for range-based loops.
  GPULBVH_HD constexpr T* begin() const { return data(); }
  /// One past the last element.
  GPULBVH_HD constexpr T* end() const { return data() + size(); }
  /// @param i must be less than size(); not checked
  GPULBVH_HD constexpr T& operator[](std::size_t i) const { return data()[i]; }
  /// Whether the view has no elements.
  GPULBVH_HD constexpr bool empty() const { return size() == 0; }
  /// The first elements. @param count must be at most size(); not checked
  GPULBVH_HD constexpr View first(std::size_t count) const { return {data(), count}; }

  /// Converts to a read-only view.
  template <class U, class = std::enable_if_t<std::is_same_v<const T, U> && !std::is_const_v<T>>>
  GPULBVH_HD constexpr operator View<U>() const {
    return {data(), size()};
  }
};

/// One node of a binary tree: 32 bytes, with the same layout for inner nodes and leaves.
///
/// THE INDEX RULE. In a tree over n sorted leaves, the n - 1 inner nodes are at [0, n - 1), and
/// leaf k is at n - 1 + k. The root is node 0 for every n > 0. Inner nodes are numbered as in
/// Karras 2012. An inner node that is a left child has the number of its last leaf as its index. An
/// inner node that is a right child has the number of its first leaf.
///
/// Let r be the last leaf below a node. The rope of the node is the right child whose range begins
/// at leaf r + 1. If r is the last of all leaves, the rope is `kNullIndex`. A traversal continues
/// from an inner node whose box is hit to `left`, and from any other node to `rope`. The right
/// child of a node is the rope of its left child.
struct alignas(16) Node {
  float min[3];        ///< minimum of the bounds of all leaves below
  std::uint32_t left;  ///< inner node: index of the left child; leaf: ~(box index)
  float max[3];        ///< maximum of these bounds
  std::uint32_t rope;  ///< index of the next node if this one is a leaf or is not hit

  /// Whether the node is a leaf, which has one box.
  GPULBVH_HD bool isLeaf() const { return left >> 31 != 0; }  // indices are below 2^31
  /// The index of the leaf's box.
  GPULBVH_HD std::uint32_t box() const { return ~left; }
};
static_assert(sizeof(Node) == 32, "Node is two 16-byte loads on every space");

/// The nodes of a binary tree in host memory, and the boxes that are not in the tree.
struct Tree {
  View<const Node> nodes;                    ///< 2 n - 1 nodes over n leaves, or empty
  View<const std::uint32_t> oversizedBoxes;  ///< indices of infinite and giant boxes
};

/// The only definition of overlap in this project: six closed comparisons. So a box with a NaN
/// overlaps nothing. An inverted box (min > max) overlaps the boxes for which all six comparisons
/// hold.
template <class A, class B>
GPULBVH_HD inline bool overlap(const A& a, const B& b) {
  return (a.min[0] <= b.max[0]) & (b.min[0] <= a.max[0]) & (a.min[1] <= b.max[1]) &
         (b.min[1] <= a.max[1]) & (a.min[2] <= b.max[2]) & (b.min[2] <= a.max[2]);
}

/// Whether the group of each filter shares a bit with the mask of the other.
GPULBVH_HD inline bool shouldCollide(Filter a, Filter b) {
  return (a.group & b.mask) != 0 && (b.group & a.mask) != 0;
}

/// Whether boxes a and b should collide. Without filters all boxes do.
GPULBVH_HD inline bool shouldCollide(View<const Filter> filters, std::uint32_t a, std::uint32_t b) {
  return filters.empty() || shouldCollide(filters[a], filters[b]);
}

/// Whether a box of the pair is flagged. Boxes past the end of `flags` are not flagged.
GPULBVH_HD inline bool involvesRemoved(Pair pair, View<const std::uint8_t> flags) {
  return (pair.first < flags.size() && flags[pair.first] != 0) ||
         (pair.second < flags.size() && flags[pair.second] != 0);
}

/// The pair of two boxes, which may be passed in either order.
GPULBVH_HD inline Pair makePair(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t smaller = a < b ? a : b;
  return {smaller, a ^ b ^ smaller};
}

/// Whether both pairs have the same two boxes.
GPULBVH_HD inline bool operator==(Pair a, Pair b) {
  return a.first == b.first && a.second == b.second;
}
/// Whether the pairs differ in at least one box.
GPULBVH_HD inline bool operator!=(Pair a, Pair b) { return !(a == b); }
/// The sort order of pairs: by (first, second).
GPULBVH_HD inline bool operator<(Pair a, Pair b) {
  return a.first != b.first ? a.first < b.first : a.second < b.second;
}

}  // namespace lbvh

#if defined(__cpp_lib_ranges)
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<lbvh::View<T>> = true;
#endif

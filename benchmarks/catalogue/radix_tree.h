// SPDX-License-Identifier: Zlib
// Functions for the binary radix tree over sorted codes (Karras 2012), which the builders share.
// They find where a range of leaves is split, and which leaves are below an inner node.
#pragma once

#include <bit>
#include <cstdint>

#include "broadphase/core/atomics.h"
#include "broadphase/lbvh/hierarchy.h"

namespace lbvh::variants {

struct Range {
  std::uint32_t first, last;
};

/// The number of leading bits that are equal in the codes of leaves i and j. If the codes are
/// equal, their positions are compared, too (Karras 2012, section 4). Returns -1 if j is not a
/// leaf.
struct CommonPrefix {
  const std::uint32_t* codes;
  std::uint32_t n;

  GPULBVH_HD int operator()(std::uint32_t i, std::uint32_t j) const {
    if (j >= n) return -1;  // an index of -1 wraps around
    const std::uint32_t difference = codes[i] ^ codes[j];
    return difference != 0 ? leadingZeros(difference) : 32 + leadingZeros(i ^ j);
  }

  GPULBVH_HD static int leadingZeros(std::uint32_t v) {
#if defined(__CUDA_ARCH__)
    return __clz(static_cast<int>(v));
#else
    return std::countl_zero(v);
#endif
  }
};

/// The last leaf of the left child, by binary search. It is the last leaf that has more bits in
/// common with the first leaf than the whole range has.
GPULBVH_HD inline std::uint32_t findSplit(const CommonPrefix& prefix, Range range) {
  const int common = prefix(range.first, range.last);
  std::uint32_t split = range.first, step = range.last - range.first;
  do {
    step = (step + 1) / 2;
    const std::uint32_t further = split + step;
    if (further < range.last && prefix(range.first, further) > common) split = further;
  } while (step > 1);
  return split;
}

/// The leaves below inner node i. Leaf i is one end. The range extends towards the neighbour that
/// shares more bits with leaf i. It has all leaves that share more bits with leaf i than the other
/// neighbour does.
GPULBVH_HD inline Range determineRange(const CommonPrefix& prefix, std::uint32_t i) {
  const bool isForward = prefix(i, i + 1) > prefix(i, i - 1);
  const std::uint32_t direction = isForward ? 1 : ~std::uint32_t{0};  // this is -1
  const int least = prefix(i, i - direction);
  std::uint32_t reach = 2;
  while (prefix(i, i + reach * direction) > least) reach *= 2;
  std::uint32_t length = 0;
  for (std::uint32_t step = reach / 2; step > 0; step /= 2)
    if (prefix(i, i + (length + step) * direction) > least) length += step;
  const std::uint32_t other = i + length * direction;
  return isForward ? Range{i, other} : Range{other, i};
}

/// The node that the rope of a subtree leads to, if the subtree ends with leaf `last`. It is leaf
/// `last` + 1 if that is a right child, else inner node `last` + 1 (Prokopenko and Lebrun-Grandie,
/// Algorithm 2).
GPULBVH_HD inline std::uint32_t ropeBehind(const CommonPrefix& prefix, std::uint32_t last) {
  const std::uint32_t next = last + 1, n = prefix.n;
  if (next >= n) return kNullIndex;
  const bool isLeaf = prefix(next, next - 1) > prefix(next, next + 1);
  return isLeaf ? Numbering{n}.leaf(next) : next;
}

}  // namespace lbvh::variants

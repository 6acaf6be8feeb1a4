// SPDX-License-Identifier: Zlib
// The binary radix tree over sorted codes, seen from a range of leaves: where it splits, and
// (Karras 2012) which range an inner node stands for. Shared by the builders.
#pragma once

#include <bit>
#include <cstdint>

#include "broadphase/core/atomics.h"
#include "broadphase/lbvh/hierarchy.h"

namespace lbvh::variants {

struct Range {
  std::uint32_t first, last;
};

/// Leading bits that two leaves' codes share; equal codes go on with their positions (Karras 2012,
/// section 4). Less than all others where j is no leaf.
struct CommonPrefix {
  const std::uint32_t* codes;
  std::uint32_t n;

  LBVH_HD int operator()(std::uint32_t i, std::uint32_t j) const {
    if (j >= n) return -1;  // -1 wraps around
    const std::uint32_t difference = codes[i] ^ codes[j];
    return difference != 0 ? leadingZeros(difference) : 32 + leadingZeros(i ^ j);
  }

  LBVH_HD static int leadingZeros(std::uint32_t v) {
#if defined(__CUDA_ARCH__)
    return __clz(static_cast<int>(v));
#else
    return std::countl_zero(v);
#endif
  }
};

/// The last leaf of the left child: the highest one that shares more bits with the first than the
/// whole range does, by binary search.
LBVH_HD inline std::uint32_t findSplit(const CommonPrefix& prefix, Range range) {
  const int common = prefix(range.first, range.last);
  std::uint32_t split = range.first, step = range.last - range.first;
  do {
    step = (step + 1) / 2;
    const std::uint32_t further = split + step;
    if (further < range.last && prefix(range.first, further) > common) split = further;
  } while (step > 1);
  return split;
}

/// The leaves below inner node i: i is one end, and the other lies towards the neighbour that i has
/// more in common with, as far as they have more in common than with the other neighbour.
LBVH_HD inline Range determineRange(const CommonPrefix& prefix, std::uint32_t i) {
  const bool isForward = prefix(i, i + 1) > prefix(i, i - 1);
  const std::uint32_t direction = isForward ? 1 : ~std::uint32_t{0};  // that is -1
  const int least = prefix(i, i - direction);
  std::uint32_t reach = 2;
  while (prefix(i, i + reach * direction) > least) reach *= 2;
  std::uint32_t length = 0;
  for (std::uint32_t step = reach / 2; step > 0; step /= 2)
    if (prefix(i, i + (length + step) * direction) > least) length += step;
  const std::uint32_t other = i + length * direction;
  return isForward ? Range{i, other} : Range{other, i};
}

/// The node behind leaf `last`, that a rope leads to: the inner node that begins there, or the leaf
/// if it is a right child itself (Prokopenko and Lebrun-Grandie, Algorithm 2).
LBVH_HD inline std::uint32_t ropeBehind(const CommonPrefix& prefix, std::uint32_t last) {
  const std::uint32_t next = last + 1, n = prefix.n;
  if (next >= n) return kNullIndex;
  const bool isLeaf = prefix(next, next - 1) > prefix(next, next + 1);
  return isLeaf ? Numbering{n}.leaf(next) : next;
}

}  // namespace lbvh::variants

// SPDX-License-Identifier: Zlib
// Defines the host's inner loops over a struct Simd. The loops are compiled once for each
// instruction set: avx2.cpp, avx512.cpp, neon.cpp and baseline.cpp each include this file in their
// own namespace, so that a profiler tells the loops apart. No pragma once: each inclusion defines
// another set of functions. The members of Simd follow. "Which" stands for a mask with a bit for
// each lane.
//
// - Box(block, lane): one box of a block, each coordinate in all lanes
// - load(fours, out): loads four numbers from each of kWidth / 4 places, one after the other
// - overlaps(box, first, stride): which of sixteen boxes, in six arrays `stride` apart, overlap it
// - greater(indices, index): which of sixteen indices are greater than a signed index
// - shouldCollide(filters, lane, others): which of sixteen filters one filter may collide with
// - append(out, in, bits): writes those of sixteen words whose bits are set, and may write garbage
//   after them
// - compareEight(a, b): which of eight pairs differ, and which pairs of a are less than those of b
// - differEight(a, b): which of eight numbers of hits differ
// - kUsesShorts: whether ShortBox and overlaps(shortBox, block) are faster
// - kWidth: how many numbers of 32 bits a register holds
// - kRow: how many indices pair_lists.inl puts into a register
// - leave(): clears the upper halves of the registers

#include "broadphase/host/simd/lanes.inl"

// Vectors are as long as a register. GCC would split a longer one into its lanes in each selection
// by a mask.
constexpr std::uint32_t kWidth = Simd::kWidth;
using Words = Lanes<std::uint32_t, kWidth>;
using Integers = Lanes<std::int32_t, kWidth>;
using Floats = Lanes<float, kWidth>;

#include "broadphase/host/simd/boxes.inl"

#include "broadphase/host/simd/blocks.inl"
#include "broadphase/host/simd/codes.inl"
#include "broadphase/host/simd/flips.inl"
#include "broadphase/host/simd/pair_lists.inl"

#include "broadphase/host/simd/block_search.inl"

#include "broadphase/host/simd/list_search.inl"
#include "broadphase/host/simd/rank_search.inl"

struct Leaving {
  ~Leaving() { Simd::leave(); }
};

/// A function as others call it: it leaves the upper halves of the registers clear. If they were in
/// use, every SSE instruction of the program would be slower from then on, up to two times.
/// Compilers clear them only from -O2 on.
template <auto kFunction>
struct Entry;
template <class Result, class... Arguments, Result (*kFunction)(Arguments...)>
struct Entry<kFunction> {
  static Result call(Arguments... arguments) {
    const Leaving leaving;
    return kFunction(arguments...);
  }
};
template <auto kFunction>
constexpr auto entry = Entry<kFunction>::call;

constexpr SimdKernels kKernels{Simd::kName,
                               Simd::kUsesShorts,
                               entry<measure>,
                               entry<assignKeys<std::uint32_t>>,
                               entry<assignKeys<std::uint64_t>>,
                               entry<packLeaves>,
                               entry<packParent>,
                               entry<packBounds>,
                               entry<search>,
                               entry<searchByRank>,
                               entry<sortLists>,
                               entry<mergeHits>,
                               entry<expandHits>,
                               entry<mergeDelta>,
                               entry<patchPairs>,
                               entry<findFlips>};

// SPDX-License-Identifier: Zlib
// The host's inner loops, written once over a struct Simd and compiled once for each instruction
// set. avx2.cpp, avx512.cpp, neon.cpp and baseline.cpp each include this file in a namespace of
// their own, so that a profiler tells them apart. No pragma once: each inclusion defines another
// set of functions. What Simd offers; each "which" is a mask with a bit for each lane:
//
// - Box(block, lane): one box of a block, each coordinate in all lanes
// - load(fours, out): four numbers from each of kWidth / 4 places, one behind the other
// - overlaps(box, first, stride): which of sixteen boxes overlap it, in six arrays `stride` apart
// - greater(indices, index): which of sixteen indices are greater, all signed
// - shouldCollide(filters, lane, others): which of sixteen filters one filter may collide with
// - append(out, in, bits): writes those of sixteen words whose bits are set, and perhaps more
// - compareEight(a, b): which of eight pairs differ, and which are less
// - kWidth: how many numbers of 32 bits a register holds
// - kRow: how many indices pair_sort.inl puts into a register

#include "broadphase/host/simd/lanes.inl"

// GCC takes a vector that is longer than the registers to pieces, lane by lane, wherever a mask
// chooses.
constexpr std::uint32_t kWidth = Simd::kWidth;
using Words = Lanes<std::uint32_t, kWidth>;
using Integers = Lanes<std::int32_t, kWidth>;
using Floats = Lanes<float, kWidth>;

#include "broadphase/host/simd/boxes.inl"
#include "broadphase/host/simd/codes.inl"
#include "broadphase/host/simd/delta.inl"
#include "broadphase/host/simd/flips.inl"
#include "broadphase/host/simd/pack.inl"
#include "broadphase/host/simd/pair_sort.inl"
#include "broadphase/host/simd/search.inl"

constexpr SimdKernels kKernels{Simd::kName,
                               measure,
                               assignKeys<std::uint32_t>,
                               assignKeys<std::uint64_t>,
                               packLeaves,
                               packParent,
                               packBounds,
                               search,
                               sortLists,
                               mergeDelta,
                               findFlips};

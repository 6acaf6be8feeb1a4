// SPDX-License-Identifier: Zlib
// Compares the old and the new list of a hub: a box with very many pairs, such as the ground. Each
// list becomes a bit set, with one bit for each other box. The bit sets are handled in windows that
// fit in the shared memory of a thread block. So no sort is needed, and bit operations find the
// changes. The old list is sorted already. The new list is first put in the order of windows. Then
// both lists are read from beginning to end, and windows without pairs are skipped.
#pragma once

#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "broadphase/cuda/kernels/pair_lists.cuh"

namespace lbvh {

struct HubMemory {
  static constexpr std::uint32_t kWords = 2048, kWindow = 32 * kWords;
  static constexpr std::uint32_t kRegion = kThreads * kWindow;  ///< one window per thread
  using Scan = cub::BlockScan<unsigned long long, kThreads>;

  std::uint32_t current[kWords], old[kWords];
  typename Scan::TempStorage scan;
};

class HubComparison {
 public:
  __device__ HubComparison(const ListComparison& in, HubMemory& memory, std::uint32_t box)
      : in_(in), memory_(memory), box_(box) {}

  /// @param sorts whether to sort and write the new list; false: it is sorted already
  /// @param place where to write the added and removed pairs; null: the pairs are only counted
  /// @param isAgain whether the block has just compared this hub, and has not used the memory since
  __device__ DeltaSum compare(bool sorts, const DeltaSum* place, bool isAgain = false) {
    const std::uint32_t begin = in_.current.begin(box_), currentEnd = in_.current.begin(box_ + 1);
    current_ = Rest(in_.sorts() ? in_.sortedPairs : in_.current.pairs, begin, currentEnd);
    old_ = Rest(in_.old.pairs, in_.old.begin(box_), in_.old.begin(box_ + 1));
    const bool isHalf = in_.others == nullptr;
    const std::uint32_t least = isHalf ? box_ : 0;  // the second box has the larger index
    const std::uint32_t boxes =
        isHalf ? max(in_.current.boxes, endOfOld()) : static_cast<std::uint32_t>(*in_.others);
    const bool isOneWindow = (boxes - 1) / HubMemory::kWindow == least / HubMemory::kWindow;
    if (sorts && isOneWindow) current_ = {in_.partners, 1, begin, currentEnd};
    DeltaSum sum{};
    for (std::uint32_t region = least / HubMemory::kRegion; region * HubMemory::kRegion < boxes;
         ++region) {
      if (sorts && !isOneWindow) current_.end = current_.at + putInWindows(region, currentEnd);
      const std::uint32_t end = (region + 1) * HubMemory::kRegion;
      for (std::uint32_t next = nextSecond(); next < end; next = nextSecond())
        compareWindow(next / HubMemory::kWindow * HubMemory::kWindow, sorts, place,
                      isAgain && isOneWindow, sum);
    }
    return sum;
  }

 private:
  /// The part of a list that has not been read. The pairs of each window are before those of later
  /// windows.
  struct Rest {
    const std::uint32_t* partners = nullptr;
    std::uint32_t stride = 1, at = 0, end = 0;

    Rest() = default;
    __device__ Rest(const std::uint32_t* list, std::uint32_t each, std::uint32_t b, std::uint32_t e)
        : partners(list), stride(each), at(b), end(e) {}
    __device__ Rest(const Pair* pairs, std::uint32_t b, std::uint32_t e)
        : Rest(&pairs->second, 2, b, e) {}
    __device__ std::uint32_t second(std::uint32_t i) const {
      return partners[std::size_t{i} * stride];
    }
    __device__ std::uint32_t next() const { return at < end ? second(at) : kNullIndex; }
  };

  /// One more than the largest index in the old list. A list from the caller may have indices past
  /// `old.boxes`.
  __device__ std::uint32_t endOfOld() const {
    return old_.at < old_.end ? old_.second(old_.end - 1) + 1 : 0;
  }
  __device__ std::uint32_t nextSecond() const { return min(current_.next(), old_.next()); }

  /// Puts the new pairs of a region in the order of windows, at the beginning of the unread part of
  /// the new list.
  /// @param end where the box's list of new pairs ends
  /// @return how many pairs the region has
  __device__ std::uint32_t putInWindows(std::uint32_t region, std::uint32_t end) {
    std::uint32_t* places = memory_.current;  // by window: where the window's next pair goes
    const auto forSeconds = [&](const auto& f) {
      for (std::uint32_t i = in_.current.begin(box_) + threadIdx.x; i < end; i += kThreads) {
        const std::uint32_t second = in_.partners[i];
        if (second / HubMemory::kRegion == region)
          f(&places[second / HubMemory::kWindow % kThreads], second);
      }
    };
    places[threadIdx.x] = 0;
    __syncthreads();
    forSeconds([](std::uint32_t* count, std::uint32_t) { atomicAdd(count, 1u); });
    __syncthreads();
    unsigned long long before = 0, all = 0;
    HubMemory::Scan(memory_.scan).ExclusiveSum(places[threadIdx.x], before, all);
    places[threadIdx.x] = current_.at + static_cast<std::uint32_t>(before);
    __syncthreads();
    forSeconds([&](std::uint32_t* place, std::uint32_t second) {
      in_.sortedPairs[atomicAdd(place, 1u)].second = second;
    });
    __syncthreads();
    return static_cast<std::uint32_t>(all);
  }

  /// @param hasBits whether the memory still has the bits of the window; then the window has all
  ///   pairs of the hub
  __device__ void compareWindow(std::uint32_t window, bool sorts, const DeltaSum* place,
                                bool hasBits, DeltaSum& sum) {
    std::uint32_t sorted = current_.at;
    if (hasBits) {
      current_.at = current_.end;
      old_.at = old_.end;
    } else {
      setBits(window);
    }
    for (std::uint32_t word = 0; word < HubMemory::kWords; word += kThreads) {
      const std::uint32_t k = word + threadIdx.x;
      if (!__syncthreads_or((memory_.current[k] | memory_.old[k]) != 0)) continue;
      DeltaSum before = place != nullptr ? *place : DeltaSum{};
      before += sum;
      sum += compareWords(k, window + 32 * k, sorts, sorted, place != nullptr, before);
    }
  }

  __device__ void setBits(std::uint32_t window) {
    for (std::uint32_t i = threadIdx.x; i < HubMemory::kWords; i += kThreads)
      memory_.current[i] = memory_.old[i] = 0;
    __syncthreads();
    setBits(memory_.current, window, current_, [](std::uint32_t) { return true; });
    setBits(memory_.old, window, old_, [&](std::uint32_t second) {
      return in_.counts({box_, second});
    });
  }

  /// Sets the bits of the pairs in the window, and moves `rest` past the window. Afterwards all
  /// threads see all bits.
  template <class F>
  __device__ void setBits(std::uint32_t* words, std::uint32_t window, Rest& rest,
                          const F& counts) const {
    // Number of reads that a thread starts together, to hide latency when only one block runs.
    constexpr int kEach = 4;
    while (rest.at < rest.end) {
      std::uint32_t bits[kEach];
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        const std::uint32_t i = rest.at + k * kThreads + threadIdx.x;
        // Threads past the end read the last element again, so that there is no branch.
        const std::uint32_t second = rest.second(min(i, rest.end - 1));
        bits[k] = i < rest.end ? second - window : HubMemory::kWindow;
      }
      const auto isIn = [&](int k) { return bits[k] < HubMemory::kWindow; };
#pragma unroll
      for (int k = 0; k < kEach; ++k)
        if (isIn(k) && counts(window + bits[k])) atomicOr(&words[bits[k] / 32], 1u << bits[k] % 32);
      if (__syncthreads_and(isIn(kEach - 1))) {
        rest.at += kEach * kThreads;
        continue;
      }
#pragma unroll
      for (int k = 0; k < kEach; ++k)
        rest.at += static_cast<std::uint32_t>(__syncthreads_count(isIn(k)));
      return;
    }
  }

  /// Compares one word of each bit set per thread.
  /// @param sorted where the next pair of the new list goes; advanced by the number of pairs
  __device__ DeltaSum compareWords(std::uint32_t word, std::uint32_t first, bool sorts,
                                   std::uint32_t& sorted, bool writes, DeltaSum place) const {
    const std::uint32_t current = memory_.current[word], old = memory_.old[word];
    const std::uint32_t added = current & ~old, removed = old & ~current;
    constexpr int kField = 16;  // bits of a count, which is at most 4,096 over all threads
    const auto count = [](std::uint32_t bits, int field) {
      return static_cast<unsigned long long>(__popc(bits)) << field * kField;
    };
    unsigned long long before = 0, all = 0;
    HubMemory::Scan(memory_.scan)
        .ExclusiveSum(count(current, 0) | count(added, 1) | count(removed, 2), before, all);
    __syncthreads();
    const auto field = [](unsigned long long counts, int k) {
      return static_cast<std::uint32_t>(counts >> k * kField) & 0xFFFF;
    };
    if (sorts)
      forBits(current, first, sorted + field(before, 0),
              [&](std::uint32_t at, Pair pair) { in_.sortedPairs[at] = pair; });
    if (writes) {
      forBits(added, first, place.added() + field(before, 1),
              [&](std::uint32_t at, Pair pair) { in_.put(in_.added, at, pair); });
      forBits(removed, first, place.removed() + field(before, 2),
              [&](std::uint32_t at, Pair pair) { in_.put(in_.removed, at, pair); });
    }
    sorted += field(all, 0);
    return DeltaSum::of(field(all, 1), field(all, 2));
  }

  template <class F>
  __device__ void forBits(std::uint32_t bits, std::uint32_t first, std::uint32_t at,
                          const F& f) const {
    for (; bits != 0; bits &= bits - 1) f(at++, Pair{box_, first + lowestBit(bits)});
  }

  const ListComparison& in_;
  HubMemory& memory_;
  const std::uint32_t box_;
  Rest current_{}, old_{};
};

}  // namespace lbvh

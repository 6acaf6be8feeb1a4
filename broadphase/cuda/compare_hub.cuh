// The lists of a box with very many pairs, such as the ground: a bit for each other box, in windows
// that fit a block's shared memory. So they need no sort, and what differs is an exclusive or.
#pragma once

#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "broadphase/cuda/list_comparison.cuh"

namespace lbvh {

struct HubMemory {
  static constexpr std::uint32_t kWords = 2048, kWindow = 32 * kWords;
  using Scan = cub::BlockScan<unsigned long long, kThreads>;

  std::uint32_t fresh[kWords], old[kWords];
  typename Scan::TempStorage scan;
};

struct HubComparison {
  const ListComparison& in;
  HubMemory& memory;
  std::uint32_t box;

  /// @param sorts whether to write the new list, sorted
  /// @param place where to write the pairs added and removed, or null: they are counted only
  __device__ DeltaSum compare(bool sorts, const DeltaSum* place) const {
    std::uint32_t sorted = in.fresh.begin(box);
    DeltaSum sum{};
    const std::uint32_t boxes = max(in.fresh.boxes, endOfOld());
    for (std::uint32_t window = box + 1; window < boxes; window += HubMemory::kWindow) {
      __syncthreads();  // the last one may still be read
      fill(window);
      for (std::uint32_t word = 0; word < HubMemory::kWords; word += kThreads) {
        const std::uint32_t base = window + 32 * word;
        if (base >= boxes) break;
        DeltaSum before = place != nullptr ? *place : DeltaSum{};
        before += sum;
        sum += compareWords(word, base, sorts, sorted, place != nullptr, before);
      }
    }
    return sum;
  }

 private:
  /// Behind the last second box. Lists that were handed in may name boxes behind `old.boxes`.
  __device__ std::uint32_t endOfOld() const {
    const std::uint32_t end = in.old.begin(box + 1);
    return in.old.begin(box) < end ? in.old.pairs[end - 1].second + 1 : 0;
  }

  __device__ void fill(std::uint32_t window) const {
    for (std::uint32_t i = threadIdx.x; i < HubMemory::kWords; i += kThreads)
      memory.fresh[i] = memory.old[i] = 0;
    __syncthreads();
    const auto set = [&](std::uint32_t* words, std::uint32_t second) {
      const std::uint32_t bit = second - window;  // wraps around for those before
      if (bit < HubMemory::kWindow) atomicOr(&words[bit / 32], 1u << bit % 32);
    };
    const std::uint32_t freshEnd = in.fresh.begin(box + 1), oldEnd = in.old.begin(box + 1);
    for (std::uint32_t i = in.fresh.begin(box) + threadIdx.x; i < freshEnd; i += kThreads)
      set(memory.fresh, in.freshSecond(i));
    for (std::uint32_t i = in.old.begin(box) + threadIdx.x; i < oldEnd; i += kThreads)
      if (in.counts(in.old.pairs[i])) set(memory.old, in.old.pairs[i].second);
    __syncthreads();
  }

  /// A word for each thread. @param sorted where the next pair of the new list goes; moved on
  __device__ DeltaSum compareWords(std::uint32_t word, std::uint32_t base, bool sorts,
                                   std::uint32_t& sorted, bool writes, DeltaSum place) const {
    const std::uint32_t fresh = memory.fresh[word + threadIdx.x];
    const std::uint32_t old = memory.old[word + threadIdx.x];
    const std::uint32_t added = fresh & ~old, removed = old & ~fresh;
    constexpr int kField = 16;  // no more than 4,096 in all words
    const auto count = [](std::uint32_t bits, int field) {
      return static_cast<unsigned long long>(__popc(bits)) << field * kField;
    };
    unsigned long long before = 0, all = 0;
    HubMemory::Scan(memory.scan)
        .ExclusiveSum(count(fresh, 0) | count(added, 1) | count(removed, 2), before, all);
    __syncthreads();
    const auto field = [](unsigned long long counts, int k) {
      return static_cast<std::uint32_t>(counts >> k * kField) & 0xFFFF;
    };
    const std::uint32_t first = base + 32 * threadIdx.x;
    if (sorts)
      forBits(fresh, first, sorted + field(before, 0),
              [&](std::uint32_t at, Pair pair) { in.sortedPairs[at] = pair; });
    if (writes) {
      forBits(added, first, place.added() + field(before, 1),
              [&](std::uint32_t at, Pair pair) { in.put(in.added, at, pair); });
      forBits(removed, first, place.removed() + field(before, 2),
              [&](std::uint32_t at, Pair pair) { in.put(in.removed, at, pair); });
    }
    sorted += field(all, 0);
    return DeltaSum::of(field(all, 1), field(all, 2));
  }

  template <class F>
  __device__ void forBits(std::uint32_t bits, std::uint32_t first, std::uint32_t at,
                          const F& f) const {
    for (; bits != 0; bits &= bits - 1) f(at++, Pair{box, first + lowestBit(bits)});
  }
};

}  // namespace lbvh

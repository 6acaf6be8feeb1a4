// SPDX-License-Identifier: Zlib
// Stages 1 to 6 on an NVIDIA GPU, each launched for what the plan says (step_plan.h), and the
// buffers between them. Base of step.cuh and of scene_search.cuh.
#pragma once

#include <algorithm>
#include <cstdint>

#include "broadphase/core/limits.h"
#include "broadphase/cuda/blocks.cuh"
#include "broadphase/cuda/kernels/block_search.cuh"
#include "broadphase/cuda/kernels/compare_lists.cuh"
#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/cuda/runtime/space.cuh"
#include "broadphase/cuda/step_plan.h"

namespace lbvh {

class CudaStages : protected CudaBlocks {
 protected:
  explicit CudaStages(const CudaSpaceOptions& options) : CudaBlocks(options) {}
  ~CudaStages() = default;

  /// Two counts share a word, see DeltaSum.
  static constexpr std::size_t kMostPairs = (std::size_t{1} << DeltaSum::kBits) - 1;
  static_assert(kMostPairs == kMostCountable);

  /// What can be counted, of what the caller allows.
  static std::uint64_t limitOf(std::uint64_t maxPairs) {
    return std::min<std::uint64_t>(maxPairs, kMostPairs);
  }

  /// Stages 1 to 4, and what later stages count in is cleared.
  /// @param compared boxes of which new or old lists are compared
  LeafBlocks packBoxes(View<const Aabb> boxes, const StepArguments* arguments,
                       std::size_t compared) {
    const View<std::uint32_t> counts = lists_[1 - current_].offsets.ensure(boxes.size + 1);
    measure(boxes, arguments, counts, chainsFor(boxes.size, compared).words);
    if (plan_.order.sorts()) orderByCode(boxes);
    return pack(boxes, nullptr);
  }
  void orderByCode(View<const Aabb> boxes) {
    if (plan_.bits == 10)
      order<std::uint32_t>(boxes, plan_.bits);
    else
      order<std::uint64_t>(boxes, plan_.bits);
  }

  /// Stage 5: pairs in no order, counted in the header, and if there are counts those of each first
  /// box, too.
  /// @param worlds null: there is one
  void findPairs(const LeafBlocks& leaves, std::size_t boxes, const WorldSlots* worlds,
                 const FoundPairs& out) {
    const auto timer = timed("traversal", &StepStats::traversalMs);
    FindBlockPairs search{leaves, out, header(), FindBlockPairs::partsFor(boxes)};
    if (worlds != nullptr) search.worlds = *worlds;
    space_.launch(search.blocks(), kThreads,
                  worlds != nullptr ? findBlockPairsKernel<true> : findBlockPairsKernel<false>,
                  search);
  }

  /// Stage 6: the counts become the lists' offsets, and the pairs' second boxes lie by their first,
  /// the lists one behind the other, unsorted.
  /// @param lists how many there are; new or old lists of `compared` are compared afterwards
  void scatter(const FoundPairs& found, std::size_t lists, std::size_t compared,
               std::uint32_t* seconds) {
    const auto timer = timed("pair sort", &StepStats::pairSortMs);
    const View<std::uint32_t> offsets{found.counts, lists + 1};
    const Chains chains = chainsFor(lists, compared);
    space_.launch(SumCounts::tiles(offsets.size), kThreads, sumCountsKernel,
                  SumCounts{offsets, chains.sum});
    space_.forEach(found.room.size, ScatterPairs{found.room, found.count, found.places,
                                                 found.otherPlaces, offsets.data, seconds});
  }

  /// Stages 6 and 7: the lists sorted, and compared with those of the last step.
  void compareLists(ListComparison comparison) {
    const std::size_t boxes = std::max(comparison.fresh.boxes, comparison.old.boxes);
    comparison.chain = chainsFor(comparison.fresh.boxes, boxes).compare;
    space_.launch(ListComparison::tiles(boxes), kThreads, compareListsKernel, comparison);
  }

  static unsigned long long* countOf(std::uint64_t* count) {
    return reinterpret_cast<unsigned long long*>(count);
  }

  /// What the blocks of the two kernels that sum tell each other.
  struct Chains {
    View<unsigned long long> words;  ///< of both; 0 before
    TileChain sum, compare;
  };
  Chains chainsFor(std::size_t boxes, std::size_t compared) {
    const std::size_t sums = SumCounts::tiles(boxes + 1);
    const View<unsigned long long> words =
        chainWords_.ensure(2 + sums + ListComparison::tiles(compared));
    unsigned long long* const next = words.data;
    return {words, {next, next + 2}, {next + 1, next + 2 + sums}};
  }

  PairLists listsIn(int which, std::size_t boxes) const {
    return {lists_[which].pairs.data(), lists_[which].offsets.data(),
            static_cast<std::uint32_t>(boxes)};
  }

  struct ListBuffers {
    Buffer<Pair> pairs;
    Buffer<std::uint32_t> offsets;  ///< by box: where its list begins
  };

  StepPlan plan_;
  ListBuffers lists_[2] = {{Buffer<Pair>(space_.memory()), Buffer<std::uint32_t>(space_.memory())},
                           {Buffer<Pair>(space_.memory()), Buffer<std::uint32_t>(space_.memory())}};
  int current_ = 0;  ///< which lists are of the last step
  Buffer<unsigned long long> chainWords_{space_.memory()};
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// Runs a step over a binary tree on the host's cores. Calls the stages of lbvh/ in order. A GPU
// uses the same stages. Each step searches for the pairs of all boxes, and keeps only the pairs. A
// step does not pack the boxes into blocks. Queries between steps do.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "broadphase/core/atomics.h"
#include "broadphase/core/limits.h"
#include "broadphase/core/pipeline.h"
#include "broadphase/core/validate.h"
#include "broadphase/host/pair_history.h"
#include "broadphase/host/parallel/space.h"
#include "broadphase/host/step.h"
#include "broadphase/lbvh/leaf_walk.h"
#include "broadphase/lbvh/tree_stages.h"

namespace lbvh {
namespace {

/// Pairs in the order in which threads find them. Numbers the pairs with the same first box, and
/// counts them.
struct FoundPairs {
  View<Pair> pairs;
  std::uint32_t* places;                ///< by pair: its number among the pairs of its first box
  NeighbourList* byFirst;               ///< by box; the sizes are the counts
  std::uint64_t limit;                  ///< the search stops if it finds more pairs than this
  std::atomic<std::uint64_t> count{0};  ///< may exceed pairs.size()

  /// Appends the pairs of a thread. @return false if the limit is exceeded
  bool append(View<const Pair> more) {
    const std::uint64_t begin = count.fetch_add(more.size(), std::memory_order_relaxed);
    for (std::size_t k = 0; k < more.size() && begin + k < pairs.size(); ++k) {
      pairs[static_cast<std::size_t>(begin + k)] = more[k];
      places[begin + k] = fetchAdd(&byFirst[more[k].first].size, 1u);
    }
    return begin + more.size() <= limit;
  }
};

class HostTreePipeline final : public Pipeline, TreeStages<HostSpace> {
 public:
  HostTreePipeline(int threads, const SimdKernels& kernels)
      : TreeStages(threads), history_(space_, kernels) {}

  void step(const StepInput& input, StepStats& stats) override {
    history_.begin();
    const std::vector<Pair> oldPairs =
        kValidate ? std::vector<Pair>(pairs().begin(), pairs().end()) : std::vector<Pair>();
    measure(input.boxes, stats);
    buildNodes(input.boxes, header()->scene.ordinary + header()->scene.oversized, stats);
    const View<const Pair> found = findPairs(input, stats);
    const NeighbourLists lists = scatterPairs(found, input.boxes.size(), stats);
    history_.compare(input, lists, found.size(), stats);
    describe(*header(), stats);
    history_.describe(stats);
    if constexpr (kValidate)
      checkStep(input, {oldPairs.data(), oldPairs.size()}, pairs(), added(), removed());
  }

  void setPreviousPairs(View<const Pair> pairs) override { history_.set(pairs); }
  View<const Pair> pairs() override { return history_.pairs(); }
  View<const Pair> added() const override { return history_.added(); }
  View<const Pair> removed() const override { return history_.removed(); }

  std::size_t memoryBytes() const override {
    return treeBytes() + history_.memoryBytes() + byFirst_.bytes() + places_.bytes() +
           partners_.bytes();
  }

 private:
  static constexpr std::size_t kLeafGrain = 64;  ///< small, because walks differ in length
  static constexpr std::size_t kPairGrain = 8192;

  /// Stage 5: finds the pairs, unsorted. If the memory is too small, the search runs again, with
  /// memory for the number of pairs that the first search counted.
  View<const Pair> findPairs(const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("traversal", stats.traversalMs);
    const std::size_t boxes = input.boxes.size();
    std::size_t capacity = std::max({places_.capacity(), 2 * history_.size(), 8 * boxes});
    for (;;) {
      FoundPairs found{history_.lendFound(capacity), places_.ensure(capacity).data(),
                       byFirst_.ensure(boxes).data(), input.maxPairs};
      space_.forEach(boxes, [&](std::uint32_t i) { found.byFirst[i] = {0, 0}; });
      walkAll(input.filters, found);
      requireAtMost(input.maxPairs, found.count);
      const auto count = static_cast<std::size_t>(found.count);
      if (count <= capacity) return {found.pairs.data(), count};
      capacity = count;
    }
  }

  void walkAll(View<const Filter> filters, FoundPairs& found) {
    constexpr std::size_t kBatch = 256;  // pairs that a thread collects before it appends them
    const std::size_t leaves = header()->scene.ordinary + header()->scene.oversized;
    space_.tasks().forWorkers(
        leaves, kLeafGrain, [&](std::size_t, std::size_t begin, std::size_t end) {
          Pair mine[kBatch];
          std::size_t size = 0;
          for (std::size_t leaf = begin; leaf < end; ++leaf) {
            for (LeafWalk walk = LeafWalk::from(nodes_[leaves - 1 + leaf]); !walk.isOver();) {
              const Node& node = nodes_[walk.at];
              if (!walk.visit(node) || !shouldCollide(filters, walk.box, node.box())) continue;
              mine[size++] = makePair(walk.box, node.box());
              if (size < kBatch) continue;
              if (!found.append({mine, size})) return false;
              size = 0;
            }
          }
          return found.append({mine, size});
        });
  }

  /// Begins stage 6: writes the second box of each pair to the list of its first box. The
  /// lists are not sorted yet.
  NeighbourLists scatterPairs(View<const Pair> found, std::size_t boxes, StepStats& stats) {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    const NeighbourLists lists{partners_.ensure(found.size()), byFirst_.data()};
    std::uint64_t start = 0;
    for (std::size_t i = 0; i < boxes; ++i) {
      lists.byBox[i].start = start;
      start += lists.byBox[i].size;
    }
    space_.tasks().forRanges(found.size(), kPairGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        const std::uint64_t place = lists.byBox[found[k].first].start + places_.data()[k];
        lists.indices[static_cast<std::size_t>(place)] = found[k].second;
      }
    });
    return lists;
  }

  PairHistory history_;
  HostBuffer<NeighbourList> byFirst_;
  HostBuffer<std::uint32_t> places_;    ///< by found pair: its position in its first box's list
  HostBuffer<std::uint32_t> partners_;  ///< the lists: second boxes, grouped by first box
};

}  // namespace

std::unique_ptr<Pipeline> makeHostTreePipeline(int threads, const SimdKernels& kernels) {
  return std::make_unique<HostTreePipeline>(threads, kernels);
}

}  // namespace lbvh

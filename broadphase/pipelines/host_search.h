// Stages 1 to 6 of a step on the host's cores: sorted pairs of boxes, each stage timed. Boxes are
// ordered as for a tree, but packed into blocks that are searched by vectors (host/). While most
// boxes rest, only the others are ordered, packed and searched for (host/moving_set.h). Base of the
// host's pipeline. Keeps no pairs.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "broadphase/exec/host/space.h"
#include "broadphase/host/build_blocks.h"
#include "broadphase/host/find_neighbours.h"
#include "broadphase/host/merge_pairs.h"
#include "broadphase/host/moving_set.h"
#include "broadphase/host/order.h"
#include "broadphase/host/sort_neighbours.h"
#include "broadphase/pipelines/limits.h"
#include "broadphase/pipelines/pipeline.h"
#include "broadphase/pipelines/tree_stages.h"

namespace lbvh {

class HostSearch : protected TreeStages<HostSpace> {
 protected:
  HostSearch(int threads, const SimdKernels& kernels)
      : TreeStages(threads),
        order_(space_.tasks(), kernels),
        allBlocks_(space_.tasks(), kernels),
        movingBlocks_(space_.tasks(), kernels),
        movingSet_(space_.tasks()),
        search_(space_.tasks(), kernels),
        neighbourSort_(space_.tasks(), kernels) {}
  ~HostSearch() = default;

  struct Places {
    View<const Pair> known;  ///< what the last search found that was kept
    Scratch& spare;          ///< of the search
    Scratch& out;            ///< of what it finds
  };

  /// @return the pairs of the boxes, sorted, in `places.out`
  View<Pair> find(const StepInput& input, const Places& places, StepStats& stats) {
    mostRest_ = updateMovingSet(input, stats);
    return mostRest_ ? findMoving(input, places, stats) : findAll(input, places, stats);
  }

  /// The next search may build on what the last one has found.
  void keepFound() {
    if (!mostRest_) movingSet_.reset();
  }
  /// It may not.
  void forgetFound() { movingSet_.invalidate(); }

  /// Of the last search.
  PackedScene searched() const {
    return {&allBlocks_.packed(), mostRest_ ? &movingBlocks_.packed() : nullptr};
  }

  std::size_t searchBytes() const {
    return treeBytes() + order_.memoryBytes() + allBlocks_.memoryBytes() +
           movingBlocks_.memoryBytes() + movingSet_.memoryBytes() + search_.memoryBytes() +
           neighbourSort_.memoryBytes() + merge_.memoryBytes() + movingBoxes_.bytes() +
           words_.capacity() * sizeof(std::uint64_t) + spareWords_.bytes();
  }

  /// All of a block.
  static View<Pair> lend(Scratch& block, std::size_t n) {
    block.reset(scratchBytes<Pair>(n));
    return block.lend<Pair>("pairs", n);
  }

 private:
  /// Whether enough boxes rest that only the others must be searched for.
  bool updateMovingSet(const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    return movingSet_.update(input, allBlocks_);
  }

  /// Stages 1 to 6, for all boxes.
  View<Pair> findAll(const StepInput& input, const Places& places, StepStats& stats) {
    const std::size_t n = input.boxes.size;
    reserveScratch(n, n);
    orderBoxes(input.boxes, stats);
    pack(allBlocks_, input, stats);
    const PackedBoxes& all = allBlocks_.packed();
    const Scratch::Frame frame(scratch_);
    NeighbourLists lists{{}, scratch_.lend<NeighbourList>("neighbour lists", n).data};
    const std::size_t found = findNeighbours(all, all, lists, input.maxPairs, places, stats);
    const View<Pair> sorted = sortNeighbours(lists, n, lend(places.out, found), stats);
    describe(*header(), stats);
    stats.searched = n;
    return sorted;
  }

  /// Stages 1 to 6, for the boxes that move: among themselves, and with those that rest.
  View<Pair> findMoving(const StepInput& input, const Places& places, StepStats& stats) {
    const View<const std::uint32_t> moving = movingSet_.moving();
    const View<Aabb> boxes = movingBoxes_.ensure(moving.size);
    for (std::size_t k = 0; k < moving.size; ++k) boxes[k] = input.boxes[moving[k]];
    reserveScratch(moving.size, input.boxes.size);
    orderBoxes(boxes, stats);
    for (std::uint32_t& id : View<std::uint32_t>{ids_.data(), moving.size}) id = moving[id];
    pack(movingBlocks_, input, stats);

    const PairWords format{static_cast<int>(std::bit_width(movingSet_.indices()))};
    words_.clear();
    findWords(movingBlocks_.packed(), format, input.maxPairs, places, stats);
    findWords(allBlocks_.packed(), format, input.maxPairs, places, stats);
    describe(*header(), stats);
    stats.oversizedBoxes += allBlocks_.packed().oversized.size;
    stats.nanBoxes += allBlocks_.packed().nan.size;
    stats.searched = moving.size;
    return mergeWords(format, input.maxPairs, places, stats);
  }

  /// Room for the sort of `keys` boxes, and later for the lists of `lists` boxes.
  void reserveScratch(std::size_t keys, std::size_t lists) {
    scratch_.reset(
        std::max(scratchBytes<std::uint32_t>(keys) + 2 * scratchBytes<std::uint64_t>(keys),
                 scratchBytes<NeighbourList>(lists)));
  }

  /// So few boxes are searched sooner than they are ordered.
  static constexpr std::size_t kFew = 256;

  /// Stages 1 to 3: as for a tree, but along another curve.
  void orderBoxes(View<const Aabb> boxes, StepStats& stats) {
    StepHeader* header = header_.ensure(1).data;
    if (boxes.size <= kFew) return listByClass(boxes, stats);
    {
      const auto timer = space_.timed("bounds", stats.boundsMs);
      header->scene = order_.measure(boxes);
      ChooseGrid{boxes, nullptr, header}(0);
    }
    ids_.ensure(boxes.size);
    const Scratch::Frame frame(scratch_);
    if (header->grid.bits == 10)
      sortByWords(assignKeys<std::uint32_t>(boxes, stats), stats);
    else
      sortByKeys(assignKeys<std::uint64_t>(boxes, stats), stats);
  }

  /// As the order begins: the ordinary boxes, then the oversized ones, then those with a NaN.
  void listByClass(View<const Aabb> boxes, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    SceneBounds scene{};
    std::uint32_t* ids = ids_.ensure(boxes.size).data;
    const auto list = [&](BoxClass boxClass) {
      std::uint32_t* const begin = ids;
      for (std::uint32_t i = 0; i < boxes.size; ++i)
        if (classify(boxes[i]) == boxClass) *ids++ = i;
      return static_cast<std::uint32_t>(ids - begin);
    };
    scene.ordinary = list(BoxClass::ordinary);
    const bool isAll = scene.ordinary == boxes.size;
    scene.oversized = isAll ? 0 : list(BoxClass::oversized);
    scene.nan = isAll ? 0 : list(BoxClass::nan);
    *header() = {};
    header()->scene = scene;
    header()->grid.bits = 0;
  }

  template <class Key>
  View<Key> assignKeys(View<const Aabb> boxes, StepStats& stats) {
    const auto timer = space_.timed("codes", stats.codesMs);
    const View<Key> keys = scratch_.lend<Key>("keys", boxes.size);
    order_.assignKeys(boxes, header()->grid, keys.data, ids_.data());
    return keys;
  }

  /// Key and index in one word.
  void sortByWords(View<const std::uint32_t> keys, StepStats& stats) {
    const auto timer = space_.timed("sort", stats.sortMs);
    const Scratch::Frame frame(scratch_);
    const auto words = scratch_.lend<std::uint64_t>("words", keys.size);
    const auto spare = scratch_.lend<std::uint64_t>("spare words", keys.size);
    space_.orderByKey(keys, {ids_.data(), keys.size}, words.data, spare.data,
                      AssignCodes<std::uint32_t>::kKeyBits);
  }

  void sortByKeys(View<std::uint64_t> keys, StepStats& stats) {
    const auto timer = space_.timed("sort", stats.sortMs);
    sort(keys, AssignCodes<std::uint64_t>::lowestBit(header()->grid.bits));
  }

  /// Stage 4: blocks.
  void pack(BlockBuilder& blocks, const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    blocks.pack(input.boxes, input.filters, ids_.data(), header()->scene, header()->grid.bits == 0);
  }

  /// Stage 5: lists of neighbours.
  std::size_t findNeighbours(const PackedBoxes& queries, const PackedBoxes& targets,
                             NeighbourLists& lists, std::uint64_t maxPairs, const Places& places,
                             StepStats& stats) {
    const auto timer = space_.timed("traversal", stats.traversalMs);
    // Eight a box at first: what is not touched costs nothing, and growing costs a second run.
    std::size_t room = places.known.size == 0 ? 8 * queries.boxes.size : 2 * places.known.size;
    for (;;) {
      places.spare.reset(scratchBytes<std::uint32_t>(room));
      lists.indices = places.spare.lendRest<std::uint32_t>("neighbours");
      const std::uint64_t found = search_.find(queries, targets, lists, maxPairs);
      requireAtMost(maxPairs, found);
      if (found <= lists.indices.size) return static_cast<std::size_t>(found);
      room = 2 * static_cast<std::size_t>(found);  // for the added pairs, too
    }
  }

  /// Stage 6 for all boxes.
  View<Pair> sortNeighbours(const NeighbourLists& lists, std::size_t boxes, View<Pair> sorted,
                            StepStats& stats) {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    neighbourSort_.writePairs(lists, boxes, sorted);
    return sorted;
  }

  /// Stages 5 and 6 for the boxes that move and some targets: appends their pairs as words.
  void findWords(const PackedBoxes& targets, PairWords format, std::uint64_t maxPairs,
                 const Places& places, StepStats& stats) {
    const PackedBoxes& queries = movingBlocks_.packed();
    const Scratch::Frame frame(scratch_);
    NeighbourLists lists{{},
                         scratch_.lend<NeighbourList>("neighbour lists", queries.boxes.size).data};
    const std::size_t found = findNeighbours(queries, targets, lists, maxPairs, places, stats);
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    words_.resize(words_.size() + found);
    neighbourSort_.writeWords(lists, movingSet_.moving(), format,
                              words_.data() + words_.size() - found);
  }

  /// Stage 6 for the boxes that move: their pairs, sorted, among those of the boxes that rest.
  View<Pair> mergeWords(PairWords format, std::uint64_t maxPairs, const Places& places,
                        StepStats& stats) {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    const View<std::uint64_t> words{words_.data(), words_.size()};
    const std::uint64_t* sorted =
        space_.sortWords(words, spareWords_.ensure(words.size).data, 2 * format.indexBits);
    const auto rests = [this](Pair pair) {
      const bool first = movingSet_.isMoving(pair.first), second = movingSet_.isMoving(pair.second);
      return !(first | second);
    };
    const View<Pair> room = lend(places.out, places.known.size + words.size);
    const View<Pair> merged =
        merge_.merge(space_.tasks(), places.known, rests, {sorted, words.size}, format, room.data);
    requireAtMost(maxPairs, merged.size);
    return merged;
  }

  CurveOrder order_;
  BlockBuilder allBlocks_;     ///< of all boxes; later of those that rest
  BlockBuilder movingBlocks_;  ///< of the others
  MovingSet movingSet_;
  NeighbourSearch search_;
  NeighbourSort neighbourSort_;
  PairMerge merge_;
  Buffer<Aabb> movingBoxes_;
  std::vector<std::uint64_t> words_;  ///< pairs of the boxes that move
  Buffer<std::uint64_t> spareWords_;
  bool mostRest_ = false;  ///< in the last search
};

}  // namespace lbvh

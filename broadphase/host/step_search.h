// SPDX-License-Identifier: Zlib
// Stages 1 to 6 of a step on the host's cores: pairs of boxes, each stage timed. Boxes are ordered
// as for a tree, but packed into blocks that are searched by vectors (host/). Base of the host's
// pipeline. Keeps no pairs.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

#include "broadphase/core/limits.h"
#include "broadphase/core/pipeline.h"
#include "broadphase/core/prefetch.h"
#include "broadphase/host/build_blocks.h"
#include "broadphase/host/find_neighbours.h"
#include "broadphase/host/order.h"
#include "broadphase/host/parallel/space.h"
#include "broadphase/host/sort_neighbours.h"
#include "broadphase/host/verlet/search_budget.h"
#include "broadphase/host/verlet/skin_account.h"
#include "broadphase/lbvh/tree_stages.h"

namespace lbvh {

class HostSearch : protected TreeStages<HostSpace> {
 protected:
  HostSearch(int threads, const SimdKernels& kernels)
      : TreeStages(threads),
        order_(space_.tasks(), kernels),
        allBlocks_(space_.tasks(), kernels),
        leftBlocks_(space_.tasks(), kernels),
        search_(space_.tasks(), kernels),
        neighbourSort_(space_.tasks(), kernels) {}
  ~HostSearch() = default;

  /// So few boxes are searched sooner than they are ordered.
  static constexpr std::size_t kFew = 256;
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
  /// So few boxes that have left are not shared by threads.
  static constexpr std::size_t kFewLeft = 1024;

  /// Memory for a search, and how much it may find.
  struct Room {
    Scratch& indices;      ///< of the neighbours
    std::size_t expected;  ///< neighbours; 0: not known
    std::uint64_t most;    ///< neighbours
  };

  /// Stages 1 to 5, for all boxes.
  /// @param kind in full lists each box is in its own
  /// @param lists valid until the next search, or the next tree
  /// @return false if it has stopped, after so many tests
  /// @throws std::length_error
  bool findAll(const StepInput& input, ListKind kind, const Room& room, std::uint64_t mostTests,
               NeighbourLists& lists, StepStats& stats) {
    const std::size_t n = input.boxes.size;
    reserveScratch(n, n);
    orderBoxes(input.boxes, stats);
    pack(allBlocks_, input, header()->scene, header()->grid.bits == 0, stats);
    describe(*header(), stats);
    mortonBits_ = stats.mortonBits;
    stats.searched = n;
    lists.byBox = scratch_.lend<NeighbourList>("neighbour lists", n).data;
    const bool isWhole = findNeighbours(allBlocks_.packed(), kind, lists, room, mostTests, stats);
    budget_.begin(n, search_.tests());
    return isWhole;
  }

  /// Likewise for a few boxes, which are others now than in the search before; each is in its own
  /// list, too. The others keep their order, until that has cost too much.
  NeighbourLists findLeft(const StepInput& input, View<const std::uint32_t> ids, const Room& room,
                          StepStats& stats) {
    stats.searched = ids.size;
    NeighbourLists lists{};
    orderByPlace(ids, stats);
    const bool isBounded = !allBlocks_.packed().tree.isInIndexOrder;
    const std::uint64_t most = isBounded ? budget_.mostTests(ids.size) : kNoLimit;
    if (replace(input, ids.size, stats) && searchLeft(input, ids.size, room, most, lists, stats)) {
      budget_.spend(ids.size, search_.tests());
      return lists;
    }
    orderAgain(input, stats);
    orderByPlace(ids, stats);
    searchLeft(input, ids.size, room, kNoLimit, lists, stats);
    budget_.beginAgain(search_.tests());
    return lists;
  }

  /// The boxes of the last search, with nothing but their order renewed.
  void orderAgain(const StepInput& input, StepStats& stats) {
    reserveScratch(input.boxes.size, 0);
    orderBoxes(input.boxes, stats);
    pack(allBlocks_, input, header()->scene, header()->grid.bits == 0, stats);
    mortonBits_ = 3 * header()->grid.bits;
    budget_.beginAgain(0);
  }

  /// Once in each step that does not search for all. Whether queries would be faster, so that it
  /// pays, after orderAgain().
  bool isOrderWorn() { return allBlocks_.wears(); }

  /// Stage 6.
  View<Pair> sortNeighbours(const NeighbourLists& lists, std::size_t boxes, View<Pair> sorted,
                            StepStats& stats) {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    neighbourSort_.writePairs(lists, boxes, sorted);
    return sorted;
  }

  /// The scene as the last search of all left it, and as findLeft() has changed it since.
  PackedScene searched() const { return {&allBlocks_.packed()}; }
  StepWork work_;  ///< of the current step

  int mortonBits() const { return mortonBits_; }

  std::size_t searchBytes() const {
    return treeBytes() + order_.memoryBytes() + allBlocks_.memoryBytes() +
           leftBlocks_.memoryBytes() + search_.memoryBytes() + neighbourSort_.memoryBytes() +
           words_.bytes() + spareWords_.bytes();
  }

  /// All of a block.
  static View<Pair> lend(Scratch& block, std::size_t n) {
    block.reset(scratchBytes<Pair>(n));
    return block.lend<Pair>("pairs", n);
  }

 private:
  /// Room for the sort of `keys` boxes, and later for the lists of `lists` boxes.
  void reserveScratch(std::size_t keys, std::size_t lists) {
    scratch_.reset(
        std::max(scratchBytes<std::uint32_t>(keys) + 2 * scratchBytes<std::uint64_t>(keys),
                 scratchBytes<NeighbourList>(lists)));
  }

  /// Stages 1 to 3: as for a tree, but along another curve.
  void orderBoxes(View<const Aabb> boxes, StepStats& stats) {
    StepHeader* header = header_.ensure(1).data;
    work_.ordered += boxes.size;
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
    const int shift = CurveOrder::lowestBit(*header());
    space_.orderByKey(keys, {ids_.data(), keys.size}, words.data, spare.data, shift,
                      AssignCodes<std::uint32_t>::kKeyBits - shift);
  }

  void sortByKeys(View<std::uint64_t> keys, StepStats& stats) {
    const auto timer = space_.timed("sort", stats.sortMs);
    sort(keys, AssignCodes<std::uint64_t>::lowestBit(header()->grid.bits));
  }

  /// Writes the boxes to ids_ in the order of their places in the blocks.
  void orderByPlace(View<const std::uint32_t> ids, StepStats& stats) {
    const auto timer = space_.timed("sort", stats.sortMs);
    allBlocks_.findPlaces();
    const View<std::uint64_t> words = words_.ensure(ids.size);
    space_.tasks().forRanges(ids.size, kFewLeft, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k)
        words[k] = std::uint64_t{ids[k]} << 32 | allBlocks_.placeOf(ids[k]);
    });
    const std::uint64_t* sorted =
        space_.sortWords(words, spareWords_.ensure(ids.size).data,
                         static_cast<int>(std::bit_width(allBlocks_.packed().tree.boxes)));
    const View<std::uint32_t> ordered = ids_.ensure(ids.size);
    for (std::size_t k = 0; k < ids.size; ++k)
      ordered[k] = static_cast<std::uint32_t>(sorted[k] >> 32);
  }

  bool areOrdinary(View<const Aabb> boxes, View<const std::uint32_t> ids) {
    std::atomic<bool> are{true};
    space_.tasks().forRanges(ids.size, kFewLeft, [&](std::size_t begin, std::size_t end) {
      bool all = true;
      forPrefetched(
          boxes.size > kBoxesInCache, end - begin,
          [&](std::size_t k) { all &= classify(boxes[ids[begin + k]]) == BoxClass::ordinary; },
          [&](std::size_t k) { prefetchAll(boxes[ids[begin + k]]); });
      if (!all) are.store(false, std::memory_order_relaxed);
    });
    return are;
  }

  /// Of the first n in ids_: the ordinary boxes first, then the oversized ones, then those with a
  /// NaN.
  SceneBounds sortByClass(View<const Aabb> boxes, std::size_t n) {
    SceneBounds scene{};
    scene.ordinary = static_cast<std::uint32_t>(n);
    if (areOrdinary(boxes, {ids_.data(), n})) return scene;
    std::uint32_t* const end = ids_.data() + n;
    const auto moveToFront = [&](std::uint32_t* begin, BoxClass boxClass) {
      return std::stable_partition(
          begin, end, [&](std::uint32_t id) { return classify(boxes[id]) == boxClass; });
    };
    std::uint32_t* const oversized = moveToFront(ids_.data(), BoxClass::ordinary);
    std::uint32_t* const nan = moveToFront(oversized, BoxClass::oversized);
    scene.ordinary = static_cast<std::uint32_t>(oversized - ids_.data());
    scene.oversized = static_cast<std::uint32_t>(nan - oversized);
    scene.nan = static_cast<std::uint32_t>(end - nan);
    return scene;
  }

  /// Stage 4: blocks.
  void pack(BlockBuilder& blocks, const StepInput& input, const SceneBounds& scene,
            bool inIndexOrder, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    blocks.pack(input.boxes, input.filters, ids_.data(), scene, inIndexOrder);
  }

  /// The first in ids_, in the order of their places.
  /// @return false if too many would be beside the blocks
  bool replace(const StepInput& input, std::size_t count, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    return allBlocks_.replace({ids_.data(), count}, input.boxes, input.filters);
  }

  /// Searches for the first in ids_.
  /// @return false if it has stopped, after so many tests
  bool searchLeft(const StepInput& input, std::size_t count, const Room& room,
                  std::uint64_t mostTests, NeighbourLists& lists, StepStats& stats) {
    pack(leftBlocks_, input, sortByClass(input.boxes, count), false, stats);
    reserveScratch(0, input.boxes.size);
    lists.byBox = scratch_.lend<NeighbourList>("neighbour lists", input.boxes.size).data;
    return findNeighbours(leftBlocks_.packed(), ListKind::full, lists, room, mostTests, stats);
  }

  /// Stage 5: lists of neighbours among all boxes.
  /// @return false if it has stopped, after so many tests
  bool findNeighbours(const PackedBoxes& queries, ListKind kind, NeighbourLists& lists,
                      const Room& room, std::uint64_t mostTests, StepStats& stats) {
    const auto timer = space_.timed("traversal", stats.traversalMs);
    // Eight a box at first: what is not touched costs nothing, and growing costs a second run.
    std::size_t size = room.expected == 0 ? 8 * queries.boxes.size : room.expected;
    for (;;) {
      room.indices.reset(scratchBytes<std::uint32_t>(size));
      lists.indices = room.indices.template lendRest<std::uint32_t>("neighbours");
      const std::uint64_t found =
          search_.find(queries, allBlocks_.packed(), kind, lists, room.most, mostTests);
      const std::uint64_t tests = std::min(search_.tests(), mostTests);
      work_.tests += tests;
      if (search_.tests() > mostTests) return false;
      requireAtMost(room.most, found);
      if (found <= lists.indices.size) {
        lists.indices.size = static_cast<std::size_t>(found);
        return true;
      }
      size = 2 * static_cast<std::size_t>(found);  // for the added pairs, too
      mostTests -= mostTests == kNoLimit ? 0 : tests;
    }
  }

  CurveOrder order_;
  BlockBuilder allBlocks_;
  BlockBuilder leftBlocks_;  ///< of those that are searched for, if not all are
  NeighbourSearch search_;
  SearchBudget budget_;
  NeighbourSort neighbourSort_;
  Buffer<std::uint64_t> words_, spareWords_;
  int mortonBits_ = 0;  ///< when all boxes were last ordered
};

}  // namespace lbvh

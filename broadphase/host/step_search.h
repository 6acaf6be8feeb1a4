// SPDX-License-Identifier: Zlib
// Runs and times stages 1 to 5 of a step on the host's cores. Packs the boxes into blocks along a
// Hilbert curve, and searches the blocks for pairs. Base class of the host's pipeline. Keeps no
// pairs.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "broadphase/core/limits.h"
#include "broadphase/core/pipeline.h"
#include "broadphase/core/prefetch.h"
#include "broadphase/host/blocks.h"
#include "broadphase/host/box_order.h"
#include "broadphase/host/pair_lists.h"
#include "broadphase/host/parallel/space.h"
#include "broadphase/host/ranked_pairs.h"
#include "broadphase/host/search_budget.h"
#include "broadphase/host/verlet/skin_account.h"

namespace lbvh {

class HostSearch {
 protected:
  using Scratch = BoxOrder::Scratch;

  HostSearch(int threads, const SimdKernels& kernels)
      : space_(threads),
        canUseShorts_(kernels.usesShorts),
        order_(space_, kernels),
        allBlocks_(space_.tasks(), kernels),
        escapedBlocks_(space_.tasks(), kernels),
        search_(space_.tasks(), kernels) {}
  ~HostSearch() = default;

  static constexpr std::size_t kMaxUnordered = BoxOrder::kMaxUnordered;
  /// The order is kept only if the added boxes are at most an eighth of the previous boxes.
  static constexpr std::size_t kOldPerNew = 8;
  /// Tests with 16-bit integers are not worth their cost if more than a quarter stay undecided.
  /// This happens if many boxes just touch.
  static constexpr std::uint64_t kTestsPerUnsure = 4;
  /// The first search reserves memory for this many hits per box; most boxes have fewer.
  static constexpr std::size_t kHits = 4;
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
  /// Up to this many escaped boxes are handled by one thread.
  static constexpr std::size_t kEscapedGrain = 1024;

  /// The kind of search for which all boxes are packed. A search by rank finds each pair once. A
  /// search from both sides finds each pair twice, or finds only the pairs of a few boxes.
  enum class PackedFor { ranks, bothSides };

  /// The memory and the limit of a search.
  struct ListMemory {
    Scratch& indices;      ///< memory for the neighbours
    std::size_t expected;  ///< expected number of neighbours; 0: unknown
    std::uint64_t most;    ///< maximum number of neighbours
  };

  /// Runs stages 1 to 5 for all boxes, in a new order. Each box's list contains the box itself.
  /// @param lists valid until the next search
  /// @return false if the search has stopped after `mostTests` tests
  /// @throws std::length_error if there are more than memory.most neighbours
  bool findAll(const StepInput& input, const ListMemory& memory, std::uint64_t mostTests,
               NeighbourLists& lists, StepStats& stats) {
    const std::size_t n = input.boxes.size();
    orderAll(input, PackedFor::bothSides, stats);
    lists.byBox = lendByBox(n);
    const PackedBoxes& all = allBlocks_.packed();
    const bool isWhole = findNeighbours(all, ListKind::full, lists, memory, mostTests, stats);
    budget_.begin(n, search_.tests());
    return isWhole;
  }

  /// Runs stages 1 to 4 for all boxes. A box's rank is its position in the order.
  void orderAll(const StepInput& input, PackedFor search, StepStats& stats) {
    reserveScratch(input.boxes.size(), 0);
    rankBudget_.forget();
    orderBoxes(input, stats);
    packAll(input, search, stats);
    describe(header_, stats);
    mortonBits_ = stats.mortonBits;
    stats.searched = input.boxes.size();
  }

  /// Runs stage 4 for all boxes, in the order of the previous step. Appends new boxes to the order.
  /// @return false if that order cannot be used: boxes were removed, many were added, or the budget
  ///   does not allow it
  bool keepOrder(const StepInput& input, StepStats& stats) {
    if (!rankBudget_.mayKeep() && !isInIndexOrder()) return false;
    const std::size_t n = input.boxes.size(), before = ids_.size();
    if (n < before || n > before + before / kOldPerNew ||
        (n <= kMaxUnordered) != (before <= kMaxUnordered))
      return false;
    for (std::size_t id = before; id < n; ++id) ids_.push_back(static_cast<std::uint32_t>(id));
    const auto isNan = [&](std::uint32_t id) { return classify(input.boxes[id]) == BoxClass::nan; };
    const View<const std::uint32_t> others{ids_.data() + ranks_, n - ranks_};
    if (!std::all_of(others.begin(), others.end(), isNan)) ranks_ = n;
    // Packing reads the boxes by rank. That is slow if the caller's boxes are not in the cache yet.
    if (n <= kBoxesInCache) prefetch(input.boxes.data(), n * sizeof(Aabb));
    packAll(input, PackedFor::ranks, stats);
    describe(header_, stats);
    stats.searched = n;
    return true;
  }

  /// Runs stage 5 for all boxes, by rank.
  /// @param spare memory for hits, if several threads search
  /// @return false if the search has stopped, because the order has degraded
  /// @throws std::length_error if there are more than `mostPairs` pairs
  bool findRanked(RankedPairs& pairs, Scratch& spare, std::uint64_t mostPairs, StepStats& stats) {
    const PackedBoxes& all = allBlocks_.packed();
    const std::size_t blocks = all.tree.leafBlocks;
    RankLists lists{{}, lendByBox(blocks)};
    const auto find = [&](View<BlockHits> hits, std::uint64_t mostTests) {
      lists.hits = hits;
      return search_.findByRank(all, lists, {mostPairs, mostTests});
    };
    const std::size_t last = pairs.last().ranked.hits.size();
    const std::size_t hits = last == 0 ? kHits * ranks_ : last + last / 4;
    const std::uint64_t most = isInIndexOrder() ? kNoLimit : rankBudget_.mostTests(ranks_);
    if (!search<BlockHits>(pairs.foundMemory(spare), hits, most, find, stats)) {
      rankBudget_.stopped();
      return false;
    }
    requireAtMost(mostPairs, search_.rankedPairs());
    const bool isNew = rankBudget_.spend(ranks_, search_.tests());
    if (isNew && search_.unsure() * kTestsPerUnsure > search_.tests()) usesShorts_ = false;
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    requireAtMost(mostPairs, search_.rankedPairs() + pairs.meetOversized(all));
    pairs.join(lists, blocks, static_cast<std::size_t>(search_.rankedPairs()));
    return true;
  }

  /// Runs stages 1 to 4 in a new order. The previous order is then in lastIds(), and
  /// dropNextOrder() restores it.
  void beginNextOrder(const StepInput& input, StepStats& stats) {
    std::swap(ids_, lastIds_);
    orderAll(input, PackedFor::ranks, stats);
  }
  void dropNextOrder() { std::swap(ids_, lastIds_); }

  bool isInIndexOrder() const { return allBlocks_.packed().tree.isInIndexOrder; }

  /// The indices of the boxes, by rank.
  View<const std::uint32_t> ids() const { return {ids_.data(), ids_.size()}; }
  View<const std::uint32_t> lastIds() const { return {lastIds_.data(), lastIds_.size()}; }

  /// Runs stages 3 to 5 for a few boxes that have changed since the last search. Each of their
  /// lists contains the box itself. The order of all boxes is kept until keeping it has cost too
  /// much.
  NeighbourLists findEscaped(const StepInput& input, View<const std::uint32_t> ids,
                             const ListMemory& memory, StepStats& stats) {
    stats.searched = ids.size();
    NeighbourLists lists{};
    orderByPlace(ids, stats);
    const std::uint64_t most = isInIndexOrder() ? kNoLimit : budget_.mostTests(ids.size());
    if (replace(input, ids.size(), stats) &&
        searchEscaped(input, ids.size(), memory, most, lists, stats)) {
      budget_.spend(ids.size(), search_.tests());
      return lists;
    }
    orderAgain(input, stats);
    orderByPlace(ids, stats);
    searchEscaped(input, ids.size(), memory, kNoLimit, lists, stats);
    budget_.beginAgain(search_.tests());
    return lists;
  }

  /// Orders and packs all boxes again, without a search.
  void orderAgain(const StepInput& input, StepStats& stats) {
    reserveScratch(input.boxes.size(), 0);
    orderBoxes(input, stats);
    packAll(input, PackedFor::bothSides, stats);
    mortonBits_ = 3 * header_.grid.bits;
    budget_.beginAgain(0);
  }

  /// Whether the blocks slow queries down so much that orderAgain() is worth its cost. Must be
  /// called once in each step that does not search for the pairs of all boxes.
  bool isOrderWorn() { return allBlocks_.wears(); }

  HostSpace space_;

  /// The blocks of all boxes, with the updates of findEscaped() since they were packed.
  const PackedBoxes* searched() const { return &allBlocks_.packed(); }
  StepWork work_;  ///< work of the current step

  int mortonBits() const { return mortonBits_; }

  std::size_t searchBytes() const {
    return (ids_.capacity() + lastIds_.capacity()) * sizeof(ids_[0]) + fewIds_.bytes() +
           scratch_.bytes() + order_.memoryBytes() + allBlocks_.memoryBytes() +
           escapedBlocks_.memoryBytes() + search_.memoryBytes() + words_.bytes() +
           space_.radixSort().memoryBytes();
  }

  /// Resets the scratch memory, and lends a list for each box.
  NeighbourList* lendByBox(std::size_t boxes) {
    reserveScratch(0, boxes);
    return scratch_.lend<NeighbourList>("neighbour lists", boxes).data();
  }

 private:
  /// Resets the scratch memory, with capacity to sort `keys` boxes or to hold `lists` lists.
  void reserveScratch(std::size_t keys, std::size_t lists) {
    scratch_.reset(std::max(BoxOrder::scratchBytesFor(keys), scratchBytes<NeighbourList>(lists)));
  }

  /// Runs stages 1 to 3.
  void orderBoxes(const StepInput& input, StepStats& stats) {
    const std::size_t n = input.boxes.size();
    work_.ordered += n;
    ids_.resize(n);
    order_.find(input.boxes, input.filters, kMaxUnordered, header_, ids_.data(), scratch_, stats);
    ranks_ = n - header_.scene.nan;
    shortGrid_ = ShortGrid::around(header_.scene);
    usesShorts_ = canUseShorts_ && shortGrid_.isFine(header_.scene);
  }

  /// Runs stage 4.
  void packAll(const StepInput& input, PackedFor search, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    const ShortGrid* const grid = search == PackedFor::ranks && usesShorts_ ? &shortGrid_ : nullptr;
    allBlocks_.pack(input.boxes, input.filters, ids(), ranks_, header_.grid.bits == 0, grid);
    header_.scene.oversized = static_cast<std::uint32_t>(allBlocks_.packed().oversized.size());
    header_.scene.nan = static_cast<std::uint32_t>(allBlocks_.packed().nan.size());
  }

  /// Sorts these boxes by their positions in the blocks, and writes their indices to fewIds_.
  void orderByPlace(View<const std::uint32_t> ids, StepStats& stats) {
    const auto timer = space_.timed("sort", stats.sortMs);
    allBlocks_.findPlaces();
    const View<std::uint64_t> words = words_.ensure(ids.size());
    space_.tasks().forRanges(ids.size(), kEscapedGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k)
        words[k] = std::uint64_t{ids[k]} << 32 | allBlocks_.placeOf(ids[k]);
    });
    const std::uint64_t* sorted = space_.radixSort().words(
        space_.tasks(), words, 0, static_cast<int>(std::bit_width(allBlocks_.packed().tree.boxes)));
    const View<std::uint32_t> ordered = fewIds_.ensure(ids.size());
    for (std::size_t k = 0; k < ids.size(); ++k)
      ordered[k] = static_cast<std::uint32_t>(sorted[k] >> 32);
  }

  /// Updates the first `count` boxes of fewIds_ in the blocks.
  /// @return false if too many boxes would be outside the tree
  bool replace(const StepInput& input, std::size_t count, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    return allBlocks_.replace({fewIds_.data(), count}, input.boxes, input.filters);
  }

  /// Finds the neighbours of the first `count` boxes of fewIds_.
  /// @return false if the search has stopped after `mostTests` tests
  bool searchEscaped(const StepInput& input, std::size_t count, const ListMemory& memory,
                     std::uint64_t mostTests, NeighbourLists& lists, StepStats& stats) {
    {
      const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
      escapedBlocks_.pack(input.boxes, input.filters, {fewIds_.data(), count}, count, false);
    }
    lists.byBox = lendByBox(input.boxes.size());
    return findNeighbours(escapedBlocks_.packed(), ListKind::full, lists, memory, mostTests, stats);
  }

  /// Stage 5: finds the neighbours of the query boxes among all boxes.
  /// @return false if the search has stopped after `mostTests` tests
  bool findNeighbours(const PackedBoxes& queries, ListKind kind, NeighbourLists& lists,
                      const ListMemory& memory, std::uint64_t mostTests, StepStats& stats) {
    const SearchPart part{&queries, &allBlocks_.packed()};
    const auto find = [&](View<std::uint32_t> indices, std::uint64_t most) {
      lists.indices = indices;
      const std::uint64_t found = search_.find({&part, 1}, kind, lists, {memory.most, most});
      requireAtMost(memory.most, search_.tests() > most ? 0 : found);
      lists.indices =
          indices.first(static_cast<std::size_t>(std::min<std::uint64_t>(found, indices.size())));
      return found;
    };
    const std::size_t size = memory.expected == 0 ? 8 * queries.boxes.size() : memory.expected;
    return search<std::uint32_t>(memory.indices, size, mostTests, find, stats);
  }

  /// Repeats the search until the memory is large enough. Untouched memory costs nothing, but
  /// growth costs a second search.
  /// @param find searches, and returns how many elements it has found
  /// @return false if the search has stopped after `mostTests` tests
  template <class T, class Find>
  bool search(Scratch& memory, std::size_t size, std::uint64_t mostTests, const Find& find,
              StepStats& stats) {
    const auto timer = space_.timed("traversal", stats.traversalMs);
    for (;;) {
      memory.reset(scratchBytes<T>(size));
      const View<T> elements = memory.lendRest<T>("neighbours");
      const std::uint64_t found = find(elements, mostTests);
      const std::uint64_t tests = std::min(search_.tests(), mostTests);
      work_.tests += tests;
      if (search_.tests() > mostTests) return false;
      if (found <= elements.size()) return true;
      // Larger than `found`, because PairHistory may later write added pairs to this memory.
      size = 2 * static_cast<std::size_t>(found);
      mostTests -= mostTests == kNoLimit ? 0 : tests;
    }
  }

  const bool canUseShorts_;
  StepHeader header_;
  std::vector<std::uint32_t> ids_;  ///< indices of all boxes, in their order
  std::size_t ranks_ = 0;           ///< number of ranks; the boxes after them in ids_ have a NaN
  std::vector<std::uint32_t> lastIds_;  ///< the order before beginNextOrder()
  RankBudget rankBudget_;
  ShortGrid shortGrid_{};
  bool usesShorts_ = false;
  HostBuffer<std::uint32_t> fewIds_;  ///< indices of the boxes passed to findEscaped()
  Scratch scratch_;                   ///< memory of one or more stages
  BoxOrder order_;
  BlockBuilder allBlocks_;
  BlockBuilder escapedBlocks_;  ///< the boxes of findEscaped(), as queries
  NeighbourSearch search_;
  SearchBudget budget_;
  HostBuffer<std::uint64_t> words_;
  int mortonBits_ = 0;  ///< bits per code when all boxes were last ordered
};

}  // namespace lbvh

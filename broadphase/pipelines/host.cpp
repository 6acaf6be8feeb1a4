// The table of contents of a step on the host's cores: the stages in order, each timed. Boxes are
// ordered as for a tree, but packed into blocks that are searched by vectors (host/). The tree
// itself is built when a query needs it. While most boxes rest, only the others are
// ordered, packed and searched for (host/moving_set.h).
#include "broadphase/pipelines/host.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "broadphase/exec/host/space.h"
#include "broadphase/host/build_blocks.h"
#include "broadphase/host/find_neighbours.h"
#include "broadphase/host/merge_pairs.h"
#include "broadphase/host/moving_set.h"
#include "broadphase/host/order.h"
#include "broadphase/host/pair_delta.h"
#include "broadphase/host/sort_neighbours.h"
#include "broadphase/pipelines/limits.h"
#include "broadphase/pipelines/tree_stages.h"
#include "broadphase/stages/validate.h"

namespace lbvh {
namespace {

class HostPipeline final : public Pipeline, TreeStages<HostSpace> {
 public:
  HostPipeline(int threads, const SimdKernels& kernels)
      : TreeStages(threads),
        order_(space_.tasks(), kernels),
        allBlocks_(space_.tasks(), kernels),
        movingBlocks_(space_.tasks(), kernels),
        movingSet_(space_.tasks()),
        search_(space_.tasks(), kernels),
        neighbourSort_(space_.tasks(), kernels),
        delta_(kernels) {}

  void step(const StepInput& input, StepStats& stats) override {
    added_ = removed_ = {};  // they lie in blocks that are written now
    tree_ = {};
    scene_ = {};
    const std::vector<Pair> before(pairs_.begin(), kValidate ? pairs_.end() : pairs_.begin());
    const bool mostRest = updateMovingSet(input, stats);
    const View<Pair> sorted = mostRest ? findMoving(input, stats) : findAll(input, stats);
    compare(sorted, input.removedObjects, stats);
    if (!mostRest) movingSet_.reset();
    scene_ = {&allBlocks_.packed(), mostRest ? &movingBlocks_.packed() : nullptr};
    stats.pairs = pairs_.size;
    stats.added = added_.size;
    stats.removed = removed_.size;
    stats.capacity = pairBlocks_[current_].bytes() / sizeof(Pair);
    if constexpr (kValidate) validate(input, before);
  }

  void buildTree(View<const Aabb> boxes, StepStats& stats) override {
    tree_ = {};
    measure(boxes, stats);
    const std::size_t leaves = header()->scene.ordinary;
    if (header()->grid.bits == 10)
      buildNodes<std::uint32_t>(boxes, leaves, stats);
    else
      buildNodes<std::uint64_t>(boxes, leaves, stats);
    describe(*header(), stats);
    tree_ = treeOver(header()->scene);
    if constexpr (kValidate) check(whyTreeIsWrong(tree_.nodes, boxes));
  }

  void setPreviousPairs(View<const Pair> pairs) override {
    added_ = removed_ = pairs_ = {};
    scene_ = {};
    movingSet_.invalidate();
    const View<Pair> room = lendPairs("pairs", current_, pairs.size);
    std::copy(pairs.begin(), pairs.end(), room.begin());
    pairs_ = room;
  }

  View<const Pair> pairs() const override { return pairs_; }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }
  Tree tree() const override { return tree_; }
  PackedScene packed() const override { return scene_; }

  std::size_t memoryBytes() const override {
    std::size_t bytes = treeBytes() + order_.memoryBytes() + allBlocks_.memoryBytes() +
                        movingBlocks_.memoryBytes() + movingSet_.memoryBytes() +
                        search_.memoryBytes() + neighbourSort_.memoryBytes() +
                        merge_.memoryBytes() + delta_.memoryBytes() + movingBoxes_.bytes() +
                        words_.capacity() * sizeof(std::uint64_t) + spareWords_.bytes();
    for (const auto& block : pairBlocks_) bytes += block.bytes();
    return bytes;
  }

 private:
  /// Whether enough boxes rest that only the others must be searched for.
  bool updateMovingSet(const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    return movingSet_.update(input, allBlocks_);
  }

  /// Stages 1 to 6, for all boxes.
  View<Pair> findAll(const StepInput& input, StepStats& stats) {
    const std::size_t n = input.boxes.size;
    reserveScratch(n, n);
    orderBoxes(input.boxes, stats);
    pack(allBlocks_, input, stats);
    const PackedBoxes& all = allBlocks_.packed();
    const Scratch::Frame frame(scratch_);
    NeighbourLists lists{{}, scratch_.lend<NeighbourList>("neighbour lists", n).data};
    const std::size_t found = findNeighbours(all, all, lists, input.maxPairs, stats);
    const View<Pair> sorted = sortNeighbours(lists, n, found, stats);
    describe(*header(), stats);
    stats.searched = n;
    return sorted;
  }

  /// Stages 1 to 6, for the boxes that move: among themselves, and with those that rest.
  View<Pair> findMoving(const StepInput& input, StepStats& stats) {
    const View<const std::uint32_t> moving = movingSet_.moving();
    const View<Aabb> boxes = movingBoxes_.ensure(moving.size);
    for (std::size_t k = 0; k < moving.size; ++k) boxes[k] = input.boxes[moving[k]];
    reserveScratch(moving.size, input.boxes.size);
    orderBoxes(boxes, stats);
    for (std::uint32_t& id : View<std::uint32_t>{ids_.data(), moving.size}) id = moving[id];
    pack(movingBlocks_, input, stats);

    const PairWords format{static_cast<int>(std::bit_width(movingSet_.indices()))};
    words_.clear();
    findWords(movingBlocks_.packed(), format, input.maxPairs, stats);
    findWords(allBlocks_.packed(), format, input.maxPairs, stats);
    describe(*header(), stats);
    stats.oversizedBoxes += allBlocks_.packed().oversized.size;
    stats.nanBoxes += allBlocks_.packed().nan.size;
    stats.searched = moving.size;
    return mergeWords(format, input.maxPairs, stats);
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

  /// Stage 5: lists of neighbours, in the block of pairs that is free.
  std::size_t findNeighbours(const PackedBoxes& queries, const PackedBoxes& targets,
                             NeighbourLists& lists, std::uint64_t maxPairs, StepStats& stats) {
    const auto timer = space_.timed("traversal", stats.traversalMs);
    // Eight a box at first: what is not touched costs nothing, and growing costs a second run.
    std::size_t room = pairs_.size == 0 ? 8 * queries.boxes.size : 2 * pairs_.size;
    for (;;) {
      Scratch& block = pairBlocks_[next(1)];
      block.reset(scratchBytes<std::uint32_t>(room));
      lists.indices = block.lendRest<std::uint32_t>("neighbours");
      const std::uint64_t found = search_.find(queries, targets, lists, maxPairs);
      requireAtMost(maxPairs, found);
      if (found <= lists.indices.size) return static_cast<std::size_t>(found);
      room = 2 * static_cast<std::size_t>(found);  // for the added pairs, too
    }
  }

  /// Stage 6 for all boxes.
  View<Pair> sortNeighbours(const NeighbourLists& lists, std::size_t boxes, std::size_t found,
                            StepStats& stats) {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    const View<Pair> sorted = lendPairs("sorted pairs", next(2), found);
    neighbourSort_.writePairs(lists, boxes, sorted);
    return sorted;
  }

  /// Stages 5 and 6 for the boxes that move and some targets: appends their pairs as words.
  void findWords(const PackedBoxes& targets, PairWords format, std::uint64_t maxPairs,
                 StepStats& stats) {
    const PackedBoxes& queries = movingBlocks_.packed();
    const Scratch::Frame frame(scratch_);
    NeighbourLists lists{{},
                         scratch_.lend<NeighbourList>("neighbour lists", queries.boxes.size).data};
    const std::size_t found = findNeighbours(queries, targets, lists, maxPairs, stats);
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    words_.resize(words_.size() + found);
    neighbourSort_.writeWords(lists, movingSet_.moving(), format,
                              words_.data() + words_.size() - found);
  }

  /// Stage 6 for the boxes that move: their pairs, sorted, among those of the boxes that rest.
  View<Pair> mergeWords(PairWords format, std::uint64_t maxPairs, StepStats& stats) {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    const View<std::uint64_t> words{words_.data(), words_.size()};
    const std::uint64_t* sorted =
        space_.sortWords(words, spareWords_.ensure(words.size).data, 2 * format.indexBits);
    const auto rests = [this](Pair pair) {
      const bool first = movingSet_.isMoving(pair.first), second = movingSet_.isMoving(pair.second);
      return !(first | second);
    };
    const View<Pair> room = lendPairs("sorted pairs", next(2), pairs_.size + words.size);
    const View<Pair> merged =
        merge_.merge(space_.tasks(), pairs_, rests, {sorted, words.size}, format, room.data);
    requireAtMost(maxPairs, merged.size);
    return merged;
  }

  /// Stage 7: added pairs go where the neighbours were, removed ones over the old pairs.
  void compare(View<Pair> sorted, View<const std::uint8_t> removedObjects, StepStats& stats) {
    const auto timer = space_.timed("delta", stats.deltaMs);
    const View<Pair> room = lendPairs("added pairs", next(1), sorted.size);
    const auto lists = delta_.compare(space_.tasks(), pairs_, sorted, removedObjects, room.data);
    added_ = lists.added;
    removed_ = lists.removed;
    pairs_ = sorted;
    current_ = next(2);
  }

  /// All of one of the three blocks.
  View<Pair> lendPairs(const char* name, int block, std::size_t n) {
    pairBlocks_[block].reset(scratchBytes<Pair>(n));
    return pairBlocks_[block].lend<Pair>(name, n);
  }

  /// Of the three blocks one holds the pairs; the k-th behind it.
  int next(int k) const { return (current_ + k) % 3; }

#if defined(NDEBUG)
  static constexpr bool kValidate = false;
#else
  static constexpr bool kValidate = true;
#endif

  void validate(const StepInput& input, const std::vector<Pair>& before) {
    const View<const Pair> oldPairs{before.data(), before.size()};
    try {
      check(whyPairsAreWrong(pairs_, input.boxes, input.filters));
      check(whyDeltaIsWrong(oldPairs, pairs_, added_, removed_, input.removedObjects));
    } catch (const std::bad_alloc&) {
      // The step itself is done, and goes unchecked.
    }
  }

  /// A broken invariant is a bug in this library: say which, and stop.
  static void check(const std::string& whyWrong) {
    if (whyWrong.empty()) return;
    std::fprintf(stderr, "GpuLbvhBroadphase: %s\n", whyWrong.c_str());
    std::abort();
  }

  CurveOrder order_;
  BlockBuilder allBlocks_;     ///< of all boxes; later of those that rest
  BlockBuilder movingBlocks_;  ///< of the others
  MovingSet movingSet_;
  NeighbourSearch search_;
  NeighbourSort neighbourSort_;
  PairMerge merge_;
  HostPairDelta delta_;
  Buffer<Aabb> movingBoxes_;
  std::vector<std::uint64_t> words_;  ///< pairs of the boxes that move
  Buffer<std::uint64_t> spareWords_;
  Scratch pairBlocks_[3];
  int current_ = 0;
  View<Pair> pairs_;
  View<const Pair> added_, removed_;
  Tree tree_;
  PackedScene scene_;
};

}  // namespace

std::unique_ptr<Pipeline> makeHostPipeline(int threads, const SimdKernels& kernels) {
  return std::make_unique<HostPipeline>(threads, kernels);
}

}  // namespace lbvh

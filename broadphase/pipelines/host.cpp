// The table of contents of a step on the host's cores: the stages in order, each timed. Boxes are
// ordered as for a tree, but packed into blocks that are searched by vectors
// (host/find_neighbours.h); the tree itself is built for queries, when somebody asks. While most
// boxes rest, only the others are ordered, packed and searched for (host/moving_set.h).
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "broadphase/exec/host/space.h"
#include "broadphase/host/find_neighbours.h"
#include "broadphase/host/merge_pairs.h"
#include "broadphase/host/moving_set.h"
#include "broadphase/host/pair_delta.h"
#include "broadphase/pipelines/tree_stages.h"
#include "broadphase/stages/validate.h"

namespace lbvh {
namespace {

class HostPipeline final : public Pipeline, TreeStages<HostSpace> {
 public:
  explicit HostPipeline(int threads)
      : TreeStages(threads),
        search_(space_.tasks()),
        packing_(space_.tasks()),
        movingPacking_(space_.tasks()),
        movingSet_(space_.tasks()) {}

  void step(const StepInput& input, StepStats& stats) override {
    added_ = removed_ = {};  // they lie in buffers that are written now
    tree_ = {};
    scene_ = {};
    const std::vector<Pair> before(pairs_.begin(), kValidate ? pairs_.end() : pairs_.begin());
    const bool mostRest = follow(input, stats);
    compare(mostRest ? findMoving(input, stats) : findAll(input, stats), input.removedObjects,
            stats);
    if (!mostRest) movingSet_.reset();
    scene_ = {&packing_.packed(), mostRest ? &movingPacking_.packed() : nullptr};
    stats.pairs = pairs_.size;
    stats.added = added_.size;
    stats.removed = removed_.size;
    stats.capacity = buffers_[current_].capacity();
    if constexpr (kValidate) validate(input, before);
  }

  void buildTree(View<const Aabb> boxes, StepStats& stats) override {
    tree_ = {};
    measure(boxes, nullptr, stats);
    if (header()->grid.bits == 10)
      sortAndLink<std::uint32_t>(boxes, stats);
    else
      sortAndLink<std::uint64_t>(boxes, stats);
    describe(*header(), stats);
    tree_ = treeOver(header()->scene);
    if constexpr (kValidate) check(whyTreeIsWrong(tree_.nodes, boxes));
  }

  void setPreviousPairs(View<const Pair> pairs) override {
    added_ = removed_ = pairs_ = {};
    scene_ = {};
    movingSet_.invalidate();
    const View<Pair> room = buffers_[current_].ensure(pairs.size);
    std::copy(pairs.begin(), pairs.end(), room.begin());
    pairs_ = room;
  }

  View<const Pair> pairs() const override { return pairs_; }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }
  Tree tree() const override { return tree_; }
  PackedScene packed() const override { return scene_; }

  std::size_t memoryBytes() const override {
    std::size_t bytes = treeBytes() + search_.memoryBytes() + packing_.memoryBytes() +
                        movingPacking_.memoryBytes() + movingSet_.memoryBytes() +
                        merge_.memoryBytes() + delta_.memoryBytes() + movingBoxes_.bytes() +
                        words_.capacity() * sizeof(std::uint64_t) + spareWords_.bytes();
    for (const auto& buffer : buffers_) bytes += buffer.bytes();
    return bytes;
  }

 private:
  /// Whether so many boxes are what they were that only the others need to be searched for.
  bool follow(const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    return movingSet_.update(input, packing_);
  }

  /// Stages 1 to 3, for the search: as for a tree, but along another curve.
  void measureAndSort(View<const Aabb> boxes, StepStats& stats) {
    StepHeader* header = header_.ensure(1).data;
    {
      const auto timer = space_.timed("bounds", stats.boundsMs);
      search_.measure(boxes, &header->scene);
      ChooseGrid{boxes, nullptr, header}(0);
    }
    if (header->grid.bits == 10)
      sortByCurve<std::uint32_t>(boxes, stats);
    else
      sortByCurve<std::uint64_t>(boxes, stats);
  }

  template <class Key>
  void sortByCurve(View<const Aabb> boxes, StepStats& stats) {
    const SortMemory<Key> memory = sortMemory<Key>(boxes.size, spareNodes(boxes.size));
    {
      const auto timer = space_.timed("codes", stats.codesMs);
      search_.assignKeys(boxes, header()->grid, memory.keys.data, memory.ids.data);
    }
    const auto timer = space_.timed("sort", stats.sortMs);
    if constexpr (sizeof(Key) == 4)
      space_.orderByKey(memory.keys, memory.ids, memory.spare, AssignCodes<Key>::kKeyBits);
    else
      sort(memory);
  }

  template <class Key>
  void sortAndLink(View<const Aabb> boxes, StepStats& stats) {
    sortByCode<Key>(boxes, stats);
    link<Key>(boxes, header()->scene.ordinary, stats);
  }

  /// Stages 1 to 6, for all boxes.
  View<Pair> findAll(const StepInput& input, StepStats& stats) {
    measureAndSort(input.boxes, stats);
    pack(packing_, input, stats);
    const PackedBoxes& all = packing_.packed();
    const std::uint64_t found = findLists(all, all, input.maxPairs, stats);
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    const View<Pair> sorted = buffers_[next(2)].ensure(static_cast<std::size_t>(found));
    search_.sort(input.boxes.size, sorted.data);
    buffers_[next(1)].ensure(sorted.size);  // for what is added
    describe(*header(), stats);
    stats.searched = input.boxes.size;
    return sorted;
  }

  /// Stages 1 to 6, for the boxes that move: among themselves, and with those that rest.
  View<Pair> findMoving(const StepInput& input, StepStats& stats) {
    const View<const std::uint32_t> moving = movingSet_.moving();
    const View<Aabb> boxes = movingBoxes_.ensure(moving.size);
    for (std::size_t k = 0; k < moving.size; ++k) boxes[k] = input.boxes[moving[k]];
    measureAndSort(boxes, stats);
    for (std::uint32_t& id : View<std::uint32_t>{ids_.data(), moving.size}) id = moving[id];
    pack(movingPacking_, input, stats);

    const PackedBoxes &moved = movingPacking_.packed(), &resting = packing_.packed();
    const PairWords format{static_cast<int>(std::bit_width(movingSet_.indices()))};
    words_.clear();
    for (const PackedBoxes* targets : {&moved, &resting}) {
      const std::size_t found = findLists(moved, *targets, input.maxPairs, stats);
      const auto timer = space_.timed("pair sort", stats.pairSortMs);
      words_.resize(words_.size() + found);
      search_.writeWords(moving, format, words_.data() + words_.size() - found);
    }
    describe(*header(), stats);
    stats.oversizedBoxes += resting.oversized.size;
    stats.nanBoxes += resting.nan.size;
    stats.searched = moving.size;
    return mergeWords(format, input.maxPairs, stats);
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
    const View<Pair> merged =
        merge_.merge(space_.tasks(), pairs_, rests, {sorted, words.size}, format,
                     buffers_[next(2)].ensure(pairs_.size + words.size).data);
    buffers_[next(1)].ensure(merged.size);  // for what is added
    requireAtMost(maxPairs, merged.size);
    return merged;
  }

  /// Stage 4: blocks.
  void pack(BlockBuilder& packing, const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    packing.pack(input.boxes, input.filters, ids_.data(), header()->scene);
  }

  /// Stage 5: lists of neighbours, in the buffer that is free. A list holds second boxes only: two
  /// in the room of a pair.
  std::size_t findLists(const PackedBoxes& queries, const PackedBoxes& targets,
                        std::uint64_t maxPairs, StepStats& stats) {
    const auto timer = space_.timed("traversal", stats.traversalMs);
    Node* const memory = nodes_.ensure(spareNodes(queries.boxes.size)).data;
    Buffer<Pair>& buffer = buffers_[next(1)];
    // Eight a box at first: what is not touched costs nothing, and growing costs a second run.
    std::size_t needed = pairs_.size == 0 ? 4 * queries.boxes.size : pairs_.size;
    for (;;) {
      buffer.ensure(needed);
      const View<std::uint32_t> room{reinterpret_cast<std::uint32_t*>(buffer.data()),
                                     2 * buffer.capacity()};
      const std::uint64_t found = search_.find(queries, targets, memory, room, maxPairs);
      requireAtMost(maxPairs, found);
      if (found <= room.size) return static_cast<std::size_t>(found);
      needed = static_cast<std::size_t>(found);
    }
  }

  /// Stage 7: added pairs go where the lists were, removed ones over the old pairs.
  void compare(View<Pair> sorted, View<const std::uint8_t> removedObjects, StepStats& stats) {
    const auto timer = space_.timed("delta", stats.deltaMs);
    const auto lists =
        delta_.compare(space_.tasks(), pairs_, sorted, removedObjects, buffers_[next(1)].data());
    added_ = lists.added;
    removed_ = lists.removed;
    pairs_ = sorted;
    current_ = next(2);
  }

  /// Of the three buffers one holds the pairs; the k-th behind it.
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

  NeighbourSearch search_;
  BlockBuilder packing_;        ///< of all boxes; later of those that rest
  BlockBuilder movingPacking_;  ///< of the others
  MovingSet movingSet_;
  PairMerge merge_;
  HostPairDelta delta_;
  Buffer<Aabb> movingBoxes_;
  std::vector<std::uint64_t> words_;  ///< pairs of the boxes that move
  Buffer<std::uint64_t> spareWords_;
  Buffer<Pair> buffers_[3];
  int current_ = 0;
  View<Pair> pairs_;
  View<const Pair> added_, removed_;
  Tree tree_;
  PackedScene scene_;
};

}  // namespace

void requireAtMost(std::uint64_t maxPairs, std::uint64_t pairs) {
  if (pairs <= maxPairs) return;
  throw std::length_error("more than " + std::to_string(maxPairs) +
                          " overlapping pairs (Options::maxPairs)");
}

std::unique_ptr<Pipeline> makeHostPipeline(int threads) {
  return std::make_unique<HostPipeline>(threads);
}

}  // namespace lbvh

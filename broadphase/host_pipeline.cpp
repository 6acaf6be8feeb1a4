// The table of contents of a step on the host's cores: the stages in order, each timed. Boxes are
// ordered as for a tree, but packed into blocks that are searched by vectors (exec/host_search.h);
// the tree itself is built for queries, when somebody asks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "broadphase/exec/host_search.h"
#include "broadphase/exec/host_space.h"
#include "broadphase/stages/validate.h"
#include "broadphase/tree_stages.h"

namespace lbvh {
namespace {

class HostPipeline final : public AnyPipeline, TreeStages<HostSpace> {
 public:
  explicit HostPipeline(int threads) : TreeStages(threads), search_(space_.tasks()) {}

  void step(const StepInput& input, StepStats& stats) override {
    added_ = removed_ = {};  // they lie in buffers that are written now
    tree_ = {};
    const std::vector<Pair> before(pairs_.begin(), kValidate ? pairs_.end() : pairs_.begin());
    measureAndSort(input.boxes, stats);
    pack(input, stats);
    const auto found = static_cast<std::size_t>(find(input, stats));
    const View<Pair> sorted = sortPairs(found, stats);
    compare(sorted, input.forgotten, stats);
    describe(*header(), stats);
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

  void adopt(View<const Pair> pairs) override {
    added_ = removed_ = pairs_ = {};
    const View<Pair> room = buffers_[current_].ensure(pairs.size);
    std::copy(pairs.begin(), pairs.end(), room.begin());
    pairs_ = room;
  }

  View<const Pair> pairs() const override { return pairs_; }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }
  Tree tree() const override { return tree_; }

  std::size_t memoryBytes() const override {
    std::size_t bytes = treeBytes() + search_.memoryBytes();
    for (const auto& buffer : buffers_) bytes += buffer.bytes();
    return bytes;
  }

 private:
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
    const SortMemory<Key> memory = sortMemory<Key>(boxes.size);
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

  /// Stage 4: blocks, in the memory of the nodes.
  void pack(const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    const std::size_t n = input.boxes.size;
    const View<Node> memory = nodes_.ensure(std::max(2 * n, HostSearch::nodesFor(n)));
    search_.pack(input.boxes, input.filters, ids_.data(), header()->scene, memory);
  }

  /// Stage 5: lists of neighbours, in the buffer that is free. A list holds second boxes only, so
  /// half of the room is used.
  std::uint64_t find(const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("traversal", stats.traversalMs);
    Buffer<Pair>& buffer = buffers_[next(1)];
    // Eight a box at first: what is not touched costs nothing, and growing costs a second run.
    std::size_t needed = pairs_.size == 0 ? 8 * input.boxes.size : pairs_.size;
    for (;;) {
      buffer.ensure(needed);
      const View<std::uint32_t> room{reinterpret_cast<std::uint32_t*>(buffer.data()),
                                     buffer.capacity()};
      const std::uint64_t found = search_.find(room, input.maxPairs);
      requireAtMost(input.maxPairs, found);
      if (found <= room.size) return found;
      needed = static_cast<std::size_t>(found);
    }
  }

  /// Stage 6: from lists to pairs.
  View<Pair> sortPairs(std::size_t found, StepStats& stats) {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    const View<Pair> sorted = buffers_[next(2)].ensure(found);
    search_.sort(sorted.data);
    return sorted;
  }

  /// Stage 7: added pairs go where the lists were, removed ones over the old pairs.
  void compare(View<Pair> sorted, View<const std::uint8_t> forgotten, StepStats& stats) {
    const auto timer = space_.timed("delta", stats.deltaMs);
    const auto lists = search_.compare(pairs_, sorted, forgotten, buffers_[next(1)].data());
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
      check(whyDeltaIsWrong(oldPairs, pairs_, added_, removed_, input.forgotten));
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

  HostSearch search_;
  Buffer<Pair> buffers_[3];
  int current_ = 0;
  View<Pair> pairs_;
  View<const Pair> added_, removed_;
  Tree tree_;
};

}  // namespace

void requireAtMost(std::uint64_t maxPairs, std::uint64_t pairs) {
  if (pairs <= maxPairs) return;
  throw std::length_error("more than " + std::to_string(maxPairs) +
                          " overlapping pairs (Options::maxPairs)");
}

std::unique_ptr<AnyPipeline> makeHostPipeline(int threads) {
  return std::make_unique<HostPipeline>(threads);
}

}  // namespace lbvh

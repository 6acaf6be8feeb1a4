// A step on the host's cores: the search for pairs, and how they differ from the last step's. The
// tree is built when a query needs it.
#include "broadphase/pipelines/host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "broadphase/host/pair_delta.h"
#include "broadphase/pipelines/host_search.h"
#include "broadphase/stages/validate.h"

namespace lbvh {
namespace {

class HostPipeline final : public Pipeline, HostSearch {
 public:
  HostPipeline(int threads, const SimdKernels& kernels)
      : HostSearch(threads, kernels), delta_(kernels) {}

  void step(const StepInput& input, StepStats& stats) override {
    added_ = removed_ = {};  // they lie in blocks that are written now
    tree_ = {};
    scene_ = {};
    const std::vector<Pair> before(pairs_.begin(), kValidate ? pairs_.end() : pairs_.begin());
    const Places places{pairs_, pairBlocks_[next(1)], pairBlocks_[next(2)]};
    const View<Pair> sorted = find(input, places, stats);
    compare(sorted, input.removedObjects, stats);
    keepFound();
    scene_ = searched();
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
    forgetFound();
    const View<Pair> room = lend(pairBlocks_[current_], pairs.size);
    std::copy(pairs.begin(), pairs.end(), room.begin());
    pairs_ = room;
  }

  View<const Pair> pairs() const override { return pairs_; }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }
  Tree tree() const override { return tree_; }
  PackedScene packed() const override { return scene_; }

  std::size_t memoryBytes() const override {
    std::size_t bytes = searchBytes() + delta_.memoryBytes();
    for (const auto& block : pairBlocks_) bytes += block.bytes();
    return bytes;
  }

 private:
  /// Stage 7: added pairs go where the neighbours were, removed ones over the old pairs.
  void compare(View<Pair> sorted, View<const std::uint8_t> removedObjects, StepStats& stats) {
    const auto timer = space_.timed("delta", stats.deltaMs);
    const View<Pair> room = lend(pairBlocks_[next(1)], sorted.size);
    const auto lists = delta_.compare(space_.tasks(), pairs_, sorted, removedObjects, room.data);
    added_ = lists.added;
    removed_ = lists.removed;
    pairs_ = sorted;
    current_ = next(2);
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

  HostPairDelta delta_;
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

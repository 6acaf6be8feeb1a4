// SPDX-License-Identifier: Zlib
// A step on the host's cores: the search for pairs, and how they differ from the last step's. The
// tree is built when a query needs it.
#include "broadphase/pipelines/host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "broadphase/host/candidates.h"
#include "broadphase/host/pair_delta.h"
#include "broadphase/host/patch_pairs.h"
#include "broadphase/host/skin.h"
#include "broadphase/pipelines/host_search.h"
#include "broadphase/query/block_query.h"
#include "broadphase/stages/validate.h"

namespace lbvh {
namespace {

class HostPipeline final : public Pipeline, HostSearch {
 public:
  HostPipeline(int threads, const SimdKernels& kernels, bool timesSmallSteps)
      : HostSearch(threads, kernels),
        timesSmallSteps_(timesSmallSteps),
        skin_(space_.tasks()),
        candidates_(space_.tasks(), kernels),
        delta_(kernels) {}

  void step(const StepInput& input, StepStats& stats) override {
    added_ = removed_ = {};  // they lie in memory that is written now
    lacksOneStep_ = false;
    tree_ = {};
    scene_ = {};
    work_ = {};
    space_.setTimesStages(timesSmallSteps_ || input.boxes.size > kFew);
    const bool isKnown = std::exchange(goesOn_, false);  // until this step is done
    const std::vector<Pair> before = kValidate ? copyOfPairs() : std::vector<Pair>();
    switch (plan(input, isKnown, stats)) {
      case Skin::Plan::plain:
        searchPlain(input, stats);
        break;
      case Skin::Plan::all:
        searchGrown(input, stats);
        break;
      case Skin::Plan::left:
        if (searchForLeft(input, stats)) break;
        skin_.growAll(input);
        searchGrown(input, stats);
    }
    scene_ = searched();
    stats.pairs = pairCount();
    stats.added = added_.size;
    stats.removed = removed_.size;
    stats.capacity = std::max(pairBlocks_[current_].bytes() / sizeof(Pair), stats.pairs);
    if constexpr (kValidate) validate(input, before);
  }

  /// Queries would suffer for as long as nothing moves if the last steps have worn the order. A
  /// tree, which lies in the same memory, serves them as well.
  void rest() noexcept override {
    if (!goesOn_ || !tree_.nodes.empty() || !isOrderWorn()) return;
    StepStats unused;
    try {
      orderAgain(skin_.grown(), unused);
    } catch (const std::exception&) {
      scene_ = {};
      goesOn_ = false;  // the next step searches for all
    }
  }

  void buildTree(View<const Aabb> boxes) override {
    tree_ = {};
    measure(boxes);
    const std::size_t leaves = header()->scene.ordinary;
    if (header()->grid.bits == 10)
      buildNodes<std::uint32_t>(boxes, leaves);
    else
      buildNodes<std::uint64_t>(boxes, leaves);
    tree_ = treeOver(header()->scene);
    if constexpr (kValidate) check(whyTreeIsWrong(tree_.nodes, boxes));
  }

  void setPreviousPairs(View<const Pair> pairs) override {
    added_ = removed_ = pairs_ = {};
    scene_ = {};
    goesOn_ = pairsAreRows_ = false;
    const View<Pair> room = lend(pairBlocks_[current_], pairs.size);
    std::copy(pairs.begin(), pairs.end(), room.begin());
    pairs_ = room;
  }

  View<const Pair> pairs() override {
    listPairs();
    return pairs_;
  }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }
  Tree tree() const override { return tree_; }
  PackedScene packed() const override { return scene_; }

  std::size_t memoryBytes() const override {
    std::size_t bytes = searchBytes() + skin_.memoryBytes() + candidates_.memoryBytes() +
                        delta_.memoryBytes() + changes_.bytes() + spareChanges_.bytes();
    for (const auto& block : pairBlocks_) bytes += block.bytes();
    return bytes;
  }

 private:
  Skin::Plan plan(const StepInput& input, bool isKnown, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    const View<const Hub> hubs{candidates_.hubs().data, candidates_.hubs().size};
    return skin_.plan(input, isKnown, hubs);
  }

  /// All boxes as they are.
  void searchPlain(const StepInput& input, StepStats& stats) {
    listPairs();
    candidates_.forget();
    const Room room{pairBlocks_[next(1)], 2 * pairs_.size, input.maxPairs};
    NeighbourLists lists{};
    work_.tests = 0;
    findAll(input, PairSides::lesser, room, kNoLimit, lists, stats);
    skin_.endPlain(input.boxes.size, work_.tests);
    compare(input, lists, lists.indices.size, stats);
  }

  /// All grown boxes. Their candidates are kept for the next step.
  void searchGrown(const StepInput& input, StepStats& stats) {
    listPairs();
    NeighbourLists lists{};
    if (!findCandidates(input, lists, stats)) {
      skin_.turnOff();
      return searchPlain(input, stats);
    }
    skin_.endAll(stats, lists.indices.size, work_);
    requireAtMost(input.maxPairs, candidates_.pairs());
    compare(input, lists, candidates_.pairs(), stats);
    goesOn_ = candidates_.areKnown();
    if (!goesOn_) skin_.turnOff();
  }

  /// @return false if there are too many, or too many tests
  bool findCandidates(const StepInput& input, NeighbourLists& lists, StepStats& stats) try {
    // Grown boxes have more pairs than boxes, and each is found twice. What is not touched costs
    // nothing, and a second search would.
    const std::uint64_t n = input.boxes.size;
    const Room room{pairBlocks_[next(1)], 8 * pairCount() + 8 * input.boxes.size,
                    4 * input.maxPairs + n};
    // In index order a plain search skips half of the blocks, and nothing can be concluded from it.
    const std::uint64_t most = n <= kFew ? kNoLimit : skin_.mostTests(n);
    if (!findAll(skin_.grown(input), PairSides::both, room, most, lists, stats)) return false;
    const auto timer = space_.timed("traversal", stats.traversalMs);
    candidates_.adopt(lists, input.boxes, skin_.grown(input).boxes);
    return true;
  } catch (const std::length_error&) {
    return false;
  }

  /// The boxes that have left their grown boxes; and tests the candidates of those that changed.
  /// @return false if all must be searched for
  bool searchForLeft(const StepInput& input, StepStats& stats) {
    const BoxChanges changes{input.boxes,        skin_.changed(), skin_.changes(),
                             skin_.left(),       skin_.leftIds(), input.removedObjects,
                             skin_.grown().boxes};
    NeighbourLists lists{};
    stats.searched = 0;
    if (isOrderWorn()) orderAgain(skin_.grown(input), stats);
    if (std::exchange(holdsAllLists_, false)) {
      pairBlocks_[next(1)] = Scratch();
      pairBlocks_[next(2)] = Scratch();
    }
    if (!findCandidatesOfLeft(input, lists, stats)) return false;
    findFormerOfHubs(changes);
    {
      const auto timer = space_.timed("traversal", stats.traversalMs);
      const bool areKnown = candidates_.compare(changes, lists);
      candidates_.count(work_);
      if (!areKnown) return false;
    }
    requireAtMost(input.maxPairs, candidates_.pairsAfter());
    const auto timer = space_.timed("delta", stats.deltaMs);
    listChanges();
    candidates_.commit(changes, lists);
    lacksOneStep_ = !pairsAreRows_ && input.removedObjects.empty();
    goesOn_ = pairsAreRows_ = true;
    stats.mortonBits = mortonBits();
    skin_.endLeft(stats, work_);
    return true;
  }

  bool findCandidatesOfLeft(const StepInput& input, NeighbourLists& lists, StepStats& stats) try {
    const View<const std::uint32_t> left = skin_.leftIds();
    if (left.empty()) return true;
    const Room room{pairBlocks_[next(1)], kNeighbours * left.size, 4 * input.maxPairs + left.size};
    lists = findLeft(skin_.grown(input), left, room, stats);
    return true;
  } catch (const std::length_error&) {
    return false;
  }

  /// Where a hub has left, all boxes that may have it in their rows.
  void findFormerOfHubs(const BoxChanges& changes) {
    for (Hub& hub : candidates_.hubs()) {
      hub.former.clear();
      if (!changes.hasLeft(hub.id)) continue;
      queryPacked(
          *searched().boxes, [&](const Aabb& bounds) { return overlap(bounds, hub.grown); },
          [&](std::uint32_t id) { hub.former.push_back(id); });
    }
  }

  /// Stages 6 and 7: added pairs go where the neighbours were, removed ones over the old pairs.
  void compare(const StepInput& input, const NeighbourLists& lists, std::size_t pairs,
               StepStats& stats) {
    const View<Pair> sorted =
        sortNeighbours(lists, input.boxes.size, lend(pairBlocks_[next(2)], pairs), stats);
    const auto timer = space_.timed("delta", stats.deltaMs);
    const View<Pair> room = lend(pairBlocks_[next(1)], sorted.size);
    const auto found =
        delta_.compare(space_.tasks(), pairs_, sorted, input.removedObjects, room.data);
    added_ = found.added;
    removed_ = found.removed;
    pairs_ = sorted;
    current_ = next(2);
    pairsAreRows_ = false;
    holdsAllLists_ = true;
  }

  /// The same for the changes that the candidates know.
  void listChanges() {
    const View<std::uint64_t> words = candidates_.changes();
    const PairWords format = candidates_.words();
    const View<Pair> pairs = changes_.ensure(words.size);
    const std::uint64_t* sorted = words.data;
    if (words.size <= kFewChanges)
      std::sort(words.begin(), words.end());
    else
      sorted = space_.sortWords(words, spareChanges_.ensure(words.size).data, format.changeBits());
    std::size_t added = 0;
    for (std::size_t i = 0; i < words.size; ++i) {
      pairs[i] = format.changed(sorted[i]);
      added += format.isAdded(sorted[i]);
    }
    added_ = {pairs.data, added};
    removed_ = {pairs.data + added, pairs.size - added};
  }

  std::size_t pairCount() const { return pairsAreRows_ ? candidates_.pairs() : pairs_.size; }

  /// After steps that searched for few, the pairs are put in order only when somebody asks.
  void listPairs() {
    if (!pairsAreRows_) return;
    if (lacksOneStep_)
      patchLastPairs();
    else
      listAllPairs();
    pairsAreRows_ = false;
  }

  void patchLastPairs() {
    const View<Pair> patched = lend(pairBlocks_[next(1)], candidates_.pairs());
    patchPairs(pairs_, added_, removed_, patched.data);
    pairs_ = patched;
    current_ = next(1);
  }

  void listAllPairs() {
    const std::size_t boxes = candidates_.boxes();
    Scratch &indices = pairBlocks_[next(1)], &byBox = pairBlocks_[next(2)];
    indices.reset(scratchBytes<std::uint32_t>(candidates_.roomForLists()));
    byBox.reset(scratchBytes<NeighbourList>(boxes));
    const NeighbourLists lists{indices.lendRest<std::uint32_t>("neighbours"),
                               byBox.lend<NeighbourList>("neighbour lists", boxes).data};
    candidates_.writeLists(lists);
    pairs_ = lend(pairBlocks_[current_], candidates_.pairs());
    StepStats unused;
    sortNeighbours(lists, boxes, pairs_, unused);
  }

  /// Of the three blocks one holds the pairs; the k-th behind it.
  int next(int k) const { return (current_ + k) % 3; }

  static constexpr std::size_t kFewChanges = 64;
  static constexpr std::size_t kNeighbours = 32;  ///< of a box: mostly fewer

  std::vector<Pair> copyOfPairs() { return {pairs().begin(), pairs().end()}; }

#if defined(NDEBUG)
  static constexpr bool kValidate = false;
#else
  static constexpr bool kValidate = true;
#endif

  void validate(const StepInput& input, const std::vector<Pair>& before) {
    const View<const Pair> oldPairs{before.data(), before.size()};
    try {
      check(whyPairsAreWrong(pairs(), input.boxes, input.filters));
      check(whyDeltaIsWrong(oldPairs, pairs(), added_, removed_, input.removedObjects));
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

  const bool timesSmallSteps_;
  Skin skin_;
  Candidates candidates_;
  HostPairDelta delta_;
  bool goesOn_ = false;        ///< the candidates are those of the last step
  bool pairsAreRows_ = false;  ///< the candidates know the pairs; pairs_ is old
  bool lacksOneStep_ = false;  ///< then: the last step's changes are all that it lacks
  Scratch pairBlocks_[3];
  bool holdsAllLists_ = false;  ///< the other two are as large as a search of all needs
  int current_ = 0;
  View<Pair> pairs_;
  HostBuffer<Pair> changes_;
  HostBuffer<std::uint64_t> spareChanges_;
  View<const Pair> added_, removed_;
  Tree tree_;
  PackedScene scene_;
};

}  // namespace

std::unique_ptr<Pipeline> makeHostPipeline(int threads, const SimdKernels& kernels,
                                           bool timesSmallSteps) {
  return std::make_unique<HostPipeline>(threads, kernels, timesSmallSteps);
}

}  // namespace lbvh

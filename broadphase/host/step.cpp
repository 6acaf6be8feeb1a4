// SPDX-License-Identifier: Zlib
// A step on the host's cores: the search for pairs, and how they differ from the last step's. The
// tree is built when a query needs it.
#include "broadphase/host/step.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "broadphase/core/validate.h"
#include "broadphase/host/block_query.h"
#include "broadphase/host/pair_delta.h"
#include "broadphase/host/step_search.h"
#include "broadphase/host/verlet/candidates.h"
#include "broadphase/host/verlet/patch_pairs.h"
#include "broadphase/host/verlet/skin.h"

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
    if (pairsAre_ == PairsAre::oneStepOff) pairsAre_ = PairsAre::inRows;
    tree_ = {};
    scene_ = {};
    work_ = {};
    space_.setTimesStages(timesSmallSteps_ || input.boxes.size > kFew);
    const auto before = std::exchange(candidatesAre_, CandidatesAre::old);
    const std::vector<Pair> oldPairs = kValidate ? copyOfPairs() : std::vector<Pair>();
    switch (plan(input, before != CandidatesAre::old, stats)) {
      case Skin::Plan::plain:
        searchPlain(input, stats);
        break;
      case Skin::Plan::all:
        searchGrown(input, stats);
        break;
      case Skin::Plan::left:
        if (searchForLeft(input, before == CandidatesAre::found, stats)) break;
        skin_.growAll(input);
        searchGrown(input, stats);
    }
    scene_ = searched();
    stats.pairs = pairCount();
    stats.added = added_.size;
    stats.removed = removed_.size;
    stats.capacity = std::max(listBlock_.bytes() / sizeof(Pair), stats.pairs);
    if constexpr (kValidate) validate(input, oldPairs);
  }

  /// Queries would suffer for as long as nothing moves if the last steps have worn the order. A
  /// tree, which lies in the same memory, serves them as well.
  void rest() noexcept override {
    if (candidatesAre_ == CandidatesAre::old || !tree_.nodes.empty() || !isOrderWorn()) return;
    StepStats unused;
    try {
      orderAgain(skin_.grown(), unused);
    } catch (const std::exception&) {
      scene_ = {};
      candidatesAre_ = CandidatesAre::old;
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
    candidatesAre_ = CandidatesAre::old;
    pairsAre_ = PairsAre::listed;
    const View<Pair> room = lend(listBlock_, pairs.size);
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
    for (const Scratch* block : {&listBlock_, &foundBlock_, &spareBlock_}) bytes += block->bytes();
    return bytes;
  }

 private:
  /// What the candidates are to the next step. All steps begin with `old`, which stays if they
  /// fail.
  enum class CandidatesAre {
    old,    ///< it searches for all: after a plain search, and after pairs from elsewhere
    found,  ///< this step has found them, by a search of all grown boxes
    kept    ///< earlier ones, brought up to date by a search for few
  };

  /// Where the last step's pairs are. Each search of all, and each question for them, lists them.
  enum class PairsAre {
    listed,      ///< in pairs_
    oneStepOff,  ///< as inRows; and added_ and removed_ are all that pairs_ lacks
    inRows       ///< the candidates know them, since steps that searched for few
  };

  Skin::Plan plan(const StepInput& input, bool isKnown, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    const View<const Hub> hubs{candidates_.hubs().data, candidates_.hubs().size};
    return skin_.plan(input, isKnown, hubs);
  }

  /// All boxes as they are.
  void searchPlain(const StepInput& input, StepStats& stats) {
    listPairs();
    candidates_.forget();
    const Room room{foundBlock_, 2 * pairs_.size, input.maxPairs};
    NeighbourLists lists{};
    work_.tests = 0;
    findAll(input, ListKind::half, room, kNoLimit, lists, stats);
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
    if (candidates_.areKnown())
      candidatesAre_ = CandidatesAre::found;
    else
      skin_.turnOff();
  }

  /// @return false if there are too many, or too many tests
  bool findCandidates(const StepInput& input, NeighbourLists& lists, StepStats& stats) try {
    // Grown boxes have more pairs than boxes, and each is found twice. What is not touched costs
    // nothing, and a second search would.
    const std::uint64_t n = input.boxes.size;
    const Room room{foundBlock_, 8 * pairCount() + 8 * input.boxes.size, 4 * input.maxPairs + n};
    // In index order a plain search skips half of the blocks, and nothing can be concluded from it.
    const std::uint64_t most = n <= kFew ? kNoLimit : skin_.mostTests(n);
    if (!findAll(skin_.grown(input), ListKind::full, room, most, lists, stats)) return false;
    const auto timer = space_.timed("traversal", stats.traversalMs);
    candidates_.adopt(lists, input.boxes, skin_.grown(input).boxes);
    return true;
  } catch (const std::length_error&) {
    return false;
  }

  /// The boxes that have left their grown boxes; and tests the candidates of those that changed.
  /// @param areFound whether the last step searched for all
  /// @return false if all must be searched for
  bool searchForLeft(const StepInput& input, bool areFound, StepStats& stats) {
    const BoxChanges changes{input.boxes,        skin_.changed(), skin_.changes(),
                             skin_.left(),       skin_.leftIds(), input.removedObjects,
                             skin_.grown().boxes};
    NeighbourLists lists{};
    stats.searched = 0;
    if (isOrderWorn()) orderAgain(skin_.grown(input), stats);
    if (areFound) {  // they are as large as that search needed
      foundBlock_ = Scratch();
      spareBlock_ = Scratch();
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
    const bool isPatchable = pairsAre_ == PairsAre::listed && input.removedObjects.empty();
    pairsAre_ = isPatchable ? PairsAre::oneStepOff : PairsAre::inRows;
    candidatesAre_ = CandidatesAre::kept;
    stats.mortonBits = mortonBits();
    skin_.endLeft(stats, work_);
    return true;
  }

  bool findCandidatesOfLeft(const StepInput& input, NeighbourLists& lists, StepStats& stats) try {
    const View<const std::uint32_t> left = skin_.leftIds();
    if (left.empty()) return true;
    const Room room{foundBlock_, kNeighbours * left.size, 4 * input.maxPairs + left.size};
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
        sortNeighbours(lists, input.boxes.size, lend(spareBlock_, pairs), stats);
    const auto timer = space_.timed("delta", stats.deltaMs);
    const View<Pair> room = lend(foundBlock_, sorted.size);
    const auto found =
        delta_.compare(space_.tasks(), pairs_, sorted, input.removedObjects, room.data);
    added_ = found.added;
    removed_ = found.removed;
    pairs_ = sorted;
    std::swap(listBlock_, spareBlock_);
    pairsAre_ = PairsAre::listed;
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

  std::size_t pairCount() const {
    return pairsAre_ == PairsAre::listed ? pairs_.size : candidates_.pairs();
  }

  /// After steps that searched for few, the pairs are put in order only when somebody asks.
  void listPairs() {
    if (pairsAre_ == PairsAre::oneStepOff) patchLastPairs();
    if (pairsAre_ == PairsAre::inRows) listAllPairs();
    pairsAre_ = PairsAre::listed;
  }

  void patchLastPairs() {
    const View<Pair> patched = lend(foundBlock_, candidates_.pairs());
    patchPairs(pairs_, added_, removed_, patched.data);
    pairs_ = patched;
    std::swap(listBlock_, foundBlock_);
  }

  void listAllPairs() {
    const std::size_t boxes = candidates_.boxes();
    foundBlock_.reset(scratchBytes<std::uint32_t>(candidates_.roomForLists()));
    spareBlock_.reset(scratchBytes<NeighbourList>(boxes));
    const NeighbourLists lists{foundBlock_.lendRest<std::uint32_t>("neighbours"),
                               spareBlock_.lend<NeighbourList>("neighbour lists", boxes).data};
    candidates_.writeLists(lists);
    pairs_ = lend(listBlock_, candidates_.pairs());
    StepStats unused;
    sortNeighbours(lists, boxes, pairs_, unused);
  }

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
  CandidatesAre candidatesAre_ = CandidatesAre::old;
  PairsAre pairsAre_ = PairsAre::listed;
  Scratch listBlock_;   ///< pairs_
  Scratch foundBlock_;  ///< neighbours, then the added pairs that a search of all found
  Scratch spareBlock_;  ///< the pairs before those, with the removed ones
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

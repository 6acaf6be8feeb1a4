// SPDX-License-Identifier: Zlib
// Runs a step on the host's cores: finds the pairs, and how they differ from the pairs of the last
// step.
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
#include "broadphase/host/pair_history.h"
#include "broadphase/host/step_search.h"
#include "broadphase/host/verlet/candidates.h"
#include "broadphase/host/verlet/skin.h"

namespace lbvh {
namespace {

class HostPipeline final : public Pipeline, HostSearch {
 public:
  HostPipeline(int threads, const SimdKernels& kernels, bool timesSmallSteps)
      : HostSearch(threads, kernels),
        timesSmallSteps_(timesSmallSteps),
        skin_(space_.tasks(), reaches_),
        candidates_(space_.tasks(), kernels),
        ranked_(space_.tasks(), kernels),
        history_(space_, kernels) {}

  void step(const StepInput& input, StepStats& stats) override {
    history_.begin();
    scene_ = nullptr;
    isPacked_ = true;
    work_ = {};
    space_.setTimesStages(timesSmallSteps_ || input.boxes.size() > kFew);
    const auto before = std::exchange(candidatesAre_, CandidatesAre::old);
    const std::vector<Pair> oldPairs = kValidate ? copyOfPairs() : std::vector<Pair>();
    switch (plan(input, before != CandidatesAre::old, stats)) {
      case Skin::Plan::plain:
        searchPlain(input, stats);
        break;
      case Skin::Plan::all:
        searchGrown(input, stats);
        break;
      case Skin::Plan::escaped:
        if (searchForEscaped(input, before == CandidatesAre::found, stats)) break;
        skin_.growAll(input);
        searchGrown(input, stats);
    }
    scene_ = isPacked_ ? searched() : nullptr;
    history_.describe(stats);
    if constexpr (kValidate) validate(input, oldPairs);
  }

  /// Orders the boxes again if the last steps have degraded the order. Otherwise queries would stay
  /// slow for as long as nothing moves.
  void rest() noexcept override {
    if (candidatesAre_ == CandidatesAre::old || !isOrderWorn()) return;
    StepStats stats;  // not reported
    try {
      orderAgain(skin_.grown(), stats);
    } catch (const std::exception&) {
      scene_ = nullptr;
      candidatesAre_ = CandidatesAre::old;
    }
  }

  void setPreviousPairs(View<const Pair> pairs) override {
    scene_ = nullptr;
    candidatesAre_ = CandidatesAre::old;
    ranked_.release();
    history_.set(pairs);
  }

  View<const Pair> pairs() override {
    listPairs();
    return history_.pairs();
  }
  View<const Pair> added() const override { return history_.added(); }
  View<const Pair> removed() const override { return history_.removed(); }
  const PackedBoxes* packed() const override { return scene_; }

  std::size_t memoryBytes() const override {
    return searchBytes() + skin_.memoryBytes() + reaches_.memoryBytes() +
           candidates_.memoryBytes() + ranked_.memoryBytes() + history_.memoryBytes();
  }

 private:
  /// Whether the next step can use the candidates. Each step first sets `old`, which stays if the
  /// step fails.
  enum class CandidatesAre {
    old,    ///< no: the last step was plain, or the pairs came from setPreviousPairs()
    found,  ///< yes: this step has found them by a search of all grown boxes
    kept    ///< yes: this step has updated them by a search for a few boxes
  };

  Skin::Plan plan(const StepInput& input, bool isKnown, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    const View<const Hub> hubs{candidates_.hubs().data(), candidates_.hubs().size()};
    return skin_.plan(input, isKnown, hubs);
  }

  /// Searches for all boxes, without a skin, by rank.
  void searchPlain(const StepInput& input, StepStats& stats) {
    reaches_.forget();
    const bool isKept = ranked_.areKnown() && searchInLastOrder(input, stats);
    if (!isKept) searchInNewOrder(input, stats);
    skin_.endPlain(input.boxes.size(), work_.tests);
    if (isKept)
      compareByRank(input, stats);
    else
      compareByIndex(input, stats);
    ranked_.keep();
    if (isKept && areRanksWorn()) renewRanks(input, stats);
  }

  /// @return false if the order cannot be kept, or if it needs far more tests than a new order
  bool searchInLastOrder(const StepInput& input, StepStats& stats) {
    work_.tests = 0;
    return keepOrder(input, ranked_.oversized(), stats) &&
           findRanked(ranked_, history_.foundMemory(), 2 * history_.size(), input.maxPairs, stats);
  }

  void searchInNewOrder(const StepInput& input, StepStats& stats) {
    listPairs();
    candidates_.forget();
    ranked_.forget();
    orderAll(input, PackedFor::ranks, stats);
    work_.tests = 0;
    findRanked(ranked_, history_.foundMemory(), 2 * history_.size(), input.maxPairs, stats);
    beginRanks();
  }

  /// Compares by rank, because the pairs of the last step have the same ranks.
  void compareByRank(const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("delta", stats.deltaMs);
    ranked_.compare(ids(), input.removedObjects, history_.foundMemory());
    history_.change(input, ranked_.changes(), ranked_.words(), ranked_.next().pairs);
  }

  /// Compares by index, because the pairs of the last step have other ranks or no ranks.
  void compareByIndex(const StepInput& input, StepStats& stats) {
    const RankedPairs::Found& found = ranked_.next();
    history_.compare(input, listByIndex(found), found.pairs, stats);
  }

  /// Orders the boxes again and finds the pairs by their new ranks, for the next step. If this
  /// fails, the old order stays.
  void renewRanks(const StepInput& input, StepStats& stats) try {
    beginNextOrder(input, stats);
    findRanked(ranked_, history_.foundMemory(), ranked_.last().pairs, input.maxPairs, stats);
    beginRanks();
    ranked_.keep();
  } catch (const std::exception&) {
    dropNextOrder();
    isPacked_ = false;
  }

  /// Searches for all grown boxes, and keeps their candidates for the next step.
  void searchGrown(const StepInput& input, StepStats& stats) {
    listPairs();
    ranked_.release();
    reaches_.forget();
    NeighbourLists lists{};
    if (!findCandidates(input, lists, stats)) {
      skin_.turnOff();
      return searchPlain(input, stats);
    }
    skin_.endAll(stats, lists.indices.size(), work_);
    requireAtMost(input.maxPairs, candidates_.pairs());
    history_.compare(input, lists, candidates_.pairs(), stats);
    if (candidates_.areKnown())
      candidatesAre_ = CandidatesAre::found;
    else
      skin_.turnOff();
  }

  /// @return false if there are too many candidates, or if the search needs too many tests
  bool findCandidates(const StepInput& input, NeighbourLists& lists, StepStats& stats) try {
    // Grown boxes have more pairs than the boxes themselves, and each pair is found twice. Memory
    // that is not touched costs nothing, but a second search would cost time.
    const std::size_t n = input.boxes.size();
    const Room room{history_.foundMemory(), 8 * (history_.size() + n), 4 * input.maxPairs + n};
    // Up to kFew boxes stay in index order. Then the number of tests of a plain search says nothing
    // about this search.
    const std::uint64_t most = n <= kFew ? kNoLimit : skin_.mostTests(n);
    if (!findAll(skin_.grown(input), room, most, lists, stats)) return false;
    const auto timer = space_.timed("traversal", stats.traversalMs);
    candidates_.adopt(lists, input.boxes, skin_.grown(input).boxes);
    return true;
  } catch (const std::length_error&) {
    return false;
  }

  /// Searches for the boxes that have escaped from their grown boxes. Tests the candidates of the
  /// other boxes that have changed.
  /// @param areFound whether the last step searched for all boxes
  /// @return false if this step must search for all boxes
  bool searchForEscaped(const StepInput& input, bool areFound, StepStats& stats) {
    const BoxChanges changes{input.boxes,        skin_.changed(),    skin_.changes(),
                             skin_.escaped(),    skin_.escapedIds(), input.removedObjects,
                             skin_.grown().boxes};
    stats.searched = 0;
    if (isOrderWorn()) orderAgain(skin_.grown(input), stats);
    if (areFound) history_.releaseSpare();
    if (changes.changes != 0 && !compareEscaped(input, changes, stats)) return false;
    work_.tested +=
        reaches_.renew(space_.tasks(), changes, candidates_.rows(), skin_.changesInAll());
    candidatesAre_ = CandidatesAre::kept;
    stats.mortonBits = mortonBits();
    skin_.endEscaped(stats, work_);
    return true;
  }

  /// @return false if this step must search for all boxes
  bool compareEscaped(const StepInput& input, const BoxChanges& changes, StepStats& stats) {
    NeighbourLists lists{};
    if (!findCandidatesOfEscaped(input, lists, stats)) return false;
    findFormerOfHubs(changes);
    {
      const auto timer = space_.timed("traversal", stats.traversalMs);
      const bool areKnown = candidates_.compare(changes, lists);
      candidates_.count(work_);
      if (!areKnown) return false;
    }
    requireAtMost(input.maxPairs, candidates_.pairsAfter());
    const auto timer = space_.timed("delta", stats.deltaMs);
    history_.change(input, candidates_.changes(), candidates_.words(), candidates_.pairsAfter());
    candidates_.commit(changes, lists);
    return true;
  }

  bool findCandidatesOfEscaped(const StepInput& input, NeighbourLists& lists,
                               StepStats& stats) try {
    const View<const std::uint32_t> left = skin_.escapedIds();
    if (left.empty()) return true;
    const Room room{history_.foundMemory(), kNeighbours * left.size(),
                    4 * input.maxPairs + left.size()};
    lists = findEscaped(skin_.grown(input), left, room, stats);
    return true;
  } catch (const std::length_error&) {
    return false;
  }

  /// Finds for each escaped hub all boxes that may have it in their rows.
  void findFormerOfHubs(const BoxChanges& changes) {
    for (Hub& hub : candidates_.hubs()) {
      hub.former.clear();
      if (!changes.hasEscaped(hub.id)) continue;
      reaches_.forget();  // its candidates need new reaches, but its row does not list them
      queryPacked(
          *searched(), [&](const Aabb& bounds) { return overlap(bounds, hub.grown); },
          [&](std::uint32_t id) { hub.former.push_back(id); });
    }
  }

  /// Lists the pairs of the last step, sorted by index. After most steps this is done only when
  /// pairs() is called. Until then they are in ranked_ or in the candidates.
  void listPairs() {
    if (history_.listByChange()) return;
    if (ranked_.areKnown())
      history_.list(listByIndex(ranked_.last()), ranked_.last().boxes);
    else
      history_.list(listRows(), candidates_.boxes());
  }

  NeighbourLists listRows() {
    const NeighbourLists lists = lendLists(candidates_.roomForLists(), candidates_.boxes());
    candidates_.writeLists(lists);
    return lists;
  }

  NeighbourLists listByIndex(const RankedPairs::Found& found) {
    const NeighbourLists lists = lendLists(found.pairs, found.boxes);
    RankedPairs::writeLists(found, ids(), lists);
    return lists;
  }

  NeighbourLists lendLists(std::size_t indices, std::size_t boxes) {
    Scratch& memory = history_.foundMemory();
    memory.reset(scratchBytes<std::uint32_t>(indices));
    return {memory.lendRest<std::uint32_t>("neighbours"), lendByBox(boxes)};
  }

  /// Expected number for a box; most boxes have fewer.
  static constexpr std::size_t kNeighbours = 32;

  std::vector<Pair> copyOfPairs() { return {pairs().begin(), pairs().end()}; }

  void validate(const StepInput& input, const std::vector<Pair>& before) try {
    checkStep(input, {before.data(), before.size()}, pairs(), added(), removed());
  } catch (const std::bad_alloc&) {
    // Skips the check. The next call of pairs() tries again.
  }

  const bool timesSmallSteps_;
  Reaches reaches_;
  Skin skin_;
  Candidates candidates_;
  RankedPairs ranked_;
  PairHistory history_;
  CandidatesAre candidatesAre_ = CandidatesAre::old;
  bool isPacked_ = true;                ///< whether the blocks have the boxes of the last step
  const PackedBoxes* scene_ = nullptr;  ///< the blocks of the last step, for queries
};

}  // namespace

std::unique_ptr<Pipeline> makeHostPipeline(int threads, const SimdKernels& kernels,
                                           bool timesSmallSteps) {
  return std::make_unique<HostPipeline>(threads, kernels, timesSmallSteps);
}

}  // namespace lbvh

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
#include "broadphase/host/pair_lists.h"
#include "broadphase/host/step_search.h"
#include "broadphase/host/verlet/candidates.h"
#include "broadphase/host/verlet/pair_words.h"
#include "broadphase/host/verlet/skin.h"

namespace lbvh {
namespace {

class HostPipeline final : public Pipeline, HostSearch {
 public:
  HostPipeline(int threads, const SimdKernels& kernels, bool timesSmallSteps)
      : HostSearch(threads, kernels),
        kernels_(kernels),
        timesSmallSteps_(timesSmallSteps),
        skin_(space_.tasks(), reaches_),
        candidates_(space_.tasks(), kernels),
        ranked_(space_.tasks(), kernels),
        delta_(kernels) {}

  void step(const StepInput& input, StepStats& stats) override {
    added_ = removed_ = {};  // this step overwrites their memory
    if (pairsAre_ == PairsAre::oneStepOff) pairsAre_ = whereAll();
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
    stats.pairs = pairCount();
    stats.added = added_.size();
    stats.removed = removed_.size();
    stats.capacity = std::max(listBlock_.bytes() / sizeof(Pair), stats.pairs);
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
    added_ = removed_ = pairs_ = {};
    scene_ = nullptr;
    candidatesAre_ = CandidatesAre::old;
    ranked_.release();
    pairsAre_ = PairsAre::listed;
    const View<Pair> room = lend(listBlock_, pairs.size());
    std::copy(pairs.begin(), pairs.end(), room.begin());
    pairs_ = room;
  }

  View<const Pair> pairs() override {
    listPairs();
    return pairs_;
  }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }
  const PackedBoxes* packed() const override { return scene_; }

  std::size_t memoryBytes() const override {
    std::size_t bytes = searchBytes() + skin_.memoryBytes() + reaches_.memoryBytes() +
                        candidates_.memoryBytes() + ranked_.memoryBytes() + delta_.memoryBytes() +
                        changes_.bytes() + spareChanges_.bytes();
    for (const Scratch* block : {&listBlock_, &foundBlock_, &spareBlock_}) bytes += block->bytes();
    return bytes;
  }

 private:
  /// Whether the next step can use the candidates. Each step first sets `old`, which stays if the
  /// step fails.
  enum class CandidatesAre {
    old,    ///< no: the last step was plain, or the pairs came from setPreviousPairs()
    found,  ///< yes: this step has found them by a search of all grown boxes
    kept    ///< yes: this step has updated them by a search for a few boxes
  };

  /// Where the last step's pairs are. pairs() moves them to pairs_.
  enum class PairsAre {
    listed,  ///< in pairs_
    /// Only the changes of the last step are missing in pairs_. All pairs are where whereAll()
    /// says.
    oneStepOff,
    inRows,  ///< in the candidates, after a step that searched for a few boxes
    byRank   ///< in ranked_, after plain steps in the same order
  };

  PairsAre whereAll() const { return ranked_.areKnown() ? PairsAre::byRank : PairsAre::inRows; }

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
           findRanked(ranked_, foundBlock_, 2 * pairCount(), input.maxPairs, stats);
  }

  void searchInNewOrder(const StepInput& input, StepStats& stats) {
    listPairs();
    candidates_.forget();
    ranked_.forget();
    orderAll(input, PackedFor::ranks, stats);
    work_.tests = 0;
    findRanked(ranked_, foundBlock_, 2 * pairCount(), input.maxPairs, stats);
    beginRanks();
  }

  /// Compares by rank, because the pairs of the last step have the same ranks.
  void compareByRank(const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("delta", stats.deltaMs);
    if (pairsAre_ != PairsAre::listed) releaseListed();
    ranked_.compare(ids(), input.removedObjects, foundBlock_);
    listChanges(ranked_.changes(), ranked_.words());
    const bool isPatchable = pairsAre_ == PairsAre::listed && input.removedObjects.empty();
    pairsAre_ = isPatchable ? PairsAre::oneStepOff : PairsAre::byRank;
  }

  /// Frees the memory of pairs_, because pairs() was not called after the last step.
  void releaseListed() {
    pairs_ = {};
    listBlock_ = Scratch();
    spareBlock_ = Scratch();
  }

  /// Compares by index, because the pairs of the last step have other ranks or no ranks.
  void compareByIndex(const StepInput& input, StepStats& stats) {
    const RankedPairs::Found& found = ranked_.next();
    const NeighbourLists lists = listByIndex(found);
    compare(input, lists, found.pairs, stats);
  }

  /// Orders the boxes again and finds the pairs by their new ranks, for the next step. If this
  /// fails, the old order stays.
  void renewRanks(const StepInput& input, StepStats& stats) try {
    beginNextOrder(input, stats);
    findRanked(ranked_, foundBlock_, ranked_.last().pairs, input.maxPairs, stats);
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
    compare(input, lists, candidates_.pairs(), stats);
    if (candidates_.areKnown())
      candidatesAre_ = CandidatesAre::found;
    else
      skin_.turnOff();
  }

  /// @return false if there are too many candidates, or if the search needs too many tests
  bool findCandidates(const StepInput& input, NeighbourLists& lists, StepStats& stats) try {
    // Grown boxes have more pairs than the boxes themselves, and each pair is found twice. Memory
    // that is not touched costs nothing, but a second search would cost time.
    const std::uint64_t n = input.boxes.size();
    const Room room{foundBlock_, 8 * pairCount() + 8 * input.boxes.size(), 4 * input.maxPairs + n};
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
    if (areFound) {  // their memory is as large as that search needed
      foundBlock_ = Scratch();
      spareBlock_ = Scratch();
    }
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
    listChanges(candidates_.changes(), candidates_.words());
    candidates_.commit(changes, lists);
    const bool isPatchable = pairsAre_ == PairsAre::listed && input.removedObjects.empty();
    pairsAre_ = isPatchable ? PairsAre::oneStepOff : PairsAre::inRows;
    return true;
  }

  bool findCandidatesOfEscaped(const StepInput& input, NeighbourLists& lists,
                               StepStats& stats) try {
    const View<const std::uint32_t> left = skin_.escapedIds();
    if (left.empty()) return true;
    const Room room{foundBlock_, kNeighbours * left.size(), 4 * input.maxPairs + left.size()};
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

  /// Stages 6 and 7. The added pairs overwrite the neighbours, and the removed pairs overwrite the
  /// old ones.
  void compare(const StepInput& input, const NeighbourLists& lists, std::size_t pairs,
               StepStats& stats) {
    const View<Pair> sorted =
        sortNeighbours(lists, input.boxes.size(), lend(spareBlock_, pairs), stats);
    const auto timer = space_.timed("delta", stats.deltaMs);
    const View<Pair> room = lend(foundBlock_, sorted.size());
    const auto found = delta_.compare(space_.tasks(), pairs_, sorted, input.removedObjects,
                                      room.data(), pairs_.data());
    added_ = found.added;
    removed_ = found.removed;
    pairs_ = sorted;
    std::swap(listBlock_, spareBlock_);
    pairsAre_ = PairsAre::listed;
  }

  /// Runs stage 7 for changes that are known, but not sorted.
  void listChanges(View<std::uint64_t> words, PairWords format) {
    const View<Pair> pairs = changes_.ensure(words.size());
    const std::uint64_t* sorted = words.data();
    if (words.size() <= kFewChanges)
      std::sort(words.begin(), words.end());
    else
      sorted = space_.radixSort().words(
          space_.tasks(), words, spareChanges_.ensure(words.size()).data(), 0, format.changeBits());
    std::size_t added = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      pairs[i] = format.changed(sorted[i]);
      added += format.isAdded(sorted[i]);
    }
    added_ = {pairs.data(), added};
    removed_ = {pairs.data() + added, pairs.size() - added};
  }

  std::size_t pairCount() const {
    if (pairsAre_ == PairsAre::listed) return pairs_.size();
    return ranked_.areKnown() ? ranked_.last().pairs : candidates_.pairs();
  }

  /// Moves the pairs to pairs_, sorted. After most steps this is done only when pairs() is called.
  void listPairs() {
    if (pairsAre_ == PairsAre::oneStepOff) patchLastPairs();
    if (pairsAre_ == PairsAre::inRows) listRows();
    if (pairsAre_ == PairsAre::byRank) list(listByIndex(ranked_.last()), ranked_.last().boxes);
    pairsAre_ = PairsAre::listed;
  }

  void patchLastPairs() {
    const View<Pair> patched = lend(foundBlock_, pairCount());
    patchPairs(kernels_, pairs_, added_, removed_, patched);
    pairs_ = patched;
    std::swap(listBlock_, foundBlock_);
  }

  void listRows() {
    const NeighbourLists lists = lendLists(candidates_.roomForLists(), candidates_.boxes());
    candidates_.writeLists(lists);
    list(lists, candidates_.boxes());
  }

  void list(const NeighbourLists& lists, std::size_t boxes) {
    pairs_ = lend(listBlock_, pairCount());
    writePairs(lists, boxes, pairs_);
  }

  NeighbourLists listByIndex(const RankedPairs::Found& found) {
    const NeighbourLists lists = lendLists(found.pairs, found.boxes);
    RankedPairs::writeLists(found, ids(), lists);
    return lists;
  }

  NeighbourLists lendLists(std::size_t indices, std::size_t boxes) {
    foundBlock_.reset(scratchBytes<std::uint32_t>(indices));
    return {foundBlock_.lendRest<std::uint32_t>("neighbours"), lendByBox(boxes)};
  }

  static constexpr std::size_t kFewChanges = 64;
  /// Expected number for a box; most boxes have fewer.
  static constexpr std::size_t kNeighbours = 32;

  std::vector<Pair> copyOfPairs() { return {pairs().begin(), pairs().end()}; }

  void validate(const StepInput& input, const std::vector<Pair>& before) try {
    checkStep(input, {before.data(), before.size()}, pairs(), added_, removed_);
  } catch (const std::bad_alloc&) {
    // Skips the check. The next call of pairs() tries again.
  }

  const SimdKernels& kernels_;
  const bool timesSmallSteps_;
  Reaches reaches_;
  Skin skin_;
  Candidates candidates_;
  RankedPairs ranked_;
  HostPairDelta delta_;
  CandidatesAre candidatesAre_ = CandidatesAre::old;
  PairsAre pairsAre_ = PairsAre::listed;
  Scratch listBlock_;   ///< memory of pairs_
  Scratch foundBlock_;  ///< neighbours, later overwritten by added pairs
  Scratch spareBlock_;  ///< pairs of the previous step, later overwritten by removed pairs
  View<Pair> pairs_;
  HostBuffer<Pair> changes_;
  HostBuffer<std::uint64_t> spareChanges_;
  View<const Pair> added_, removed_;
  bool isPacked_ = true;                ///< whether the blocks have the boxes of the last step
  const PackedBoxes* scene_ = nullptr;  ///< the blocks of the last step, for queries
};

}  // namespace

std::unique_ptr<Pipeline> makeHostPipeline(int threads, const SimdKernels& kernels,
                                           bool timesSmallSteps) {
  return std::make_unique<HostPipeline>(threads, kernels, timesSmallSteps);
}

}  // namespace lbvh

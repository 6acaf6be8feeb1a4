// SPDX-License-Identifier: Zlib
// Runs a step on the host's cores: finds the pairs, and their changes since the previous step.
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
#include "broadphase/host/pair_history.h"
#include "broadphase/host/step_search.h"
#include "broadphase/host/verlet/verlet_lists.h"

namespace lbvh {
namespace {

class HostPipeline final : public Pipeline, HostSearch {
 public:
  HostPipeline(int threads, const SimdKernels& kernels, bool timesSmallSteps)
      : HostSearch(threads, kernels),
        timesSmallSteps_(timesSmallSteps),
        verlet_(space_.tasks(), kernels),
        ranked_(space_.tasks(), kernels),
        history_(space_, kernels) {}

  void step(const StepInput& input, StepStats& stats) override {
    history_.begin();
    scene_ = nullptr;
    work_ = {};
    space_.setTimesStages(timesSmallSteps_ || input.boxes.size() > kMaxUnordered);
    const std::vector<Pair> oldPairs = kValidate ? copyOfPairs() : std::vector<Pair>();
    switch (plan(input, stats)) {
      case VerletLists::Plan::plain:
        searchPlain(input, stats);
        break;
      case VerletLists::Plan::all:
        searchGrown(input, stats);
        break;
      case VerletLists::Plan::escaped:
        if (searchForEscaped(input, stats)) break;
        verlet_.growAll(input);
        searchGrown(input, stats);
    }
    scene_ = searched();
    history_.describe(stats);
    if constexpr (kValidate) validate(input, oldPairs);
  }

  /// Orders the boxes again if recent steps have degraded the order. Otherwise queries would stay
  /// slow for as long as nothing moves.
  void rest() noexcept override {
    const StepInput grown = verlet_.last();
    if (grown.boxes.empty() || !isOrderWorn()) return;
    StepStats stats;  // not reported
    try {
      orderAgain(grown, stats);
    } catch (const std::exception&) {
      scene_ = nullptr;
      verlet_.invalidate();
    }
  }

  void setPreviousPairs(View<const Pair> pairs) override {
    scene_ = nullptr;
    verlet_.invalidate();
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
    return searchBytes() + verlet_.memoryBytes() + ranked_.memoryBytes() + history_.memoryBytes();
  }

 private:
  VerletLists::Plan plan(const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    return verlet_.plan(input);
  }

  /// Searches for the pairs of all boxes, by rank. The boxes are not grown.
  void searchPlain(const StepInput& input, StepStats& stats) {
    if (!ranked_.areKnown() || !searchInLastOrder(input, stats)) searchInNewOrder(input, stats);
    verlet_.endPlain(input.boxes.size(), work_.tests);
    if (ranked_.areKnown())
      compareByRank(input, stats);
    else
      compareByIndex(input, stats);
    ranked_.keep();
  }

  /// @return false if the order cannot be kept, or if a search in it needs far more tests than a
  ///   search in a new order
  bool searchInLastOrder(const StepInput& input, StepStats& stats) {
    work_.tests = 0;
    return keepOrder(input, stats) && ranked_.haveSameOversized(*searched()) &&
           findRanked(ranked_, history_.foundMemory(), input.maxPairs, stats);
  }

  /// Searches in a new order. The pairs of the previous step get new ranks, if possible. If the
  /// pairs are already listed by index, they are compared by index instead, because then fewer
  /// lists must be sorted.
  void searchInNewOrder(const StepInput& input, StepStats& stats) {
    if (!ranked_.areKnown() || history_.isListed() || !renewRanks(input, stats)) {
      listPairs();
      verlet_.forget();
      ranked_.forget();
      orderAll(input, PackedFor::ranks, stats);
    }
    work_.tests = 0;
    findRanked(ranked_, history_.foundMemory(), input.maxPairs, stats);
  }

  /// Orders the boxes again, and sorts the pairs of the previous step by their new ranks.
  /// @return false if these pairs must be compared by index; ids() is then the previous order
  bool renewRanks(const StepInput& input, StepStats& stats) try {
    if (input.boxes.size() < ids().size()) return false;
    beginNextOrder(input, stats);
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    if (ranked_.haveSameOversized(*searched())) {
      ranked_.renumber(lastIds(), ids(), lendByBox(ids().size()), history_.foundMemory());
      return true;
    }
    dropNextOrder();
    return false;
  } catch (const std::exception&) {
    dropNextOrder();
    return false;
  }

  /// Compares by rank, because the pairs of the previous step have the same ranks.
  void compareByRank(const StepInput& input, StepStats& stats) {
    const auto timer = space_.timed("delta", stats.deltaMs);
    ranked_.compare(ids(), input.removedObjects, history_.foundMemory());
    history_.change(input, ranked_.changes(), ranked_.words(), ranked_.next().pairs);
  }

  /// Compares by index, because the pairs of the previous step have other ranks or no ranks.
  void compareByIndex(const StepInput& input, StepStats& stats) {
    const RankedPairs::Found& found = ranked_.next();
    history_.compare(input, listByIndex(found), found.pairs, stats);
  }

  /// Searches for the pairs of all grown boxes, and keeps them as candidates for the next step.
  void searchGrown(const StepInput& input, StepStats& stats) {
    listPairs();
    ranked_.release();
    NeighbourLists lists{};
    if (!findCandidates(input, lists, stats)) {
      verlet_.turnOff();
      return searchPlain(input, stats);
    }
    requireAtMost(input.maxPairs, verlet_.pairs());
    history_.compare(input, lists, verlet_.pairs(), stats);
    verlet_.endAll();
  }

  /// @return false if there are too many candidates, or if the search needs too many tests
  bool findCandidates(const StepInput& input, NeighbourLists& lists, StepStats& stats) try {
    // Grown boxes have more pairs than the boxes themselves, and each pair is found twice. So
    // plenty of memory is reserved. Untouched memory costs nothing, but a second search would cost
    // time.
    const std::size_t n = input.boxes.size();
    const ListMemory memory{history_.foundMemory(), 8 * (history_.size() + n),
                            4 * input.maxPairs + n};
    // Up to kMaxUnordered boxes stay in index order. Then the number of tests of a plain search
    // says nothing about this search.
    const std::uint64_t most = n <= kMaxUnordered ? kNoLimit : verlet_.mostTests(n);
    if (!findAll(verlet_.grown(input), memory, most, lists, stats)) return false;
    const auto timer = space_.timed("traversal", stats.traversalMs);
    verlet_.adopt(input, lists, stats, work_);
    return true;
  } catch (const std::length_error&) {
    return false;
  }

  /// Searches for the candidates of the boxes that have escaped from their grown boxes. Tests the
  /// known candidates of the other boxes that have changed.
  /// @return false if this step must search for the pairs of all boxes
  bool searchForEscaped(const StepInput& input, StepStats& stats) {
    stats.searched = 0;
    if (isOrderWorn()) orderAgain(verlet_.grown(input), stats);
    if (verlet_.wereAllFound()) history_.releaseSpare();
    if (verlet_.hasChanges() && !compareEscaped(input, stats)) return false;
    verlet_.endEscaped(input, stats, work_);
    stats.mortonBits = mortonBits();
    return true;
  }

  /// @return false if this step must search for the pairs of all boxes
  bool compareEscaped(const StepInput& input, StepStats& stats) {
    NeighbourLists lists{};
    if (!findCandidatesOfEscaped(input, lists, stats)) return false;
    {
      const auto timer = space_.timed("traversal", stats.traversalMs);
      if (!verlet_.compare(input, lists, *searched(), work_)) return false;
    }
    requireAtMost(input.maxPairs, verlet_.pairsAfter());
    const auto timer = space_.timed("delta", stats.deltaMs);
    history_.change(input, verlet_.changes(), verlet_.words(), verlet_.pairsAfter());
    verlet_.commit(input, lists);
    return true;
  }

  bool findCandidatesOfEscaped(const StepInput& input, NeighbourLists& lists,
                               StepStats& stats) try {
    const View<const std::uint32_t> ids = verlet_.escapedIds();
    if (ids.empty()) return true;
    const ListMemory memory{history_.foundMemory(), kNeighbours * ids.size(),
                            4 * input.maxPairs + ids.size()};
    lists = findEscaped(verlet_.grown(input), ids, memory, stats);
    return true;
  } catch (const std::length_error&) {
    return false;
  }

  /// Lists the pairs of the last step, sorted by index. After most steps this is done only when
  /// pairs() is called. Until then, the pairs are in ranked_ or in verlet_.
  void listPairs() {
    if (history_.listByChange()) return;
    if (ranked_.areKnown())
      history_.list(listByIndex(ranked_.last()), ranked_.last().boxes);
    else
      history_.list(listVerlet(), verlet_.boxes());
  }

  NeighbourLists listVerlet() {
    const NeighbourLists lists = lendLists(verlet_.capacityForLists(), verlet_.boxes());
    verlet_.writeLists(lists);
    return lists;
  }

  NeighbourLists listByIndex(const RankedPairs::Found& found) {
    const NeighbourLists lists = lendLists(found.pairs, found.boxes);
    ranked_.writeLists(found, ids(), lists);
    return lists;
  }

  NeighbourLists lendLists(std::size_t indices, std::size_t boxes) {
    Scratch& memory = history_.foundMemory();
    memory.reset(scratchBytes<std::uint32_t>(indices));
    return {memory.lendRest<std::uint32_t>("neighbours"), lendByBox(boxes)};
  }

  /// Expected number of candidates per escaped box; most boxes have fewer.
  static constexpr std::size_t kNeighbours = 32;

  std::vector<Pair> copyOfPairs() { return {pairs().begin(), pairs().end()}; }

  void validate(const StepInput& input, const std::vector<Pair>& before) try {
    checkStep(input, {before.data(), before.size()}, pairs(), added(), removed());
  } catch (const std::bad_alloc&) {
    // Skips the check. The next call of pairs() tries again.
  }

  const bool timesSmallSteps_;
  VerletLists verlet_;
  RankedPairs ranked_;
  PairHistory history_;
  const PackedBoxes* scene_ = nullptr;  ///< the blocks of the last step, for queries
};

}  // namespace

std::unique_ptr<Pipeline> makeHostPipeline(int threads, const SimdKernels& kernels,
                                           bool timesSmallSteps) {
  return std::make_unique<HostPipeline>(threads, kernels, timesSmallSteps);
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// Runs the stages of a step in order, on an NVIDIA GPU. Then the host waits once, and reads the
// counts. pair_finder.cpp checks the arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "broadphase/core/limits.h"
#include "broadphase/core/pipeline.h"
#include "broadphase/core/scratch.h"
#include "broadphase/core/shared_work.h"
#include "broadphase/core/test_hooks.h"
#include "broadphase/cuda/fetched_pairs.cuh"
#include "broadphase/cuda/few_changes.cuh"
#include "broadphase/cuda/runtime/threads.cuh"
#include "broadphase/cuda/stages.cuh"
#include "broadphase/cuda/step_plan.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"

namespace lbvh {

/// Must be created, used and destroyed on one thread without a pending CUDA error, preferably a
/// dedicated one. It makes its device the current one, and clears the thread's last error.
class CudaPipeline final : public Pipeline {
 public:
  /// @throws SpaceError
  explicit CudaPipeline(const Options& options)
      : hierarchy_(options.hierarchy),
        tasks_(HostTasks::threadsFor(options.threads)),
        buffers_({options.device, options.graphs, options.stageTimes}) {
    plan_.order.mayKeep = hierarchy_ == Hierarchy::wide && !testHooks.sortsEachStep;
    plan_.mostListed = StepPlan::listedIn(options.pinnedDeltaMiB << 20);
    fetched_.mostLocked = StepPlan::lockedIn(options.pinnedDeltaMiB << 20);
  }

  ~CudaPipeline() override { relaxed_.emplace(); }

  void step(const StepInput& input, StepStats& stats) override {
    guarded([&] { runStep(input, stats); });
  }
  void setPreviousPairs(View<const Pair> pairs) override {
    guarded([&] { copyPreviousPairs(pairs); });
  }

  /// Copies the pairs to the host's memory, unless they have been copied since the last step.
  View<const Pair> pairs() override {
    if (!hasFetched_) guarded([&] { fetchPairs(); });
    return fetched_.pairs();
  }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }

  std::size_t memoryBytes() const override {
    return space_.allMemory().bytes() + copiedLists_.bytes() + fetched_.ordinaryBytes();
  }
  std::size_t pinnedBytes() const { return space_.allMemory().pinnedBytes(); }

 private:
  /// Buffers for the second boxes of found pairs, until they are in sorted lists.
  struct Placement {
    std::uint32_t* places;    ///< by pair: its index in the list of its first box
    std::uint32_t* partners;  ///< second boxes, list by list, unsorted
  };
  Placement lendPlacement() {
    const std::size_t pairs = plan_.pairs;
    pairScratch_.reset(2 * scratchBytes<std::uint32_t>(pairs));
    return {pairScratch_.lend<std::uint32_t>("places", pairs).data(),
            pairScratch_.lend<std::uint32_t>("partners", pairs).data()};
  }

  /// Where the launches of a step write the added and removed pairs. The header has their counts.
  struct Outcome {
    View<Pair> added, removed;
  };

  const StepHeader& report() const { return *report_.data(); }

  // Steps alternate between two buffers: one has the lists of the previous step, and the other
  // receives those of the current step.
  ListBuffers& oldLists() { return lists_[old_]; }
  ListBuffers& newLists() { return lists_[1 - old_]; }

  /// Runs f so that it does not disturb the program's stream captures. If f throws, waits until
  /// none of our work is running.
  template <class F>
  void guarded(const F& f) {
    const RelaxedCapture relaxed;
    try {
      f();
    } catch (SpaceError& error) {
      if (space_.isLost()) error.isSticky = true;
      throw;
    } catch (...) {
      space_.isLost();
      throw;
    }
  }

  void fetchPairs() {
    Pair* const memory = fetched_.ensure(pairs_).data();
    space_.copy(View<const Pair>{oldLists().pairs.data(), pairs_}, memory);
    hasFetched_ = true;
  }

  void runStep(const StepInput& input, StepStats& stats) {
    added_ = removed_ = {};  // this step overwrites the buffer that has them
    hasFetched_ = false;
    copiedLists_ = HostBuffer<Pair>();
    const StepInput there = upload(input);
    plan_.mostPairs = there.maxPairs;
    plan_.begin(there.boxes.size(), input.boxes.size(), pairs_);
    const std::size_t few = chooseFew(input, there);
    Outcome outcome;
    do {
      arguments_.data()->mostExtents = plan_.order.mostExtents();
      const auto launch = [&] {
        return searchesFew_ ? runFew({buffers_, &stats}, there)
                            : runStages({buffers_, &stats}, there);
      };
      outcome = plan_.order.sorts()  // such a step calls CUB, and so cannot be recorded
                    ? space_.run(launch)
                    : space_.replay(recordings_, launches(there, stats), launch);
      if (input.beside != nullptr) helpWith(*input.beside);
      space_.wait();
      requireAtMost(input.maxPairs, report().pairs);
      if (report().pairs > there.maxPairs)  // the kernels' limit may be lower than the caller's
        throw SpaceError("more than 2^31 - 1 pairs, which a GPU's kernels cannot count", false);
    } while (fellShort());
    if (!plan_.lists(report().delta)) copyLists(outcome, there);
    if (searchesFew_) stats.searched = few;
    keep(outcome, there.boxes.size(), stats);
    stats.nanBoxes -= there.boxes.size() - input.boxes.size();  // padding boxes are NaN boxes
    hasLastBoxes_ = true;
    lastSize_ = input.boxes.size();
  }

  void helpWith(SharedWork& work) noexcept {
    const std::size_t threads =
        std::min(work.remaining(), static_cast<std::size_t>(tasks_.threads()));
    if (threads == 0) return;
    try {
      tasks_.forParts(threads, threads,
                      [&](std::size_t, std::size_t, std::size_t) { work.help(); });
    } catch (...) {  // no memory for tasks: the caller does the rest
    }
  }

  /// Launches the stages of a step for all boxes. Without a sort, the launches depend only on the
  /// members of LaunchKey.
  Outcome runStages(const StepRun& run, const StepInput& there) {
    const View<const Aabb> boxes = there.boxes;
    const View<std::uint32_t> counts = newLists().offsets.ensure(boxes.size() + 1);
    const Chains chains = chainsFor(boxes.size());
    const Placement placement = lendPlacement();
    const FoundPairs found = foundPairs(there, counts, placement);
    const Outcome outcome = lendChanges();

    measureScene(run, boxes, arguments_.data(), counts, chains.words);
    if (hierarchy_ == Hierarchy::binary) {
      const View<const Node> tree = buildTree(run, boxes, plan_.bits);
      findTreePairs(run, tree, boxes.size(), found);
    } else {
      if (plan_.order.sorts()) sortAlongCurve(run, boxes, found.rule.filters, plan_.bits);
      const LeafBlocks leaves = buildBlocks(run, boxes, found.rule.filters);
      findPairs(run, leaves, boxes.size(), found);
    }
    scatterPairs(run, found, boxes.size(), chains, placement.partners);

    ListComparison comparison = comparisonOf(there, outcome);
    comparison.partners = placement.partners;
    comparison.sortedPairs = newLists().pairs.data();
    comparison.report = report_.data();
    compareLists(run, comparison);
    return outcome;
  }

  /// Does the same as runStages(), but searches only for the pairs of boxes that have changed since
  /// the previous step.
  Outcome runFew(const StepRun& run, const StepInput& there) {
    const Outcome outcome = lendChanges();
    const OldPairs old{oldLists().of(boxesBefore_),
                       there.filters.empty() ? nullptr : there.filters.data(),
                       there.removedObjects};
    updateFew(run, fewBuffers_, changedList_,
              {there.boxes, old, arguments_.data(), newLists().pairs.ensure(plan_.pairs),
               newLists().offsets.ensure(there.boxes.size() + 1), outcome.added, outcome.removed,
               report_.data()},
              knowsSlots_);
    return outcome;
  }

  /// Decides whether the step searches only for the pairs of changed boxes. Such a step needs the
  /// boxes, the order and the lists of the previous step.
  /// @return the number of changed boxes, or 0 if the data of the previous step cannot be used
  std::size_t chooseFew(const StepInput& input, const StepInput& there) {
    searchesFew_ = false;
    const bool hadFilters = std::exchange(hasFilters_, !input.filters.empty());
    if (!hadLast_ || plan_.order.sorts() || boxesBefore_ != there.boxes.size() ||
        hadFilters != hasFilters_ || pairs_ > plan_.pairs)
      return 0;
    const std::size_t end = std::max(input.boxes.size(), lastSize_);
    for (std::size_t i = 0; i < std::min(input.removedObjects.size(), end); ++i)
      if (input.removedObjects[i] != 0) changed_.add(i);
    // Removed boxes count as changed, too.
    for (std::size_t i = input.boxes.size(); i < lastSize_; ++i) changed_.add(i);
    const std::size_t count = changed_.count();
    searchesFew_ = fewPlan_.searchesFew(count, input.boxes.size());
    if (searchesFew_) changedList_.assign(changed_, count);
    return count;
  }

  void copyPreviousPairs(View<const Pair> pairs) {
    if (pairs.size() > kMaxCountable)
      throw SpaceError("more than 2^31 - 1 pairs, which a GPU's kernels cannot count", false);
    hasLastBoxes_ = false;
    boxes_.invalidate();
    filters_.invalidate();
    removedObjects_.invalidate();
    added_ = removed_ = {};
    hasFetched_ = false;
    pairs_ = boxesBefore_ = 0;  // so that they are 0 if an allocation fails
    const View<Pair> memory = oldLists().pairs.ensure(pairs.size());
    space_.abandonAndCopy(pairs, memory.data());
    const std::size_t boxes = pairs.empty() ? 0 : pairs[pairs.size() - 1].first + std::size_t{1};
    std::uint32_t* const offsets = oldLists().offsets.ensure(boxes + 1).data();
    space_.forEach(boxes + 1, IndexLists{memory, offsets});
    boxesBefore_ = boxes;
    pairs_ = pairs.size();
  }

  StepInput upload(const StepInput& input) {
    report_.ensure(1);
    *arguments_.ensure(1).data() = {input.boxes.size(), pairs_};
    // The bits say which boxes differ from those of the last step that did not throw. If a later
    // step threw, the device may have other boxes, so the bits cannot be used.
    hadLast_ = std::exchange(hasLastBoxes_, false);
    const View<const std::uint64_t> changed =
        hadLast_ ? input.changed : View<const std::uint64_t>{};
    changed_.begin(std::max(input.boxes.size(), lastSize_));
    return {space_.upload(input.boxes, boxes_, changed, &changed_, tasks_),
            space_.upload(input.filters, filters_, changed, &changed_, tasks_),
            space_.upload(input.removedObjects, removedObjects_), limitOf(input.maxPairs)};
  }

  /// Everything that determines the launches of a step without a sort, except addresses of memory.
  /// Two such steps with equal keys have the same launches. Values that may differ between such
  /// steps are in StepArguments.
  struct LaunchKey {
    std::size_t boxes, filters, removedObjects;
    std::uint64_t maxPairs;
    std::size_t few;  ///< capacity for changed boxes; 0: a step for all boxes
    bool knowsSlots;
    std::size_t pairs, listed;
    int old;
    std::size_t boxesBefore;
    const StepStats* times;  ///< where the stage times are written; null: stages are not timed

    bool operator==(const LaunchKey&) const = default;
  };
  LaunchKey launches(const StepInput& there, const StepStats& stats) const {
    return {there.boxes.size(),
            there.filters.size(),
            there.removedObjects.size(),
            there.maxPairs,
            searchesFew_ ? changedList_.capacity() : 0,
            searchesFew_ && knowsSlots_,
            plan_.pairs,
            plan_.listed,
            old_,
            boxesBefore_,
            space_.timesStages() ? &stats : nullptr};
  }

  FoundPairs foundPairs(const StepInput& there, View<std::uint32_t> counts,
                        const Placement& placement) {
    FoundPairs found{newLists().pairs.ensure(plan_.pairs),
                     there.maxPairs,
                     countOf(&buffers_.header.data()->pairs),
                     {},
                     counts.data(),
                     placement.places};
    if (!there.filters.empty()) found.rule.filters = there.filters.data();
    return found;
  }

  Outcome lendChanges() {
    Pair* memory = changes_.ensure(2 * plan_.listed).data();
    return {{memory, plan_.listed}, {memory + plan_.listed, plan_.listed}};
  }

  Chains chainsFor(std::size_t boxes) {
    return buffers_.chainsFor(boxes, std::max(boxes, boxesBefore_));
  }

  ListComparison comparisonOf(const StepInput& there, const Outcome& lists) {
    ListComparison comparison{};
    comparison.current = newLists().of(there.boxes.size());
    comparison.old = oldLists().of(boxesBefore_);
    comparison.removedObjects = there.removedObjects;
    comparison.added = lists.added;
    comparison.removed = lists.removed;
    comparison.header = buffers_.header.data();
    const Chains chains = chainsFor(there.boxes.size());
    comparison.chain = chains.compare;
    comparison.hubs = chains.hubs;
    return comparison;
  }

  /// Copies lists of changes that do not fit in the mapped memory. The pairs are written again, to
  /// device memory that is free now, and copied to ordinary memory. If the device memory is too
  /// small for both lists together, they are written one after the other.
  void copyLists(Outcome& outcome, const StepInput& there) {
    const auto added = static_cast<std::size_t>(report().delta.added);
    const auto removed = static_cast<std::size_t>(report().delta.removed);
    Pair* memory = copiedLists_.ensure(added + removed).data();
    outcome.added = {memory, added};
    outcome.removed = {memory + added, removed};
    pairScratch_.reset(scratchBytes<Pair>(std::max(added, removed)));
    const View<Pair> lent = pairScratch_.lendRest<Pair>("copied lists");
    Pair* const list = lent.data();
    if (added + removed <= lent.size())
      return copyAgain({{list, added}, {list + added, removed}}, there, {list, added + removed},
                       memory);
    copyAgain({{list, added}, {}}, there, {list, added}, memory);
    copyAgain({{}, {list, removed}}, there, {list, removed}, memory + added);
  }

  void copyAgain(const Outcome& lists, const StepInput& there, View<const Pair> written, Pair* to) {
    if (written.empty()) return;
    space_.fill(chainsFor(there.boxes.size()).words, 0);
    compareLists({buffers_}, comparisonOf(there, lists));
    space_.copy(written, to);
  }

  /// Enlarges the plan if the step did not fit.
  /// @return whether the step must run again
  bool fellShort() {
    const bool isOverfull = searchesFew_ && report().overfull != 0;
    if (plan_.covers(report()) && !isOverfull) return false;
    if (std::exchange(searchesFew_, false)) fewPlan_.fellShort();
    if (!isOverfull) plan_.retry(report());
    return true;
  }

  void keep(const Outcome& outcome, std::size_t boxes, StepStats& stats) {
    describe(report(), stats);
    plan_.adaptTo(report());
    plan_.order.succeed(boxes);
    if (searchesFew_) fewPlan_.succeed();
    knowsSlots_ = searchesFew_ || (knowsSlots_ && !plan_.order.sorts());
    old_ = 1 - old_;
    pairs_ = static_cast<std::size_t>(report().pairs);
    boxesBefore_ = boxes;
    added_ = {outcome.added.data(), static_cast<std::size_t>(report().delta.added)};
    removed_ = {outcome.removed.data(), static_cast<std::size_t>(report().delta.removed)};
    stats.pairs = pairs_;
    stats.added = added_.size();
    stats.removed = removed_.size();
    stats.capacity = oldLists().pairs.capacity();
  }

  /// Set by the destructor. Otherwise, freeing the members below could break the program's stream
  /// captures.
  std::optional<RelaxedCapture> relaxed_;
  const Hierarchy hierarchy_;  ///< the same for every step, so LaunchKey does not need it
  HostTasks tasks_;            ///< threads for uploads and shared work
  StepBuffers buffers_;
  CudaSpace& space_ = buffers_.space;
  StepPlan plan_;
  ListBuffers lists_[2] = {ListBuffers(space_.memory()), ListBuffers(space_.memory())};
  int old_ = 0;  ///< index of the lists of the previous step
  UploadBuffer<Aabb> boxes_{space_.memory(), space_.hostMemory()};
  UploadBuffer<Filter> filters_{space_.memory(), space_.hostMemory()};
  UploadBuffer<std::uint8_t> removedObjects_{space_.memory(), space_.hostMemory()};
  /// Whether the device has the boxes of the previous step, and that step did not throw.
  bool hasLastBoxes_ = false;
  bool hadLast_ = false;      ///< value of hasLastBoxes_ before this step
  std::size_t lastSize_ = 0;  ///< number of boxes of the previous step
  bool hasFilters_ = false;   ///< whether the previous step had filters
  SparseBits changed_;        ///< boxes that may differ from those of the previous step
  ChangedList changedList_{space_.hostMemory()};
  FewChangeBuffers fewBuffers_{space_.memory()};
  FewPlan fewPlan_;
  bool searchesFew_ = false;
  bool knowsSlots_ = false;  ///< fewBuffers_ has the slots of the current order
  GraphRecordings<LaunchKey, Outcome> recordings_;
  PinnedBuffer<StepArguments> arguments_{space_.hostMemory()};
  PinnedBuffer<StepHeader> report_{space_.hostMemory()};
  /// Kernels write the added and removed pairs directly to this host memory, so that only actual
  /// pairs cross the bus.
  PinnedBuffer<Pair> changes_{space_.hostMemory()};
  Scratch<DeviceMemory> pairScratch_{space_.memory()};
  HostBuffer<Pair> copiedLists_;  ///< changes that did not fit in changes_
  FetchedPairs fetched_{space_.hostMemory()};
  bool hasFetched_ = false;
  std::size_t pairs_ = 0;        ///< number of pairs of the previous step
  std::size_t boxesBefore_ = 0;  ///< number of boxes that have lists in oldLists()
  View<const Pair> added_, removed_;
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// The table of contents of a step on an NVIDIA GPU: the stages in order. Then the host waits once,
// and looks at what was counted. pair_finder.cpp checks the arguments.
#pragma once

#include <cstdint>
#include <utility>

#include "broadphase/core/limits.h"
#include "broadphase/core/pipeline.h"
#include "broadphase/core/scratch.h"
#include "broadphase/cuda/stages.cuh"
#include "broadphase/host/parallel/buffer.h"

namespace lbvh {

/// Made, used and destroyed on a thread where no error of CUDA's is pending, best on one of its
/// own: it makes its device the current one, and clears the thread's last error.
class CudaPipeline final : public Pipeline, CudaStages {
 public:
  /// @throws SpaceError
  explicit CudaPipeline(const Options& options)
      : CudaStages({options.device, options.graphs, options.stageTimes}) {
    plan_.order.mayKeep = options.keepOrder;
    plan_.mostListed = StepPlan::listedIn(options.mappedMiB << 20);
  }

  void step(const StepInput& input, StepStats& stats) override {
    guarded([&] { runStep(input, stats); });
  }
  void setPreviousPairs(View<const Pair> pairs) override {
    guarded([&] { copyPreviousPairs(pairs); });
  }

  View<const Pair> pairs() override { return {lists_[current_].pairs.data(), pairs_}; }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }

  std::size_t memoryBytes() const override {
    return space_.allMemory().bytes() + copiedLists_.bytes();
  }
  std::size_t pinnedBytes() const { return space_.allMemory().pinnedBytes(); }

 private:
  /// The second boxes of the pairs that were found, on their way into sorted lists.
  struct Placement {
    std::uint32_t* places;   ///< by pair: its place in its list
    std::uint32_t* seconds;  ///< list by list, unsorted
  };
  Placement lendPlacement() {
    const std::size_t pairs = plan_.pairs;
    pairScratch_.reset(2 * scratchBytes<std::uint32_t>(pairs));
    return {pairScratch_.lend<std::uint32_t>("places", pairs).data,
            pairScratch_.lend<std::uint32_t>("seconds", pairs).data};
  }

  /// Where the launches of a step write their results. Their numbers are in the header.
  struct Outcome {
    View<Pair> added, removed;
  };

  const StepHeader& report() const { return *report_.data(); }

  /// The program's captures do not mind us. After an error nothing of ours runs any more.
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

  void runStep(const StepInput& input, StepStats& stats) {
    stats_ = &stats;
    added_ = removed_ = {};  // they lie in a buffer that is written now
    copiedLists_ = HostBuffer<Pair>();
    const StepInput there = upload(input);
    plan_.mostPairs = there.maxPairs;
    plan_.begin(there.boxes.size, input.boxes.size, pairs_);
    Outcome outcome;
    do {
      arguments_.data()->mostExtents = plan_.order.mostExtents();
      outcome = space_.replay(recordings_, launches(there, stats), [&] {
        const std::size_t compared = std::max(there.boxes.size, boxesBefore_);
        const LeafBlocks leaves = packBoxes(there.boxes, arguments_.data(), compared);
        const Placement placement = lendPlacement();
        const FoundPairs found = foundPairs(there, placement.places);
        findPairs(leaves, there.boxes.size, nullptr, found);
        scatter(found, there.boxes.size, compared, placement.seconds);
        return compare(there, placement.seconds);
      });
      space_.wait();
      requireAtMost(input.maxPairs, report().pairs);
      if (report().pairs > there.maxPairs)  // the host can
        throw SpaceError("more pairs than a GPU's kernels can count", false);
    } while (fellShort());
    if (!plan_.lists(report().delta)) copyLists(outcome, there);
    keep(outcome, there.boxes.size, stats);
    stats.nanBoxes -= there.boxes.size - input.boxes.size;  // the padding
    hasLastBoxes_ = true;
  }

  void copyPreviousPairs(View<const Pair> pairs) {
    if (pairs.size > kMostPairs)
      throw SpaceError("more pairs than a GPU's kernels can count", false);
    boxes_.invalidate();
    filters_.invalidate();
    removedObjects_.invalidate();
    added_ = removed_ = {};
    pairs_ = boxesBefore_ = 0;  // if memory fails
    const View<Pair> room = lists_[current_].pairs.ensure(pairs.size);
    space_.abandonAndCopy(pairs, room.data);
    const std::size_t boxes = pairs.empty() ? 0 : pairs[pairs.size - 1].first + std::size_t{1};
    const View<std::uint32_t> offsets = lists_[current_].offsets.ensure(boxes + 1);
    space_.forEach(pairs.size + 1, IndexLists{room, offsets});
    boxesBefore_ = boxes;
    pairs_ = pairs.size;
  }

  StepInput upload(const StepInput& input) {
    report_.ensure(1);
    *arguments_.ensure(1).data = {input.boxes.size, pairs_};
    // The bits are relative to the last step that did not throw. After any other upload they do not
    // say what the device has.
    const bool hasLast = std::exchange(hasLastBoxes_, false);
    const View<const std::uint64_t> changed = hasLast ? input.changed : View<const std::uint64_t>{};
    return {space_.upload(input.boxes, boxes_, changed),
            space_.upload(input.filters, filters_, changed),
            space_.upload(input.removedObjects, removedObjects_), limitOf(input.maxPairs)};
  }

  /// All that the launches of a step depend on, but for the addresses of their memory: two steps
  /// with equal keys launch the same. What may differ nevertheless is in StepArguments.
  struct LaunchKey {
    std::size_t boxes, filters, removedObjects;
    std::uint64_t maxPairs;
    int bits;
    bool sorts;
    std::size_t pairs, listed;
    int current;
    std::size_t boxesBefore;
    const StepStats* times;  ///< where events write, if there are any

    bool operator==(const LaunchKey&) const = default;
  };
  LaunchKey launches(const StepInput& there, const StepStats& stats) const {
    return {there.boxes.size,
            there.filters.size,
            there.removedObjects.size,
            there.maxPairs,
            plan_.bits,
            plan_.order.sorts(),
            plan_.pairs,
            plan_.listed,
            current_,
            boxesBefore_,
            space_.timesStages() ? &stats : nullptr};
  }

  FoundPairs foundPairs(const StepInput& there, std::uint32_t* places) {
    FoundPairs found{lists_[1 - current_].pairs.ensure(plan_.pairs),
                     there.maxPairs,
                     countOf(&header()->pairs),
                     {},
                     lists_[1 - current_].offsets.data(),
                     places};
    if (!there.filters.empty()) found.rule.filters = there.filters.data;
    return found;
  }

  /// Stage 7, and the end of stage 6.
  Outcome compare(const StepInput& there, const std::uint32_t* seconds) {
    const auto timer = timed("delta", &StepStats::deltaMs);
    Pair* room = changes_.ensure(2 * plan_.listed).data;
    const Outcome outcome{{room, plan_.listed}, {room + plan_.listed, plan_.listed}};
    ListComparison comparison = comparisonOf(there, outcome);
    comparison.seconds = seconds;
    comparison.sortedPairs = lists_[1 - current_].pairs.data();
    comparison.report = report_.data();
    compareLists(comparison);
    return outcome;
  }

  ListComparison comparisonOf(const StepInput& there, const Outcome& lists) {
    ListComparison comparison{};
    comparison.fresh = listsIn(1 - current_, there.boxes.size);
    comparison.old = listsIn(current_, boxesBefore_);
    comparison.removedObjects = there.removedObjects;
    comparison.added = lists.added;
    comparison.removed = lists.removed;
    comparison.header = header();
    return comparison;
  }

  /// Lists that are longer than the mapped memory: they are written once more, to memory of the
  /// device that nobody uses now, and copied to ordinary memory. Both at once, or, if there is no
  /// room for both, one after the other.
  void copyLists(Outcome& outcome, const StepInput& there) {
    const auto added = static_cast<std::size_t>(report().delta.added);
    const auto removed = static_cast<std::size_t>(report().delta.removed);
    Pair* room = copiedLists_.ensure(added + removed).data;
    outcome.added = {room, added};
    outcome.removed = {room + added, removed};
    pairScratch_.reset(scratchBytes<Pair>(std::max(added, removed)));
    const View<Pair> lent = pairScratch_.lendRest<Pair>("copied lists");
    Pair* const list = lent.data;
    if (added + removed <= lent.size)
      return copyAgain({{list, added}, {list + added, removed}}, there, {list, added + removed},
                       room);
    copyAgain({{list, added}, {}}, there, {list, added}, room);
    copyAgain({{}, {list, removed}}, there, {list, removed}, room + added);
  }

  void copyAgain(const Outcome& lists, const StepInput& there, View<const Pair> written, Pair* to) {
    if (written.empty()) return;
    const std::size_t boxes = there.boxes.size;
    space_.fill(chainsFor(boxes, std::max(boxes, boxesBefore_)).words, 0);
    compareLists(comparisonOf(there, lists));
    space_.copy(written, to);
  }

  /// True if the step has to run again, with a plan that is large enough.
  bool fellShort() {
    if (plan_.covers(report())) return false;
    plan_.retry(report());
    return true;
  }

  void keep(const Outcome& outcome, std::size_t boxes, StepStats& stats) {
    describe(report(), stats);
    plan_.adaptTo(report());
    plan_.order.succeed(boxes);
    current_ = 1 - current_;
    pairs_ = static_cast<std::size_t>(report().pairs);
    boxesBefore_ = boxes;
    added_ = {outcome.added.data, static_cast<std::size_t>(report().delta.added)};
    removed_ = {outcome.removed.data, static_cast<std::size_t>(report().delta.removed)};
    stats.pairs = pairs_;
    stats.added = added_.size;
    stats.removed = removed_.size;
    stats.capacity = lists_[current_].pairs.capacity();
  }

  UploadBuffer<Aabb> boxes_{space_.memory(), space_.hostMemory()};
  UploadBuffer<Filter> filters_{space_.memory(), space_.hostMemory()};
  UploadBuffer<std::uint8_t> removedObjects_{space_.memory(), space_.hostMemory()};
  bool hasLastBoxes_ = false;  ///< the device has those of the last step, which did not throw
  GraphRecordings<LaunchKey, Outcome> recordings_;
  PinnedBuffer<StepArguments> arguments_{space_.hostMemory()};
  PinnedBuffer<StepHeader> report_{space_.hostMemory()};
  PinnedBuffer<Pair> changes_{space_.hostMemory()};  ///< kernels write it: only real pairs cross
  Scratch<DeviceMemory> pairScratch_{space_.memory()};
  HostBuffer<Pair> copiedLists_;  ///< those that were too long for it
  std::size_t pairs_ = 0;         ///< of the last step
  std::size_t boxesBefore_ = 0;   ///< whose lists they are
  View<const Pair> added_, removed_;
};

}  // namespace lbvh

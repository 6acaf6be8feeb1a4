// The table of contents of a step on an NVIDIA GPU: the stages in order. Then the host waits once,
// and looks at what was counted. pair_finder.cpp checks the arguments.
#pragma once

#include <cstdint>
#include <utility>

#include "broadphase/exec/host/buffer.h"
#include "broadphase/pipelines/cuda_stages.cuh"
#include "broadphase/pipelines/limits.h"
#include "broadphase/pipelines/pipeline.h"
#include "broadphase/stages/pair_delta.h"

namespace lbvh {

/// Made, used and destroyed on a thread where no error of CUDA's is pending, best on one of its
/// own: it makes its device the current one, and clears the thread's last error.
class CudaPipeline final : public Pipeline, CudaStages {
 public:
  /// @throws SpaceError
  explicit CudaPipeline(const Options& options)
      : CudaStages({options.device, options.graphs, options.stageTimes}) {
    plan_.mostListed = StepPlan::listedIn(options.mappedMiB << 20);
  }

  void step(const StepInput& input, StepStats& stats) override {
    guarded([&] { runStep(input, stats); });
  }
  void buildTree(View<const Aabb> boxes, StepStats& stats) override {
    guarded([&] { runBuildTree(boxes, stats); });
  }
  void setPreviousPairs(View<const Pair> pairs) override {
    guarded([&] { copyPreviousPairs(pairs); });
  }

  View<const Pair> pairs() const override { return current_; }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }
  Tree tree() const override { return treeOver(scene_); }

  std::size_t memoryBytes() const override {
    return space_.allMemory().bytes() + copiedLists_.bytes();
  }
  std::size_t pinnedBytes() const { return space_.allMemory().pinnedBytes(); }

 private:
  /// Where the launches of a step write their results. Their numbers are in the header.
  struct Outcome {
    Pair* pairs = nullptr;
    View<Pair> added, removed;
    int newBuffer = 0;  ///< which of the three the pairs are in
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
    added_ = removed_ = {};  // they lie in a buffer that is written now
    copiedLists_ = HostBuffer<Pair>();
    scene_ = {};  // the stages overwrite the tree of the last buildTree()
    const StepInput there = upload(input);
    plan_.mostPairs = there.maxPairs;
    plan_.begin(there.boxes.size, current_.size);
    Outcome outcome;
    do {
      outcome = space_.replay(recordings_, launches(there, stats), [&] {
        runTreeStages(there.boxes, arguments_.data(), stats);
        const View<Pair> found = traverse(there, stats);
        const View<Pair> sorted = sortPairs(found, there.boxes.size, stats);
        return compare(sorted, there, stats);
      });
      space_.wait();
      requireAtMost(input.maxPairs, report().pairs);
      if (report().pairs > there.maxPairs)  // the host can
        throw SpaceError("more pairs than a GPU's kernels can count", false);
    } while (fellShort());
    if (!plan_.lists(report().delta)) copyLists(outcome, there);
    keep(outcome, stats);
    stats.nanBoxes -= there.boxes.size - input.boxes.size;  // the padding
  }

  void runBuildTree(View<const Aabb> boxes, StepStats& stats) {
    scene_ = {};
    const View<const Aabb> there = upload({boxes, {}, {}, 0}).boxes;
    do {
      runTreeStages(there, arguments_.data(), stats);
      space_.forEach(1, Report{header(), report_.data()});
      space_.wait();
    } while (std::exchange(plan_.bits, report().grid.bits) != report().grid.bits);
    describe(report(), stats);
    scene_ = report().scene;
  }

  void copyPreviousPairs(View<const Pair> pairs) {
    boxes_.invalidate();
    filters_.invalidate();
    removedObjects_.invalidate();
    current_ = {};
    added_ = removed_ = {};
    const View<Pair> room = pairBuffer(0).ensure(pairs.size);
    space_.abandonAndCopy(pairs, room.data);
    current_ = room;
  }

  StepInput upload(const StepInput& input) {
    report_.ensure(1);
    *arguments_.ensure(1).data = {input.boxes.size, current_.size};
    return {space_.upload(input.boxes, boxes_), space_.upload(input.filters, filters_),
            space_.upload(input.removedObjects, removedObjects_), limitOf(input.maxPairs)};
  }

  /// All that the launches of a step depend on: two steps with equal keys launch the same. What may
  /// differ nevertheless is in StepArguments.
  LaunchKey launches(const StepInput& there, const StepStats& stats) const {
    const auto at = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    return {at(there.boxes.data),
            there.boxes.size,
            at(there.filters.data),
            there.filters.size,
            at(there.removedObjects.data),
            there.removedObjects.size,
            there.maxPairs,
            static_cast<std::uintptr_t>(plan_.bits),
            plan_.pairs,
            plan_.listed,
            static_cast<std::uintptr_t>(currentBuffer_),
            at(current_.data),
            at(arguments_.data()),
            at(header_.data()),
            at(report_.data()),
            at(ids_.data()),
            at(scratch_.data()),
            at(deltaCounts_.data()),
            at(pairBuffers_[0].data()),
            at(pairBuffers_[1].data()),
            at(pairBuffers_[2].data()),
            at(lists_.data()),
            space_.timesStages() ? at(&stats) : 0};  // then events know where to write
  }

  /// Stage 7. Of the three pair buffers one holds the old pairs, one the new ones.
  Outcome compare(View<Pair> sorted, const StepInput& there, StepStats& stats) {
    const auto timer = space_.timed("delta", stats.deltaMs);
    const PairDelta delta = deltaOf(sorted, there);
    const std::size_t chunks = delta.chunks(sorted.size);
    DeltaCount* counts = deltaCounts_.ensure(chunks + 1).data;
    // One chunk more than there are counts nothing, so its place is the sum of all.
    space_.forEach(chunks + 1, CountDelta{delta, counts});
    space_.sumBefore(View<DeltaCount>{counts, chunks + 1});

    Pair* room = lists_.ensure(2 * plan_.listed).data;
    const int next = (currentBuffer_ + 1) % 3, other = (currentBuffer_ + 2) % 3;
    const Outcome outcome{sorted.data,
                          {room, plan_.listed},
                          {room + plan_.listed, plan_.listed},
                          sorted.data == pairBuffers_[next].data() ? next : other};
    writeLists(delta, outcome.added, outcome.removed);
    return outcome;
  }

  PairDelta deltaOf(View<const Pair> sorted, const StepInput& there) const {
    constexpr std::size_t kChunk = 16;
    return {current_.data, sorted, header(), there.removedObjects, kChunk};
  }

  void writeLists(const PairDelta& delta, View<Pair> added, View<Pair> removed) {
    const std::size_t chunks = delta.chunks(delta.room.size);
    const DeltaCount* counts = deltaCounts_.data();
    space_.forEach(chunks, WriteDelta{delta, counts, counts + chunks, added, removed, header(),
                                      report_.data()});
  }

  /// Lists that are longer than the mapped memory: each is written once more, to the pair buffer
  /// that nobody uses now, and copied to ordinary memory.
  void copyLists(Outcome& outcome, const StepInput& there) {
    const auto added = static_cast<std::size_t>(report().delta.added);
    const auto removed = static_cast<std::size_t>(report().delta.removed);
    Pair* room = copiedLists_.ensure(added + removed).data;
    outcome.added = {room, added};
    outcome.removed = {room + added, removed};
    Buffer<Pair>& idle = pairBuffers_[3 - currentBuffer_ - outcome.newBuffer];
    Pair* list = idle.ensure(std::max(added, removed)).data;
    const PairDelta delta = deltaOf({outcome.pairs, plan_.pairs}, there);
    writeLists(delta, {list, added}, {});
    space_.copy(View<const Pair>{list, added}, outcome.added.data);
    if (removed == 0) return;
    writeLists(delta, {}, {list, removed});
    space_.copy(View<const Pair>{list, removed}, outcome.removed.data);
  }

  /// True if the step has to run again, with a plan that is large enough.
  bool fellShort() {
    if (plan_.covers(report())) return false;
    plan_.adaptTo(report());
    return true;
  }

  void keep(const Outcome& outcome, StepStats& stats) {
    describe(report(), stats);
    plan_.adaptTo(report());
    current_ = {outcome.pairs, static_cast<std::size_t>(report().pairs)};
    currentBuffer_ = outcome.newBuffer;
    added_ = {outcome.added.data, static_cast<std::size_t>(report().delta.added)};
    removed_ = {outcome.removed.data, static_cast<std::size_t>(report().delta.removed)};
    stats.pairs = current_.size;
    stats.added = added_.size;
    stats.removed = removed_.size;
    stats.capacity = pairBuffers_[currentBuffer_].capacity();
  }

  UploadBuffer<Aabb> boxes_{space_.memory(), space_.hostMemory()};
  UploadBuffer<Filter> filters_{space_.memory(), space_.hostMemory()};
  UploadBuffer<std::uint8_t> removedObjects_{space_.memory(), space_.hostMemory()};
  GraphRecordings<Outcome> recordings_;
  PinnedBuffer<StepArguments> arguments_{space_.hostMemory()};
  PinnedBuffer<StepHeader> report_{space_.hostMemory()};
  Buffer<DeltaCount> deltaCounts_{space_.memory()};
  PinnedBuffer<Pair> lists_{space_.hostMemory()};  ///< kernels write it: only real pairs cross
  HostBuffer<Pair> copiedLists_;                   ///< those that were too long for it
  SceneBounds scene_;                              ///< of the tree
  View<Pair> current_;
  View<const Pair> added_, removed_;
};

}  // namespace lbvh

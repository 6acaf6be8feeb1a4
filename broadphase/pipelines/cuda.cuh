// The table of contents of a step on an NVIDIA GPU: the stages in order. Each is launched for what
// the last step needed and some more (cuda_step_plan.h). Then the host waits once, and looks at
// what was counted. Owns the buffers between the stages. pair_finder.cpp checks the arguments.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "broadphase/exec/cuda/space.cuh"
#include "broadphase/pipelines/cuda_step_plan.h"
#include "broadphase/pipelines/limits.h"
#include "broadphase/pipelines/pipeline.h"
#include "broadphase/pipelines/tree_stages.h"
#include "broadphase/stages/pair_delta.h"
#include "broadphase/stages/traversal.h"

namespace lbvh {

class CudaPipeline final : public Pipeline, TreeStages<CudaSpace> {
 public:
  explicit CudaPipeline(bool timesStages) : TreeStages(timesStages) {}

  void step(const StepInput& input, StepStats& stats) override {
    added_ = removed_ = {};  // they lie in a buffer that is written now
    scene_ = {};             // the stages overwrite the tree of the last buildTree()
    const StepInput there = upload(input);
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
    } while (fellShort());
    keep(outcome, stats);
    stats.nanBoxes -= there.boxes.size - input.boxes.size;  // the padding
  }

  void buildTree(View<const Aabb> boxes, StepStats& stats) override {
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

  /// Stages 1 to 6 for boxes that are on the device, on the caller's stream, without waiting. The
  /// stream writes the header to report(). The caller knows when that is over.
  DevicePairs find(View<const Aabb> boxes, View<const Filter> filters, std::size_t leastCapacity,
                   cudaStream_t stream) {
    StepStats unused;
    space_.useStream(stream);
    report_.ensure(1);
    plan_.pairs = std::max(plan_.pairs, leastCapacity);
    runTreeStages(boxes, nullptr, unused);
    const StepInput there{boxes, filters, {}, ~std::uint64_t{0}};
    const View<Pair> found = traverse(there, unused);
    const View<Pair> pairs = sortPairs(found, boxes.size, unused);
    space_.forEach(1, Report{header(), report_.data()});
    return {pairs.data, &header()->pairs, pairs.size};
  }
  void adaptToReport() { plan_.adaptTo(report()); }

  void setPreviousPairs(View<const Pair> pairs) override {
    boxes_.invalidate();
    filters_.invalidate();
    removedObjects_.invalidate();
    current_ = {};
    const View<Pair> room = pairBuffers_[currentBuffer_].ensure(pairs.size);
    space_.abandonAndCopy(pairs, room.data);
    current_ = room;
    added_ = removed_ = {};
  }

  View<const Pair> pairs() const override { return current_; }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }
  Tree tree() const override { return treeOver(scene_); }

  std::size_t memoryBytes() const override {
    std::size_t bytes = treeBytes() + deltaCounts_.bytes() + boxes_.bytes() + filters_.bytes() +
                        removedObjects_.bytes();
    for (const auto& buffer : pairBuffers_) bytes += buffer.bytes();
    return bytes;
  }

 private:
  /// Where the launches of a step write their results. Their numbers are in the header.
  struct Outcome {
    Pair* pairs = nullptr;
    View<Pair> added, removed;
    int newBuffer = 0;  ///< which of the three the pairs are in
  };

  const StepHeader& report() const { return *report_.data(); }

  StepInput upload(const StepInput& input) {
    report_.ensure(1);
    *arguments_.ensure(1).data = {input.boxes.size, current_.size};
    return {space_.upload(input.boxes, boxes_), space_.upload(input.filters, filters_),
            space_.upload(input.removedObjects, removedObjects_), input.maxPairs};
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
            plan_.added,
            plan_.removed,
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
            at(&stats)};
  }

  /// Stages 1 to 4.
  void runTreeStages(View<const Aabb> boxes, const StepArguments* arguments, StepStats& stats) {
    measure(boxes, arguments, stats);
    if (plan_.bits == 10)
      buildNodes<std::uint32_t>(boxes, boxes.size, stats);
    else
      buildNodes<std::uint64_t>(boxes, boxes.size, stats);
  }

  /// Stage 5.
  View<Pair> traverse(const StepInput& there, StepStats& stats) {
    const auto timer = space_.timed("traversal", stats.traversalMs);
    const std::size_t n = there.boxes.size;
    // Eight a box at first: growing costs a second run.
    if (plan_.pairs == 0) plan_.pairs = current_.size == 0 ? 8 * n : current_.size;
    const View<Pair> room = pairBuffers_[(currentBuffer_ + 1) % 3].ensure(plan_.pairs);
    const PairOutput out{room, there.maxPairs, &header()->pairs};
    const FindTreePairs treePairs{nodes_.data, &header()->scene, there.filters};
    const FindOversizedPairs oversizedPairs{there.boxes, ids_.data(), &header()->scene,
                                            there.filters};
    space_.append(n, OneAfterTheOther<FindTreePairs, FindOversizedPairs>{treePairs, oversizedPairs},
                  out);
    return room;
  }

  /// Stage 6.
  View<Pair> sortPairs(View<Pair> found, std::size_t boxes, StepStats& stats) {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    Buffer<Pair>& spare = pairBuffers_[(currentBuffer_ + 2) % 3];
    const auto idBits = static_cast<int>(std::bit_width(boxes > 0 ? boxes - 1 : 0));
    return space_.sortPairs(found, spare.ensure(found.size), idBits, &header()->pairs);
  }

  /// Stage 7. Of the three pair buffers one holds the old pairs, one the new ones.
  Outcome compare(View<Pair> sorted, const StepInput& there, StepStats& stats) {
    const auto timer = space_.timed("delta", stats.deltaMs);
    constexpr std::size_t kChunk = 16;
    const PairDelta delta{current_.data, sorted, header(), there.removedObjects, kChunk};
    const std::size_t chunks = delta.chunks(sorted.size);
    DeltaCount* counts = deltaCounts_.ensure(chunks + 1).data;
    // One chunk more than there are counts nothing, so its place is the sum of all.
    space_.forEach(chunks + 1, CountDelta{delta, counts});
    space_.sumBefore(View<DeltaCount>{counts, chunks + 1});

    const int next = (currentBuffer_ + 1) % 3, other = (currentBuffer_ + 2) % 3;
    Pair* room = lists_.ensure(plan_.added + plan_.removed).data;
    const Outcome outcome{sorted.data,
                          {room, plan_.added},
                          {room + plan_.added, plan_.removed},
                          sorted.data == pairBuffers_[next].data() ? next : other};
    space_.forEach(chunks, WriteDelta{delta, counts, counts + chunks, outcome.added,
                                      outcome.removed, header(), report_.data()});
    return outcome;
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

  StepPlan plan_;
  UploadBuffer<Aabb> boxes_;
  UploadBuffer<Filter> filters_;
  UploadBuffer<std::uint8_t> removedObjects_;
  GraphRecordings<Outcome> recordings_;
  PinnedBuffer<StepArguments> arguments_;
  PinnedBuffer<StepHeader> report_;
  Buffer<DeltaCount> deltaCounts_;
  Buffer<Pair> pairBuffers_[3];
  PinnedBuffer<Pair> lists_;  ///< kernels write it, so only real pairs cross the bus
  int currentBuffer_ = 0;
  SceneBounds scene_;  ///< of the tree
  View<Pair> current_;
  View<const Pair> added_, removed_;
};

}  // namespace lbvh

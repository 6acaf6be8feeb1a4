// The table of contents of a step: the stages in order, each timed. Written once over the seam
// (exec/space.h) and instantiated by pipeline_host.cpp.
// Owns the buffers between the stages; leaves checking arguments to pair_finder.cpp.
#pragma once

#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "broadphase/exec/space.h"
#include "broadphase/pair_finder.h"
#include "broadphase/stages/grid.h"
#include "broadphase/stages/hierarchy.h"
#include "broadphase/stages/morton.h"
#include "broadphase/stages/pair_delta.h"
#include "broadphase/stages/traversal.h"
#include "broadphase/stages/validate.h"

namespace lbvh {

/// What a step reads. `forgotten` by box (may be shorter): its old pairs do not count.
struct StepInput {
  View<const Aabb> boxes;
  View<const Filter> filters;
  View<const std::uint8_t> forgotten;
  std::uint64_t maxPairs;
};

/// A pipeline whose space is not known to the caller.
class AnyPipeline {
 public:
  virtual ~AnyPipeline() = default;
  /// Runs all stages; fills the figures and milliseconds of `stats`. On an exception pairs() is
  /// still the result of the step before, added() and removed() are empty.
  virtual void step(const StepInput& input, StepStats& stats) = 0;
  /// Runs the stages up to the hierarchy.
  virtual void buildTree(View<const Aabb> boxes, StepStats& stats) = 0;

  virtual View<const Pair> pairs() const = 0;
  virtual View<const Pair> added() const = 0;
  virtual View<const Pair> removed() const = 0;
  virtual Tree tree() const = 0;
  virtual std::size_t memoryBytes() const = 0;
};

std::unique_ptr<AnyPipeline> makeHostPipeline(int threads);

/// Adds the life time of the object to a stage's milliseconds.
class StageTimer {
 public:
  explicit StageTimer(double& ms) : ms_(ms), start_(Clock::now()) {}
  ~StageTimer() { ms_ += std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& ms_;
  Clock::time_point start_;
};

template <class Space>
class Pipeline final : public AnyPipeline {
 public:
  template <class... Args>
  explicit Pipeline(Args... args) : space_(args...) {}

  void step(const StepInput& input, StepStats& stats) override {
    buildTree(input.boxes, stats);
    const View<Pair> found = traverse(input, stats);
    const View<Pair> sorted = sortPairs(found, input.boxes.size, stats);
    compare(sorted, input, stats);
  }

  void buildTree(View<const Aabb> boxes, StepStats& stats) override {
    leaves_ = 0;  // no tree, should a stage fail
    ids_.size = 0;
    SceneBounds scene;
    Grid grid;
    {
      StageTimer timer(stats.boundsMs);
      scene = space_.template reduce<SceneBounds>(boxes.size, MeasureScene{boxes});
      grid = makeGrid(scene, sampleCentres(boxes));
    }
    stats.sideBoxes = scene.side;
    stats.nanBoxes = scene.nan;
    stats.mortonBits = 3 * grid.bits;
    if (grid.bits == 10)
      sortAndLink<std::uint32_t>(boxes, scene, grid, stats);
    else
      sortAndLink<std::uint64_t>(boxes, scene, grid, stats);
    if constexpr (kValidate) check(whyTreeIsWrong(tree().nodes, boxes));
  }

  View<const Pair> pairs() const override { return current_; }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }

  Tree tree() const override {
    return {{nodes_.data(), leaves_ == 0 ? 0 : 2 * std::size_t{leaves_} - 1},
            {ids_.data + leaves_, ids_.size - leaves_}};
  }

  std::size_t memoryBytes() const override {
    std::size_t bytes = keys_.bytes() + idBuffer_.bytes() + nodes_.bytes() + arrivals_.bytes() +
                        deltaCounts_.bytes();
    for (const auto& buffer : pairBuffers_) bytes += buffer.bytes();
    return bytes;
  }

 private:
  template <class T>
  using Buffer = typename Space::template Buffer<T>;

  /// Stages 2 to 4 with codes of 30 or 63 bits.
  template <class Key>
  void sortAndLink(View<const Aabb> boxes, const SceneBounds& scene, const Grid& grid,
                   StepStats& stats) {
    const std::size_t n = boxes.size;
    // The nodes are not written before the sort is done, so they lend it its spare memory.
    auto* spare = reinterpret_cast<std::uint64_t*>(nodes_.ensure(2 * n).data);
    const View<Key> keys{reinterpret_cast<Key*>(keys_.ensure(n * sizeof(Key) / 4).data), n};
    const View<Key> spareKeys{reinterpret_cast<Key*>(spare), n};
    const View<std::uint32_t> ids = idBuffer_.ensure(n);
    const View<std::uint32_t> spareIds{reinterpret_cast<std::uint32_t*>(spare + n), n};
    const View<std::int32_t> arrivals = arrivals_.ensure(n);
    {
      StageTimer timer(stats.codesMs);
      space_.forEach(n, AssignCodes<Key>{boxes, grid, keys.data, ids.data, arrivals.data});
    }
    {
      StageTimer timer(stats.sortMs);
      space_.sortByKey(keys, ids, spareKeys, spareIds, AssignCodes<Key>::kKeyBits);
    }
    StageTimer timer(stats.hierarchyMs);
    const auto leaves = static_cast<std::int32_t>(scene.ordinary);
    space_.forEach(scene.ordinary,
                   BuildHierarchy<Key>{
                       boxes, ids.data, {keys.data, leaves}, leaves, arrivals.data, nodes_.data()});
    leaves_ = scene.ordinary;
    ids_ = {ids.data, std::size_t{scene.ordinary} + scene.side};
  }

  /// Stage 5. If the buffer was too small, the exact need is known: grow and run again.
  View<Pair> traverse(const StepInput& input, StepStats& stats) {
    StageTimer timer(stats.traversalMs);
    const typename Space::TreePairs treePairs{nodes_.data(), leaves_, input.filters};
    added_ = removed_ = {};  // they lie in a buffer that is written now
    Buffer<Pair>& buffer = pairBuffers_[(currentBuffer_ + 1) % 3];
    buffer.ensure(2 * input.boxes.size + current_.size);
    for (;;) {
      PairOutput out{{buffer.data(), buffer.capacity()}, input.maxPairs};
      space_.append(treePairs.elements(), treePairs, out);
      if (ids_.size > leaves_)
        space_.append(ids_.size, FindSidePairs{input.boxes, ids_, leaves_, input.filters}, out);
      if (out.count > input.maxPairs)
        throw std::length_error("more than " + std::to_string(input.maxPairs) +
                                " overlapping pairs (Options::maxPairs)");
      if (out.count <= out.pairs.size) return {buffer.data(), out.count};
      buffer.ensure(out.count);
    }
  }

  /// Stage 6.
  View<Pair> sortPairs(View<Pair> found, std::size_t boxes, StepStats& stats) {
    StageTimer timer(stats.pairSortMs);
    Buffer<Pair>& spare = pairBuffers_[(currentBuffer_ + 2) % 3];
    const auto idBits = static_cast<int>(std::bit_width(boxes > 0 ? boxes - 1 : 0));
    return space_.sortPairs(found, spare.ensure(found.size), idBits);
  }

  /// Stage 7. Of the three pair buffers one holds the old pairs, one the new ones; the third is
  /// free for the two lists.
  void compare(View<Pair> sorted, const StepInput& input, StepStats& stats) {
    StageTimer timer(stats.deltaMs);
    const PairDelta delta{current_, sorted, input.forgotten, Space::kDeltaChunk};
    DeltaCount* counts = deltaCounts_.ensure(delta.chunks()).data;
    space_.forEach(delta.chunks(), CountDelta{delta, counts});
    const DeltaCount total = space_.sumBefore(View<DeltaCount>{counts, delta.chunks()});

    const int next = (currentBuffer_ + 1) % 3, other = (currentBuffer_ + 2) % 3;
    const int newBuffer = sorted.data == pairBuffers_[next].data() ? next : other;
    Buffer<Pair>& lists = pairBuffers_[newBuffer == next ? other : next];
    Pair* added = lists.ensure(total.added + total.removed).data;
    space_.forEach(delta.chunks(), WriteDelta{delta, counts, added, added + total.added});
    if constexpr (kValidate) {
      check(whyPairsAreWrong(sorted, input.boxes, input.filters));
      check(whyDeltaIsWrong(delta.oldPairs, delta.newPairs, {added, total.added},
                            {added + total.added, total.removed}, input.forgotten));
    }
    added_ = {added, total.added};
    removed_ = {added + total.added, total.removed};
    current_ = sorted;
    currentBuffer_ = newBuffer;
    stats.pairs = sorted.size;
    stats.added = total.added;
    stats.removed = total.removed;
    stats.capacity = pairBuffers_[newBuffer].capacity();
  }

#if defined(NDEBUG)
  static constexpr bool kValidate = false;
#else
  static constexpr bool kValidate = true;
#endif

  /// A broken invariant is a bug in this library: say which, and stop.
  static void check(const std::string& whyWrong) {
    if (whyWrong.empty()) return;
    std::fprintf(stderr, "GpuLbvhBroadphase: %s\n", whyWrong.c_str());
    std::abort();
  }

  Space space_;
  Buffer<std::uint32_t> keys_, idBuffer_;
  Buffer<Node> nodes_;
  Buffer<std::int32_t> arrivals_;
  Buffer<DeltaCount> deltaCounts_;
  Buffer<Pair> pairBuffers_[3];
  int currentBuffer_ = 0;
  std::uint32_t leaves_ = 0;
  View<std::uint32_t> ids_;  ///< sorted: the leaves' boxes, then the side boxes
  View<Pair> current_;
  View<const Pair> added_, removed_;
};

}  // namespace lbvh

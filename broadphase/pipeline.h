// The table of contents of a step: the stages in order, each timed. Written once over the seam
// (exec/space.h), instantiated by pipeline_host.cpp and pipeline_cuda.cu.
// Owns the buffers between the stages; leaves checking arguments to pair_finder.cpp.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "broadphase/exec/space.h"
#include "broadphase/pair_finder.h"
#include "broadphase/stages/grid.h"
#include "broadphase/stages/hierarchy.h"
#include "broadphase/stages/morton.h"
#include "broadphase/stages/pair_delta.h"
#include "broadphase/stages/step_header.h"
#include "broadphase/stages/traversal.h"
#include "broadphase/stages/validate.h"
#include "broadphase/step_plan.h"

namespace lbvh {

/// What a step reads. `forgotten` by box (may be shorter): its old pairs do not count.
struct StepInput {
  View<const Aabb> boxes;
  View<const Filter> filters;
  View<const std::uint8_t> forgotten;
  std::uint64_t maxPairs;
};

/// Where the last step ran, and why there; as in Stats.
struct SpaceInfo {
  std::string backend, reason;
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

  /// Takes `pairs` for the result of the step before, and trusts nothing it was told earlier.
  virtual void adopt(View<const Pair> pairs) = 0;

  virtual View<const Pair> pairs() const = 0;  ///< of a space of its own memory: there
  virtual View<const Pair> added() const = 0;
  virtual View<const Pair> removed() const = 0;
  virtual Tree tree() const = 0;  ///< likewise, of the last buildTree(), until the next step
  /// Null if it never changes.
  virtual const SpaceInfo* info() const { return nullptr; }
  virtual std::size_t memoryBytes() const = 0;
};

/// A space that failed in the middle of a step, which can be finished elsewhere.
struct SpaceError : std::runtime_error {
  SpaceError(const std::string& what, bool sticky) : std::runtime_error(what), isSticky(sticky) {}
  bool isSticky;  ///< this space will not work again in this process
};

std::unique_ptr<AnyPipeline> makeHostPipeline(int threads);

// Only in builds with CUDA (pipeline_cuda.cu).
std::string whyNoCuda();       ///< empty if there is a device that can run our kernels
std::string cudaDeviceName();  ///< @throws SpaceError
std::unique_ptr<AnyPipeline> makeCudaPipeline();  ///< @throws SpaceError

template <class Space>
class Pipeline final : public AnyPipeline {
 public:
  template <class... Args>
  explicit Pipeline(Args... args) : space_(args...) {}

  void step(const StepInput& input, StepStats& stats) override {
    added_ = removed_ = {};  // they lie in a buffer that is written now
    leaves_ = side_ = 0;     // nor is there a tree any more
    const StepInput there{space_.upload(input.boxes, boxes_),
                          space_.upload(input.filters, filters_),
                          space_.upload(input.forgotten, forgotten_), input.maxPairs};
    StepHeader header;
    View<Pair> sorted;
    Lists lists;
    const std::vector<Pair> before(current_.begin(), kValidate ? current_.end() : current_.begin());
    do {
      sortBoxes<Space::kHasOwnSearch>(there.boxes, stats);
      sorted = findPairs(there, stats);
      lists = compare(sorted, there, stats);
      header = space_.wait(header_.data());
      requireAtMost(input.maxPairs, header);
    } while (fellShort(header));
    keep(header, lists, stats);
    if constexpr (kValidate) validate(input, before, lists);
    current_ = {sorted.data, static_cast<std::size_t>(header.pairs)};
    currentBuffer_ = lists.newBuffer;
  }

  void buildTree(View<const Aabb> boxes, StepStats& stats) override {
    leaves_ = side_ = 0;
    const View<const Aabb> there = space_.upload(boxes, boxes_);
    StepHeader header;
    do {
      sortBoxes<false>(there, stats);
      link(there, stats);
      header = space_.wait(header_.data());
    } while (!Space::kKnowsCounts &&
             std::exchange(plan_.bits, header.grid.bits) != header.grid.bits);
    describe(header, stats);
    leaves_ = header.scene.ordinary;
    side_ = header.scene.side;
    if constexpr (kValidate) check(whyTreeIsWrong(tree().nodes, boxes));
  }

  void adopt(View<const Pair> pairs) override {
    boxes_.forget();
    filters_.forget();
    forgotten_.forget();
    current_ = {};
    const View<Pair> room = pairBuffers_[currentBuffer_].ensure(pairs.size);
    space_.abandonAndCopy(pairs, room.data);
    current_ = room;
    added_ = removed_ = {};
  }

  View<const Pair> pairs() const override { return current_; }
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }

  Tree tree() const override {
    return {{nodes_.data(), leaves_ == 0 ? 0 : 2 * std::size_t{leaves_} - 1},
            {ids_.data() + leaves_, side_}};
  }

  std::size_t memoryBytes() const override {
    std::size_t bytes = header_.bytes() + keys_.bytes() + ids_.bytes() + nodes_.bytes() +
                        arrivals_.bytes() + deltaCounts_.bytes();
    for (const auto& buffer : pairBuffers_) bytes += buffer.bytes();
    if constexpr (Space::kHasOwnSearch) bytes += space_.search().memoryBytes();
    return bytes;
  }

 private:
  template <class T>
  using Buffer = typename Space::template Buffer<T>;

  /// What is in the header, where the host knows it at once; else what was planned.
  template <class T>
  static std::size_t known(const T& counted, std::size_t planned) {
    if constexpr (Space::kKnowsCounts)
      return static_cast<std::size_t>(counted);
    else
      return planned;
  }

  /// Stages 1 to 3.
  template <bool kForOwnSearch>
  void sortBoxes(View<const Aabb> boxes, StepStats& stats) {
    StepHeader* header = header_.ensure(1).data;
    {
      const auto timer = space_.timed("bounds", stats.boundsMs);
      space_.forEach(1, ResetHeader{header});
      if constexpr (kForOwnSearch)
        space_.search().measure(boxes, &header->scene);
      else
        space_.reduce(boxes.size, MeasureScene{boxes}, &header->scene);
      space_.forEach(SampleCentres::kElements, SampleCentres{boxes, header});
      space_.forEach(1, ChooseGrid{header});
    }
    if (hasShortCodes())
      sortByCode<std::uint32_t, kForOwnSearch>(boxes, stats);
    else
      sortByCode<std::uint64_t, kForOwnSearch>(boxes, stats);
  }

  bool hasShortCodes() const {
    return known(header_.data()->grid.bits, static_cast<std::size_t>(plan_.bits)) == 10;
  }

  /// Stages 2 and 3 with codes of 30 or 63 bits.
  template <class Key, bool kForOwnSearch>
  void sortByCode(View<const Aabb> boxes, StepStats& stats) {
    const StepHeader* header = header_.data();
    const std::size_t n = boxes.size;
    // The nodes are not written before the sort is done, so they lend it its spare memory.
    auto* spare = reinterpret_cast<std::uint64_t*>(nodes_.ensure(2 * n).data);
    const View<Key> keys{reinterpret_cast<Key*>(keys_.ensure(n * sizeof(Key) / 4).data), n};
    const View<Key> spareKeys{reinterpret_cast<Key*>(spare), n};
    const View<std::uint32_t> ids = ids_.ensure(n);
    const View<std::uint32_t> spareIds{reinterpret_cast<std::uint32_t*>(spare + n), n};
    {
      const auto timer = space_.timed("codes", stats.codesMs);
      if constexpr (kForOwnSearch)
        space_.search().assignKeys(boxes, header->grid, keys.data, ids.data);
      else
        space_.forEach(n, AssignCodes<Key>{boxes, &header->grid, keys.data, ids.data,
                                           arrivals_.ensure(n).data});
    }
    {
      const auto timer = space_.timed("sort", stats.sortMs);
      space_.sortByKey(keys, ids, spareKeys, spareIds, AssignCodes<Key>::kKeyBits);
    }
  }

  /// Stage 4.
  void link(View<const Aabb> boxes, StepStats& stats) {
    if (hasShortCodes())
      linkByCode<std::uint32_t>(boxes, stats);
    else
      linkByCode<std::uint64_t>(boxes, stats);
  }

  template <class Key>
  void linkByCode(View<const Aabb> boxes, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    const SceneBounds* scene = &header_.data()->scene;
    const auto* codes = reinterpret_cast<const Key*>(keys_.data());
    space_.forEach(
        known(scene->ordinary, boxes.size),
        BuildHierarchy<Key>{boxes, ids_.data(), codes, scene, arrivals_.data(), nodes_.data()});
  }

  /// Stages 4 to 6.
  View<Pair> findPairs(const StepInput& there, StepStats& stats) {
    if constexpr (Space::kHasOwnSearch) {
      return searchAndSort(there, stats);
    } else {
      link(there.boxes, stats);
      return sortPairs(traverse(there, stats), there.boxes.size, stats);
    }
  }

  /// Stages 4 to 6 of a space that has its own for them (host_search.h).
  View<Pair> searchAndSort(const StepInput& there, StepStats& stats) {
    auto& search = space_.search();
    StepHeader* header = header_.data();
    const std::size_t n = there.boxes.size;
    {
      const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
      const View<Node> memory = nodes_.ensure(std::max(2 * n, search.nodesFor(n)));
      search.pack(there.boxes, there.filters, ids_.data(), header->scene, memory);
    }
    {
      const auto timer = space_.timed("traversal", stats.traversalMs);
      for (;;) {
        const View<Pair> room = pairRoom(n);
        // A list holds second boxes only, so half of the room is used.
        header->pairs =
            search.find({reinterpret_cast<std::uint32_t*>(room.data), room.size}, there.maxPairs);
        requireAtMost(there.maxPairs, *header);
        if (header->pairs <= room.size) break;
        plan_.pairs = static_cast<std::size_t>(header->pairs);
      }
    }
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    Buffer<Pair>& buffer = pairBuffers_[(currentBuffer_ + 2) % 3];
    const View<Pair> sorted = buffer.ensure(static_cast<std::size_t>(header->pairs));
    search.sort(sorted.data);
    return sorted;
  }

  /// Stage 5.
  View<Pair> traverse(const StepInput& there, StepStats& stats) {
    const auto timer = space_.timed("traversal", stats.traversalMs);
    const std::size_t n = there.boxes.size;
    const View<Pair> room = pairRoom(n);
    StepHeader* header = header_.data();
    const PairOutput out{room, there.maxPairs, &header->pairs};
    const std::size_t leaves = known(header->scene.ordinary, n);
    const std::size_t all = leaves + known(header->scene.side, n - leaves);
    space_.append(leaves, FindTreePairs{nodes_.data(), &header->scene, there.filters}, out);
    if (known(header->scene.side, 1) > 0)
      space_.append(all, FindSidePairs{there.boxes, ids_.data(), &header->scene, there.filters},
                    out);
    return {room.data, std::min(known(header->pairs, room.size), room.size)};
  }

  /// Where the pairs of n boxes go as they are found.
  View<Pair> pairRoom(std::size_t n) {
    // Eight a box at first: what is not touched costs nothing, and growing costs a second run.
    plan_.pairs = std::max(plan_.pairs, current_.size == 0 ? 8 * n : current_.size);
    Buffer<Pair>& buffer = pairBuffers_[(currentBuffer_ + 1) % 3];
    View<Pair> room = buffer.ensure(plan_.pairs);
    if constexpr (Space::kKnowsCounts) plan_.pairs = room.size = buffer.capacity();
    return room;
  }

  /// Stage 6.
  View<Pair> sortPairs(View<Pair> found, std::size_t boxes, StepStats& stats) {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    Buffer<Pair>& spare = pairBuffers_[(currentBuffer_ + 2) % 3];
    const auto idBits = static_cast<int>(std::bit_width(boxes > 0 ? boxes - 1 : 0));
    return space_.sortPairs(found, spare.ensure(found.size), idBits, &header_.data()->pairs);
  }

  struct Lists {
    View<Pair> added, removed;
    int newBuffer = 0;  ///< which of the three the new pairs are in
  };

  /// Stage 7. Of the three pair buffers one holds the old pairs, one the new ones; the third is
  /// free for the two lists.
  Lists compare(View<Pair> sorted, const StepInput& there, StepStats& stats) {
    const auto timer = space_.timed("delta", stats.deltaMs);
    if constexpr (Space::kHasOwnSearch)
      return compareInPlace(sorted, there);
    else
      return countAndWrite(sorted, there);
  }

  /// By the space's own search, which leaves the new pairs behind its room for them.
  Lists compareInPlace(View<Pair> sorted, const StepInput& there) {
    Pair* room = pairBuffers_[(currentBuffer_ + 1) % 3].data();
    const auto [added, removed] =
        space_.search().compare(std::exchange(current_, {}), sorted, there.forgotten, room);
    header_.data()->delta = {added.size, removed.size};
    return {added, removed, (currentBuffer_ + 2) % 3};
  }

  Lists countAndWrite(View<Pair> sorted, const StepInput& there) {
    StepHeader* header = header_.data();
    const PairDelta delta{current_, sorted, &header->pairs, there.forgotten, Space::kDeltaChunk};
    const std::size_t chunks = delta.chunks(sorted.size);
    DeltaCount* counts = deltaCounts_.ensure(chunks + 1).data;
    // One chunk more than there are: it counts nothing, so its place is the sum of all.
    space_.forEach(chunks + 1, CountDelta{delta, counts});
    space_.sumBefore(View<DeltaCount>{counts, chunks + 1});
    space_.forEach(1, StoreDelta{counts + chunks, header});

    const int next = (currentBuffer_ + 1) % 3, other = (currentBuffer_ + 2) % 3;
    const bool inNext = sorted.data == pairBuffers_[next].data();
    const std::size_t added = known(header->delta.added, plan_.added);
    const std::size_t removed = known(header->delta.removed, plan_.removed);
    Pair* room = space_.hostRoom(pairBuffers_[inNext ? other : next], lists_, added + removed).data;
    const Lists lists{{room, added}, {room + added, removed}, inNext ? next : other};
    space_.forEach(chunks, WriteDelta{delta, counts, lists.added, lists.removed});
    return lists;
  }

  static void requireAtMost(std::uint64_t maxPairs, const StepHeader& header) {
    if (header.pairs <= maxPairs) return;
    throw std::length_error("more than " + std::to_string(maxPairs) +
                            " overlapping pairs (Options::maxPairs)");
  }

  /// True if the step has to run again, with a plan that is large enough.
  bool fellShort(const StepHeader& header) {
    if (Space::kKnowsCounts || plan_.covers(header)) return false;
    plan_.adaptTo(header);
    return true;
  }

  static void describe(const StepHeader& header, StepStats& stats) {
    stats.sideBoxes = header.scene.side;
    stats.nanBoxes = header.scene.nan;
    stats.mortonBits = 3 * header.grid.bits;
  }

  void keep(const StepHeader& header, const Lists& lists, StepStats& stats) {
    describe(header, stats);
    if constexpr (Space::kKnowsCounts)
      plan_.pairs = 0;
    else
      plan_.adaptTo(header);
    added_ = {lists.added.data, static_cast<std::size_t>(header.delta.added)};
    removed_ = {lists.removed.data, static_cast<std::size_t>(header.delta.removed)};
    stats.pairs = static_cast<std::size_t>(header.pairs);
    stats.added = added_.size;
    stats.removed = removed_.size;
    stats.capacity = pairBuffers_[lists.newBuffer].capacity();
  }

#if defined(NDEBUG)
  static constexpr bool kValidate = false;
#else
  static constexpr bool kValidate = Space::kKnowsCounts;  // only there the host can look
#endif

  void validate(const StepInput& input, const std::vector<Pair>& before, const Lists& lists) {
    const View<const Pair> found{pairBuffers_[lists.newBuffer].data(),
                                 static_cast<std::size_t>(header_.data()->pairs)};
    check(whyPairsAreWrong(found, input.boxes, input.filters));
    check(
        whyDeltaIsWrong({before.data(), before.size()}, found, added_, removed_, input.forgotten));
  }

  /// A broken invariant is a bug in this library: say which, and stop.
  static void check(const std::string& whyWrong) {
    if (whyWrong.empty()) return;
    std::fprintf(stderr, "GpuLbvhBroadphase: %s\n", whyWrong.c_str());
    std::abort();
  }

  Space space_;
  StepPlan plan_;
  typename Space::template UploadBuffer<Aabb> boxes_;
  typename Space::template UploadBuffer<Filter> filters_;
  typename Space::template UploadBuffer<std::uint8_t> forgotten_;
  Buffer<StepHeader> header_;
  Buffer<std::uint32_t> keys_;
  Buffer<std::uint32_t> ids_;  ///< sorted: the leaves' boxes, then the side boxes, then NaN boxes
  Buffer<Node> nodes_;
  Buffer<std::int32_t> arrivals_;
  Buffer<DeltaCount> deltaCounts_;
  Buffer<Pair> pairBuffers_[3];
  typename Space::template HostBuffer<Pair> lists_;
  int currentBuffer_ = 0;
  std::uint32_t leaves_ = 0, side_ = 0;
  View<Pair> current_;
  View<const Pair> added_, removed_;
};

}  // namespace lbvh

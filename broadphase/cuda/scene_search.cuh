// SPDX-License-Identifier: Zlib
// Runs a DevicePairFinder's search on an NVIDIA GPU. Boxes in device memory pass through the stages
// of a step, and the lists stay on the device. All work is on one stream, which may be captured.
// search() calls the stages in order.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "broadphase/core/device_input.h"
#include "broadphase/core/device_request.h"
#include "broadphase/cuda/kernels/device_lists.cuh"
#include "broadphase/cuda/stages.cuh"

namespace lbvh {

/// The host's decisions about a search, made before its counts are known.
struct SearchPlan {
  int bits;           ///< bits per axis of the codes
  std::size_t pairs;  ///< capacity of the pair list, if the finder owns it
};

class DeviceSearch {
 public:
  explicit DeviceSearch(const DeviceOptions& options)
      : limit_(options.maxPairs), buffers_(spaceOptions(options)) {
    space_.fill(report_.ensure(1), 0);
    space_.fill(searched_.ensure(1), 0);
    space_.wait();
  }

  StepBuffers& buffers() { return buffers_; }
  StepHeader* header() const { return buffers_.header.data(); }
  /// The boxes of the last search, on the device, for queries. The address never changes.
  const Searched* searched() const { return searched_.data(); }

  /// @param counted host-readable memory that receives the counts, or null
  DeviceLists search(const DeviceScene& scene, const DeviceRequest& request, const SearchPlan& plan,
                     StepHeader* counted = nullptr) {
    isRunning_ = !space_.isRehearsing();
    const Lists lists = listsFor(scene, request, plan.pairs);
    const Chains chains = buffers_.chainsFor(lists.boxes, std::max(lists.boxes, keptBoxes_));
    const StepRun run{buffers_};

    const Boxes boxes = gather(scene, request);
    measureScene(run, boxes.packed, nullptr, lists.counts(), chains.words);
    sort(run, boxes, scene.filters, plan.bits);
    const Searched searched = build(run, boxes, scene.filters);
    findPairs(run, searched.leaves, lists.boxes, lists.found,
              searched.hasWorlds ? &searched.worlds : nullptr);
    if (lists.byWorld.data() != nullptr) countByWorld(boxes, lists);
    if (request.layout != PairLayout::unsorted) {
      scatterPairs(run, lists.found, lists.boxes, chains, lists.partners);
      compareLists(run, comparisonOf(lists, request, chains));
      copyLists(lists, request);
    }
    WriteReport report = reportOf(scene, request, searched, lists);
    report.forHost = counted;
    space_.launch<writeReportKernel>(1, WriteReport::kWords, report);

    isRunning_ = false;
    return answer(request, lists);
  }

  /// Whether a search can work as in a step, with packed boxes in place and each pair listed once.
  /// Any other search first gathers the boxes into an array of Aabb, and searches each world
  /// separately.
  static bool isPlain(const DeviceScene& scene, const DeviceRequest& request) {
    const bool isPacked = scene.min.stride == sizeof(Aabb) && scene.max.stride == sizeof(Aabb) &&
                          scene.max.data == scene.min.data + 3;
    return isPacked && scene.boxCount == nullptr && scene.margins == nullptr &&
           scene.displacements.data == nullptr && scene.bodies == nullptr &&
           scene.movable == nullptr && scene.worlds == nullptr && scene.worldCount == 0 &&
           scene.excluded.empty() && request.layout != PairLayout::neighbours &&
           !request.countsByWorld;
  }

  /// Fixes the addresses of the lists that are kept for `changes`, because a graph uses them.
  void fixKept() { isKeptFixed_ = true; }

  /// Marks the last search as lost. Must be called if the search threw, even before it queued any
  /// work, because the caller has none of its pairs.
  void forgetLast() { isRunning_ = true; }
  /// Whether the last search is incomplete or lost.
  bool isBroken() const { return isRunning_; }

  /// Clears the state after an incomplete search. The next search then reports no pairs of earlier
  /// searches as removed. Until that search, queries hit nothing.
  void startAfreshIfBroken() {
    if (!isRunning_) return;
    space_.fill(View<StepHeader>{header(), 1}, 0);
    space_.fill(View<Searched>{searched_.data(), 1}, 0);
    std::uint32_t* const kept = kept_.offsets.data();
    space_.fill(View<std::uint32_t>{kept, kept != nullptr ? keptBoxes_ + 1 : 0}, 0);
    isRunning_ = false;
  }

  /// The capacity of lists in the finder's memory during a capture, in which no memory may grow.
  std::size_t capacityInCapture(const DeviceRequest& request, std::size_t capacity) const {
    const bool isBoth = request.layout == PairLayout::neighbours;
    const std::size_t each = isBoth ? 2 : 1;
    const auto fit = [&capacity](std::size_t size) { capacity = std::min(capacity, size); };
    fit(found_.pairs.capacity());
    if (request.layout != PairLayout::unsorted) fit(words_.capacity() / (2 * each));
    if (isBoth) fit(directed_.capacity() / 2);
    if (isBoth && request.neighbours.data() == nullptr) fit(neighbours_.capacity() / 2);
    if (request.changes) fit(keptPairs_);
    if (request.changes && request.added.data() == nullptr) fit(added_.capacity());
    if (capacity == 0)
      throw std::length_error(
          "DevicePairFinder: the stream is captured, and memory is reserved for 0 pairs: "
          "reserve() before the capture");
    return capacity;
  }

 private:
  template <class T>
  using Buffer = DeviceBuffer<T>;

  struct Boxes {
    View<const Aabb> packed;
    const std::uint32_t* ranks;  ///< null: the boxes have no worlds, and are in the caller's memory
    std::uint32_t worlds;
  };

  struct Lists {
    FoundPairs found{};
    std::size_t boxes = 0;
    std::uint32_t each = 1;  ///< number of lists that contain each pair
    Pair* sorted = nullptr;
    std::uint32_t* partners = nullptr;
    View<std::uint32_t> neighbours{};
    View<Pair> added{}, removed{};
    View<std::uint32_t> byWorld{};

    /// The number of pairs of each box; empty if no lists are requested.
    View<std::uint32_t> counts() const {
      return {found.counts, found.counts != nullptr ? boxes + 1 : 0};
    }
    PairLists current() const { return {sorted, found.counts, static_cast<std::uint32_t>(boxes)}; }
  };

  static CudaSpaceOptions spaceOptions(const DeviceOptions& options) {
    CudaSpaceOptions space;
    space.allocator = options.allocator;
    return space;
  }

  Boxes gather(const DeviceScene& scene, const DeviceRequest& request) {
    const std::size_t n = scene.boxCapacity;
    if (isPlain(scene, request))
      return {{reinterpret_cast<const Aabb*>(scene.min.data), n}, nullptr, worldsOf(scene)};
    const GatherBoxes gather{scene, boxes_.ensure(n).data(), ranks_.ensure(n).data(),
                             &header()->errors};
    space_.forEach(GatherBoxes::elements(scene), gather);
    return {{gather.boxes, n}, gather.ranks, worldsOf(scene)};
  }

  /// Memory for the requested lists. Lists that the caller does not provide are in the finder's
  /// memory.
  Lists listsFor(const DeviceScene& scene, const DeviceRequest& request, std::size_t pairs) {
    Lists lists;
    lists.boxes = scene.boxCapacity;
    const bool isBoth = request.layout == PairLayout::neighbours;
    const std::uint64_t limit = mostPairs(limit_, request);
    auto capacity = static_cast<std::size_t>(std::min<std::uint64_t>(pairs, limit));
    if (isBoth && request.neighbours.data() != nullptr) capacity = request.neighbours.size() / 2;
    if (!isBoth && request.pairs.data() != nullptr) capacity = request.pairs.size();
    const bool isTheirs = !isBoth && !request.changes && request.pairs.data() != nullptr;
    FoundPairs& found = lists.found;
    found.pairs = isTheirs ? request.pairs : found_.pairs.ensure(capacity);
    found.limit = limit;
    found.count = countOf(&header()->pairs);
    found.rule = PairRule(scene);
    if (request.countsByWorld)
      lists.byWorld = request.byWorld.data() != nullptr
                          ? View<std::uint32_t>{request.byWorld.data(), scene.worldCount + 1}
                          : byWorld_.ensure(scene.worldCount + 1);
    if (request.layout == PairLayout::unsorted) return lists;
    lists.each = isBoth ? 2 : 1;
    found.counts = isBoth && request.offsets.data() != nullptr
                       ? request.offsets.data()
                       : found_.offsets.ensure(lists.boxes + 1).data();
    std::uint32_t* words = words_.ensure(2 * lists.each * capacity).data();
    found.places = words;
    if (isBoth) found.otherPlaces = words + capacity;
    lists.partners = words + lists.each * capacity;
    lists.sorted = isBoth ? directed_.ensure(2 * capacity).data() : found.pairs.data();
    if (isBoth)
      lists.neighbours = request.neighbours.data() != nullptr ? request.neighbours
                                                              : neighbours_.ensure(2 * capacity);
    if (request.changes) listChanges(request, lists);
    return lists;
  }

  void listChanges(const DeviceRequest& request, Lists& lists) {
    const std::size_t capacity = lists.found.pairs.size();
    reserveKept(lists.boxes, capacity);
    lists.added = request.added.data() != nullptr ? request.added : added_.ensure(capacity);
    lists.removed =
        request.removed.data() != nullptr ? request.removed : removed_.ensure(keptPairs_);
  }

  /// Grows the lists that are kept for the next search with `changes`. Their contents are kept.
  void reserveKept(std::size_t boxes, std::size_t pairs) {
    if (boxes <= keptBoxes_ && pairs <= keptPairs_ && kept_.offsets.data() != nullptr) return;
    if (isKeptFixed_) {
      isRunning_ = false;  // nothing has been queued yet
      throw std::length_error(
          "DevicePairFinder: a captured search with changes fixes their memory at " +
          std::to_string(keptBoxes_) + " boxes and " + std::to_string(keptPairs_) +
          " pairs: this search needs " + std::to_string(boxes) + " and " + std::to_string(pairs));
    }
    ListBuffers larger(space_.memory());
    const std::size_t most = boxes <= keptBoxes_ ? keptBoxes_ : boxes + boxes / 8;
    const View<Pair> memory = larger.pairs.ensure(std::max(pairs, keptPairs_));
    const View<std::uint32_t> offsets = larger.offsets.ensure(most + 1);
    space_.forEach(KeepLists::elements(keptPairs_, offsets.size()),
                   KeepLists{kept_.of(keptBoxes_), memory.data(), offsets});
    kept_ = std::move(larger);
    keptBoxes_ = most;
    keptPairs_ = memory.size();
  }

  static void sort(const StepRun& run, const Boxes& boxes, const Filter* filters, int bits) {
    if (boxes.ranks == nullptr)
      sortAlongCurve(run, boxes.packed, filters, bits);
    else
      sortByWorld(run, boxes.packed, filters, boxes.ranks, boxes.worlds, bits);
  }

  Searched build(const StepRun& run, const Boxes& boxes, const Filter* filters) {
    const std::size_t n = boxes.packed.size();
    if (boxes.ranks == nullptr)
      return {buildBlocks(run, boxes.packed, filters), {boxes.worlds, {}, {}}, false, n};
    const View<std::uint32_t> slots = slots_.ensure(2 * (std::size_t{boxes.worlds} + 1));
    const WorldSlots worlds{boxes.worlds, slots.data(), slots.data() + boxes.worlds + 1};
    space_.fill(View<std::uint32_t>{worlds.ends, slots.size() / 2}, 0);
    const LeafBlocks leaves = buildBlocks(run, boxes.packed, filters, boxes.ranks);
    space_.forEach(n, MarkWorlds{leaves.boxes, static_cast<std::uint32_t>(n), worlds});
    return {leaves, worlds, true, n};
  }

  void countByWorld(const Boxes& boxes, const Lists& lists) {
    space_.fill(lists.byWorld, 0);
    space_.forEach(lists.found.pairs.size(), CountByWorld{lists.found.pairs, &header()->pairs,
                                                          boxes.ranks, lists.byWorld.data()});
  }

  ListComparison comparisonOf(const Lists& lists, const DeviceRequest& request,
                              const Chains& chains) const {
    ListComparison comparison{};
    comparison.current = lists.current();
    comparison.partners = lists.partners;
    comparison.sortedPairs = lists.sorted;
    comparison.header = header();
    comparison.chain = chains.compare;
    comparison.hubs = chains.hubs;
    if (lists.each == 2) comparison.others = &header()->arguments.boxes;
    if (request.changes) {
      comparison.old = kept_.of(keptBoxes_);
      comparison.added = lists.added;
      comparison.removed = lists.removed;
    }
    return comparison;
  }

  /// Copies the lists to the caller's memory, and to the lists kept for the next search with
  /// `changes`.
  void copyLists(const Lists& lists, const DeviceRequest& request) {
    const std::size_t capacity = lists.found.pairs.size();
    if (lists.each == 2)
      space_.forEach(2 * capacity, CopyPartners{lists.current(), lists.neighbours.data()});
    if (!request.changes) return;
    const View<std::uint32_t> offsets{kept_.offsets.data(), keptBoxes_ + 1};
    space_.forEach(KeepLists::elements(capacity, offsets.size()),
                   KeepLists{lists.current(), kept_.pairs.data(), offsets, &header()->pairs,
                             std::min<std::uint64_t>(capacity, lists.found.limit)});
    if (request.pairs.data() != nullptr)
      space_.forEach(capacity, KeepLists{lists.current(), request.pairs.data(), {}});
  }

  WriteReport reportOf(const DeviceScene& scene, const DeviceRequest& request,
                       const Searched& searched, const Lists& lists) {
    return {header(),          report_.data(),           scene.boxCount,     scene.boxCapacity,
            lists.found.limit, lists.found.pairs.size(), lists.added.size(), lists.removed.size(),
            request.changes,   !searched.hasWorlds,      searched,           searched_.data()};
  }

  DeviceLists answer(const DeviceRequest& request, const Lists& lists) const {
    DeviceLists answer;
    answer.report = report_.data();
    answer.byWorld = lists.byWorld;
    answer.added = lists.added;
    answer.removed = lists.removed;
    if (request.layout == PairLayout::neighbours) {
      answer.offsets = {lists.found.counts, lists.boxes + 1};
      answer.neighbours = lists.neighbours;
    } else {
      answer.pairs = request.pairs.data() != nullptr ? request.pairs : lists.found.pairs;
    }
    return answer;
  }

  const std::uint64_t limit_;
  StepBuffers buffers_;
  CudaSpace& space_ = buffers_.space;
  ListBuffers found_{space_.memory()};  ///< lists of this search
  ListBuffers kept_{space_.memory()};   ///< lists of the previous search with `changes`
  Buffer<Searched> searched_{space_.memory()};
  Buffer<DeviceReport> report_{space_.memory()};
  Buffer<Aabb> boxes_{space_.memory()};  ///< packed boxes
  /// The ranks of the boxes' worlds, and the slots of the worlds.
  Buffer<std::uint32_t> ranks_{space_.memory()}, slots_{space_.memory()};
  /// Scratch for sorting pairs.
  Buffer<std::uint32_t> words_{space_.memory()};
  Buffer<Pair> directed_{space_.memory()};  ///< each pair twice, for PairLayout::neighbours
  Buffer<std::uint32_t> neighbours_{space_.memory()}, byWorld_{space_.memory()};
  Buffer<Pair> added_{space_.memory()}, removed_{space_.memory()};
  std::size_t keptBoxes_ = 0, keptPairs_ = 0;  ///< capacities of kept_
  bool isKeptFixed_ = false;
  bool isRunning_ = false;  ///< a search has begun, and has not been queued completely
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// A DevicePairFinder's search on an NVIDIA GPU: boxes that are there already, through the stages of
// a step, to lists that stay there. All on one stream, which may be captured. Base of
// queries.cuh.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "broadphase/core/device_input.h"
#include "broadphase/core/device_request.h"
#include "broadphase/cuda/kernels/device_lists.cuh"
#include "broadphase/cuda/stages.cuh"

namespace lbvh {

class DeviceSearch : protected CudaStages {
 protected:
  explicit DeviceSearch(const DeviceOptions& options)
      : CudaStages(spaceOptions(options)), limit_(options.maxPairs) {
    plan_.mostPairs = limit_;
    plan_.order.mayKeep = false;
    space_.fill(reports_.ensure(2), 0);
    space_.fill(none_.ensure(1), 0);
    space_.fill(searched_.ensure(1), 0);
    space_.wait();
  }
  ~DeviceSearch() = default;

  /// With the code length and the room of the plan.
  DeviceLists search(const DeviceScene& scene, const DeviceRequest& request) {
    isRunning_ = true;
    const Lists lists = listsFor(scene, request);
    const Boxes boxes = gather(scene, request);
    const Searched searched = pack(boxes, lists);
    findPairs(searched.leaves, boxes.packed.size, searched.hasWorlds ? &searched.worlds : nullptr,
              lists.found);
    if (lists.byWorld.data != nullptr) countByWorld(boxes, lists);
    if (request.form != PairForm::unsorted) sort(lists, request);
    space_.forEach(1, reportOf(scene, request, searched, lists));
    isRunning_ = false;
    return answer(request, lists);
  }

  /// What a step searches for, too: sorted pairs of packed boxes, which are used where they are.
  /// Everything else is packed first, and searched for world by world.
  static bool isPlain(const DeviceScene& scene, const DeviceRequest& request) {
    const bool isPacked = scene.lower.stride == sizeof(Aabb) &&
                          scene.upper.stride == sizeof(Aabb) &&
                          scene.upper.data == scene.lower.data + 3;
    return isPacked && scene.count == nullptr && scene.margins == nullptr &&
           scene.displacements.data == nullptr && scene.bodies == nullptr &&
           scene.movable == nullptr && scene.worlds == nullptr && scene.worldCount == 0 &&
           scene.excluded.empty() && request.form == PairForm::sorted && !request.countsByWorld;
  }

  /// For a graph that holds what is kept for `changes`: it stays where it is.
  void fixKept() { isKeptFixed_ = true; }

  /// A search threw, perhaps before it began or behind its end: the caller has no pairs of it.
  void forgetLast() { isRunning_ = true; }

  /// After half a search: nothing of it is told with the next one, nor what came before, and
  /// queries hit nothing.
  void startAfreshIfBroken() {
    if (!isRunning_) return;
    space_.fill(View<StepHeader>{header(), 1}, 0);
    space_.fill(View<Searched>{searched_.data(), 1}, 0);
    const Buffer<std::uint32_t>& kept = lists_[1].offsets;
    space_.fill(View<std::uint32_t>{kept.data(), kept.data() != nullptr ? keptBoxes_ + 1 : 0}, 0);
    isRunning_ = false;
  }

  /// Of lists in the finder's memory, in a capture: no more than there is.
  std::size_t roomInCapture(const DeviceRequest& request, std::size_t room) const {
    const bool isBoth = request.form == PairForm::neighbours;
    const std::size_t each = isBoth ? 2 : 1;
    const auto fit = [&room](std::size_t capacity) { room = std::min(room, capacity); };
    fit(lists_[0].pairs.capacity());
    if (request.form != PairForm::unsorted) fit(words_.capacity() / (2 * each));
    if (isBoth) fit(directed_.capacity() / 2);
    if (isBoth && request.neighbours.data == nullptr) fit(neighbours_.capacity() / 2);
    if (request.changes) fit(keptPairs_);
    if (request.changes && request.added.data == nullptr) fit(added_.capacity());
    if (room == 0)
      throw std::length_error("DevicePairFinder: a stream is captured, and nothing was reserved");
    return room;
  }

  const std::uint64_t limit_;
  Buffer<Searched> searched_{space_.memory()};  ///< last

 private:
  struct Boxes {
    View<const Aabb> packed;
    const std::uint32_t* ranks;  ///< null: they have no worlds, and are as they were handed in
    std::uint32_t worlds;
  };

  struct Lists {
    FoundPairs found{};
    std::size_t boxes = 0;
    std::uint32_t each = 1;  ///< lists that a pair is in
    Pair* sorted = nullptr;
    std::uint32_t* seconds = nullptr;
    View<std::uint32_t> neighbours{};
    View<Pair> added{}, removed{};
    View<std::uint32_t> byWorld{};
  };

  static CudaSpaceOptions spaceOptions(const DeviceOptions& options) {
    CudaSpaceOptions space;
    space.allocator = options.allocator;
    return space;
  }

  Boxes gather(const DeviceScene& scene, const DeviceRequest& request) {
    const std::size_t n = scene.boxes;
    if (isPlain(scene, request))
      return {{reinterpret_cast<const Aabb*>(scene.lower.data), n}, nullptr, worldsOf(scene)};
    const GatherBoxes gather{scene, boxes_.ensure(n).data, ranks_.ensure(n).data,
                             &header()->errors};
    space_.forEach(GatherBoxes::elements(scene), gather);
    return {{gather.boxes, n}, gather.ranks, worldsOf(scene)};
  }

  /// Memory for what was asked, where the caller brought none.
  Lists listsFor(const DeviceScene& scene, const DeviceRequest& request) {
    Lists lists;
    lists.boxes = scene.boxes;
    const bool isBoth = request.form == PairForm::neighbours;
    const std::uint64_t limit = mostPairs(limit_, request);
    auto room = static_cast<std::size_t>(std::min<std::uint64_t>(plan_.pairs, limit));
    if (isBoth && request.neighbours.data != nullptr) room = request.neighbours.size / 2;
    if (!isBoth && request.pairs.data != nullptr) room = request.pairs.size;
    const bool isTheirs = !isBoth && !request.changes && request.pairs.data != nullptr;
    FoundPairs& found = lists.found;
    found.room = isTheirs ? request.pairs : lists_[0].pairs.ensure(room);
    found.limit = limit;
    found.count = countOf(&header()->pairs);
    found.rule = PairRule(scene);
    if (request.countsByWorld)
      lists.byWorld = request.byWorld.data != nullptr
                          ? View<std::uint32_t>{request.byWorld.data, scene.worldCount + 1}
                          : byWorld_.ensure(scene.worldCount + 1);
    if (request.form == PairForm::unsorted) return lists;
    lists.each = isBoth ? 2 : 1;
    found.counts = isBoth && request.offsets.data != nullptr
                       ? request.offsets.data
                       : lists_[0].offsets.ensure(lists.boxes + 1).data;
    std::uint32_t* words = words_.ensure(2 * lists.each * room).data;
    found.places = words;
    if (isBoth) found.otherPlaces = words + room;
    lists.seconds = words + lists.each * room;
    lists.sorted = isBoth ? directed_.ensure(2 * room).data : found.room.data;
    if (isBoth)
      lists.neighbours =
          request.neighbours.data != nullptr ? request.neighbours : neighbours_.ensure(2 * room);
    if (request.changes) listChanges(request, lists);
    return lists;
  }

  void listChanges(const DeviceRequest& request, Lists& lists) {
    const std::size_t room = lists.found.room.size;
    keepRoom(lists.boxes, room);
    lists.added = request.added.data != nullptr ? request.added : added_.ensure(room);
    lists.removed = request.removed.data != nullptr ? request.removed : removed_.ensure(keptPairs_);
  }

  /// Room for what is kept for the next search with `changes`; what there is stays.
  void keepRoom(std::size_t boxes, std::size_t pairs) {
    ListBuffers& kept = lists_[1];
    if (boxes <= keptBoxes_ && pairs <= keptPairs_ && kept.offsets.data() != nullptr) return;
    if (isKeptFixed_) {
      isRunning_ = false;  // nothing was asked for yet
      throw std::length_error(
          "DevicePairFinder: a captured search has changes, which need the room of its reserve()");
    }
    ListBuffers larger{Buffer<Pair>(space_.memory()), Buffer<std::uint32_t>(space_.memory())};
    const std::size_t most = boxes <= keptBoxes_ ? keptBoxes_ : boxes + boxes / 8;
    const View<Pair> room = larger.pairs.ensure(std::max(pairs, keptPairs_));
    const View<std::uint32_t> offsets = larger.offsets.ensure(most + 1);
    space_.forEach(KeepLists::elements(keptPairs_, offsets.size),
                   KeepLists{listsIn(1, keptBoxes_), room.data, offsets});
    kept = std::move(larger);
    keptBoxes_ = most;
    keptPairs_ = room.size;
  }

  /// Stages 1 to 4.
  Searched pack(const Boxes& boxes, const Lists& lists) {
    const View<const Aabb> packed = boxes.packed;
    const std::size_t n = packed.size;
    const View<std::uint32_t> counts{lists.found.counts, lists.found.counts != nullptr ? n + 1 : 0};
    measure(packed, nullptr, counts, chainsFor(n, std::max(n, keptBoxes_)).words);
    if (boxes.ranks == nullptr) {
      orderByCode(packed);
      return {CudaStages::pack(packed, nullptr), {boxes.worlds, {}, {}}, false, n};
    }
    orderByWorld(packed, boxes.ranks, boxes.worlds, plan_.bits);
    const View<std::uint32_t> slots = slots_.ensure(2 * (std::size_t{boxes.worlds} + 1));
    const WorldSlots worlds{boxes.worlds, slots.data, slots.data + boxes.worlds + 1};
    space_.fill(View<std::uint32_t>{worlds.ends, slots.size / 2}, 0);
    const LeafBlocks leaves = CudaStages::pack(packed, boxes.ranks);
    space_.forEach(n, MarkWorlds{leaves.boxes, static_cast<std::uint32_t>(n), worlds});
    return {leaves, worlds, true, n};
  }

  void countByWorld(const Boxes& boxes, const Lists& lists) {
    space_.fill(lists.byWorld, 0);
    space_.forEach(lists.found.room.size, CountByWorld{lists.found.room, &header()->pairs,
                                                       boxes.ranks, lists.byWorld.data});
  }

  /// Stage 6, and with `changes` stage 7.
  void sort(const Lists& lists, const DeviceRequest& request) {
    const std::size_t n = lists.boxes;
    scatter(lists.found, n, std::max(n, keptBoxes_), lists.seconds);
    ListComparison comparison{};
    comparison.fresh = freshOf(lists);
    comparison.seconds = lists.seconds;
    comparison.sortedPairs = lists.sorted;
    comparison.header = header();
    if (lists.each == 2) comparison.others = &header()->arguments.boxes;
    if (request.changes) {
      comparison.old = listsIn(1, keptBoxes_);
      comparison.added = lists.added;
      comparison.removed = lists.removed;
    }
    compareLists(comparison);
    const std::size_t room = lists.found.room.size;
    if (lists.each == 2)
      space_.forEach(2 * room, TakeSeconds{freshOf(lists), lists.neighbours.data});
    if (!request.changes) return;
    const View<std::uint32_t> offsets{lists_[1].offsets.data(), keptBoxes_ + 1};
    space_.forEach(KeepLists::elements(room, offsets.size),
                   KeepLists{freshOf(lists), lists_[1].pairs.data(), offsets, &header()->pairs,
                             std::min<std::uint64_t>(room, lists.found.limit)});
    if (request.pairs.data != nullptr)
      space_.forEach(room, KeepLists{freshOf(lists), request.pairs.data, {}});
  }

  static PairLists freshOf(const Lists& lists) {
    return {lists.sorted, lists.found.counts, static_cast<std::uint32_t>(lists.boxes)};
  }

  WriteReport reportOf(const DeviceScene& scene, const DeviceRequest& request,
                       const Searched& searched, const Lists& lists) {
    return {header(),          reports_.data(),       scene.count,      scene.boxes,
            lists.found.limit, lists.found.room.size, lists.added.size, lists.removed.size,
            request.changes,   !searched.hasWorlds,   searched,         searched_.data()};
  }

  DeviceLists answer(const DeviceRequest& request, const Lists& lists) const {
    DeviceLists answer;
    answer.report = reports_.data();
    answer.byWorld = lists.byWorld;
    answer.added = lists.added;
    answer.removed = lists.removed;
    if (request.form == PairForm::neighbours) {
      answer.offsets = {lists.found.counts, lists.boxes + 1};
      answer.neighbours = lists.neighbours;
    } else {
      answer.pairs = request.pairs.data != nullptr ? request.pairs : lists.found.room;
    }
    return answer;
  }

 protected:
  Buffer<DeviceReport> reports_{space_.memory()};  ///< of the search, and of queries
  Buffer<std::uint32_t> none_{space_.memory()};    ///< a 0: the count of a reservation

 private:
  Buffer<Aabb> boxes_{space_.memory()};                                    ///< packed
  Buffer<std::uint32_t> ranks_{space_.memory()}, slots_{space_.memory()};  ///< of worlds
  Buffer<std::uint32_t> words_{space_.memory()};                           ///< places and seconds
  Buffer<Pair> directed_{space_.memory()};  ///< each pair twice, for neighbours
  Buffer<std::uint32_t> neighbours_{space_.memory()}, byWorld_{space_.memory()};
  Buffer<Pair> added_{space_.memory()}, removed_{space_.memory()};
  std::size_t keptBoxes_ = 0, keptPairs_ = 0;  ///< room of lists_[1], of the last with `changes`
  bool isKeptFixed_ = false;
  bool isRunning_ = false;  ///< a search has begun, and was not asked for to its end
};

}  // namespace lbvh

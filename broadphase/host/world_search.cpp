// SPDX-License-Identifier: Zlib
#include "broadphase/host/world_search.h"

#include <algorithm>
#include <bit>

#include "broadphase/core/atomics.h"

namespace lbvh {
namespace {

constexpr std::size_t kUnitGrain = 16;  // small, because their costs differ much
constexpr std::size_t kGrain = 4096;

/// The lists of a unit's boxes, as they were found.
struct FoundLists {
  HostBuffer<std::uint32_t> indices;
  std::uint64_t size = 0;
  NeighbourList byLane[kLanes];

  View<const std::uint32_t> of(std::uint32_t lane) const {
    return {indices.data() + byLane[lane].start, byLane[lane].size};
  }
};

}  // namespace

/// A thread's memory.
struct WorldSearch::Worker {
  HostBuffer<std::uint32_t> memory;
  FoundLists own, shared;            ///< among the boxes of the world, among those in all worlds
  HostBuffer<std::uint32_t> kept;    ///< what counts of both
  std::vector<std::uint64_t> words;  ///< a box in all worlds, and its neighbour
};

/// Searches for units one after the other.
class WorldSearch::Task {
 public:
  Task(WorldSearch& search, Worker& worker, const WorldBlocks& worlds,
       const WorldSearchRequest& request)
      : search_(search),
        worker_(worker),
        request_(request),
        acceptsAll_(request.rule.acceptsAll()),
        shared_(worlds.worlds().size > 1 ? worlds.find(worlds.worldCount()) : nullptr) {}

  /// Units [begin, end) of all worlds. @return false if there are too many pairs
  bool run(View<const World> worlds, std::size_t begin, std::size_t end) {
    const World* world = std::partition_point(worlds.begin(), worlds.end(), [&](const World& one) {
      return one.firstUnit + one.units() <= begin;
    });
    for (std::size_t unit = begin; unit < end; ++world)
      for (; unit < std::min(end, world->firstUnit + world->units()); ++unit)
        if (!searchUnit(*world, static_cast<std::uint32_t>(unit - world->firstUnit))) return false;
    return true;
  }

 private:
  bool searchUnit(const World& world, std::uint32_t unit) {
    const std::uint32_t leafBlocks = world.packed.tree.leafBlocks;
    const bool isWhole = unit < leafBlocks
                             ? searchBlock(world, unit)
                             : searchOversized(world, world.packed.oversized[unit - leafBlocks]);
    return isWhole && keepLists(world);
  }

  bool searchBlock(const World& world, std::uint32_t block) {
    const BlockTree& tree = world.packed.tree;
    boxes_ = std::min(kLanes, tree.boxes - block * kLanes);
    std::copy_n(tree.blocks[block].child, boxes_, ids_);
    if (!search(world.packed, world.packed, request_.kind, block, worker_.own)) return false;
    return !hasShared(world) ||
           search(world.packed, shared_->packed, ListKind::full, block, worker_.shared);
  }

  bool search(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
              std::uint32_t block, FoundLists& lists) {
    const SearchMemory memory = SearchMemory::in(worker_.memory.data(), targets.tree.leafBlocks);
    // If all pairs count, so many of one block are too many, each met from both sides.
    const std::uint64_t limit = acceptsAll_ ? 2 * request_.maxPairs + kLanes : ~std::uint64_t{0};
    NeighbourList* const byBox = search_.lists_.byBox;
    for (;;) {
      std::atomic<std::uint64_t> found{0};
      const View<std::uint32_t> room = lists.indices.ensure(lists.indices.capacity());
      if (!search_.kernels_.search(queries, targets, kind, block, block + 1, memory, {room, byBox},
                                   {&found, limit})) {
        tooMany();
        return false;
      }
      lists.size = found;
      if (lists.size <= room.size) break;
      lists.indices.ensure(static_cast<std::size_t>(lists.size));
    }
    for (std::uint32_t lane = 0; lane < boxes_; ++lane) lists.byLane[lane] = byBox[ids_[lane]];
    return true;
  }

  bool searchOversized(const World& world, std::uint32_t id) {
    boxes_ = 1;
    ids_[0] = id;
    test(id, world.packed, isFull() ? 0 : id + 1, worker_.own);
    if (hasShared(world)) test(id, shared_->packed, 0, worker_.shared);
    return true;
  }

  /// Writes the boxes from index `first` on that this one overlaps, after a test of all.
  static void test(std::uint32_t id, const PackedBoxes& targets, std::uint32_t first,
                   FoundLists& lists) {
    std::uint32_t* const begin =
        lists.indices.ensure(targets.tree.boxes + targets.oversized.size).data;
    std::uint32_t* end = begin;
    forBoxes(targets, [&](std::uint32_t other, const Aabb& box) {
      *end = other;
      end += other >= first && overlap(targets.boxes[id], box) &&
             shouldCollide(targets.filters, id, other);
    });
    const auto size = static_cast<std::uint32_t>(end - begin);
    lists.byLane[0] = {0, size};
    lists.size = size;
  }

  bool isFull() const { return request_.kind == ListKind::full; }

  bool hasShared(const World& world) const { return shared_ != nullptr && &world != shared_; }

  /// @return false if there are too many pairs
  bool keepLists(const World& world) {
    const bool isShared = &world == shared_, meetsShared = hasShared(world);
    NeighbourList kept[kLanes];
    pairs_ = 0;
    std::uint32_t* const begin =
        worker_.kept
            .ensure(static_cast<std::size_t>(worker_.own.size +
                                             (meetsShared ? worker_.shared.size : 0)))
            .data;
    std::uint32_t* end = begin;
    for (std::uint32_t lane = 0; lane < boxes_; ++lane) {
      std::uint32_t* const list = end;
      end = keepOwn(ids_[lane], worker_.own.of(lane), end);
      if (meetsShared) end = keepShared(ids_[lane], worker_.shared.of(lane), end);
      if (isShared) end = moveToWords(ids_[lane], list, end);
      kept[lane] = {static_cast<std::uint64_t>(list - begin),
                    static_cast<std::uint32_t>(end - list)};
    }
    write({begin, static_cast<std::size_t>(end - begin)}, kept);
    if (!request_.byWorld.empty() && pairs_ > 0)
      fetchAdd(&request_.byWorld[world.rank], static_cast<std::uint32_t>(pairs_));
    return search_.pairs_.fetch_add(pairs_, std::memory_order_relaxed) + pairs_ <=
           request_.maxPairs;
  }

  std::uint32_t* keepOwn(std::uint32_t id, View<const std::uint32_t> list, std::uint32_t* out) {
    if (!acceptsAll_)
      return keepIf(id, list, out, [&](std::uint32_t other) {
        return other != id && request_.rule(makePair(id, other));
      });
    if (isFull()) return keepIf(id, list, out, [&](std::uint32_t other) { return other != id; });
    pairs_ += list.size;
    return std::copy(list.begin(), list.end(), out);
  }

  template <class Counts>
  std::uint32_t* keepIf(std::uint32_t id, View<const std::uint32_t> list, std::uint32_t* out,
                        const Counts& counts) {
    std::uint64_t pairs = 0;
    for (const std::uint32_t other : list) {
      const bool is = counts(other);
      *out = other;
      out += is;
      pairs += is && other > id;
    }
    pairs_ += pairs;
    return out;
  }

  /// Its pairs are in this list, in that of the box in all worlds, or in both.
  std::uint32_t* keepShared(std::uint32_t id, View<const std::uint32_t> list, std::uint32_t* out) {
    for (const std::uint32_t other : list) {
      if (!request_.rule(makePair(id, other))) continue;
      ++pairs_;
      if (isFull() || other > id) *out++ = other;
      if (isFull() || other < id) worker_.words.push_back(std::uint64_t{other} << 32 | id);
    }
    return out;
  }

  /// A box in all worlds has neighbours in each: its list is put together in the end.
  std::uint32_t* moveToWords(std::uint32_t id, std::uint32_t* begin, const std::uint32_t* end) {
    for (const std::uint32_t* other = begin; other != end; ++other)
      worker_.words.push_back(std::uint64_t{id} << 32 | *other);
    return begin;
  }

  void write(View<const std::uint32_t> indices, const NeighbourList (&kept)[kLanes]) {
    const std::uint64_t start = search_.entries_.fetch_add(indices.size, std::memory_order_relaxed);
    for (std::uint32_t lane = 0; lane < boxes_; ++lane)
      search_.lists_.byBox[ids_[lane]] = {start + kept[lane].start, kept[lane].size};
    if (start + indices.size <= search_.lists_.indices.size)
      std::copy(indices.begin(), indices.end(), search_.lists_.indices.data + start);
  }

  void tooMany() { search_.pairs_.fetch_add(request_.maxPairs + 1, std::memory_order_relaxed); }

  WorldSearch& search_;
  Worker& worker_;
  const WorldSearchRequest& request_;
  const bool acceptsAll_;
  const World* const shared_;  ///< the boxes in all worlds, if there are others
  std::uint32_t boxes_ = 0;    ///< of the unit
  std::uint32_t ids_[kLanes];
  std::uint64_t pairs_ = 0;  ///< of the unit
};

WorldSearch::WorldSearch(HostTasks& tasks, const SimdKernels& kernels)
    : tasks_(tasks), kernels_(kernels) {
  for (int k = 0; k < tasks.threads(); ++k) workers_.push_back(std::make_unique<Worker>());
}

WorldSearch::~WorldSearch() = default;

std::uint64_t WorldSearch::find(const WorldBlocks& worlds, std::size_t boxes,
                                const WorldSearchRequest& request, NeighbourLists& lists) {
  prepare(worlds, boxes);
  std::size_t room = std::max(indices_.capacity(), kExpected * boxes);
  for (;;) {
    lists_.indices = indices_.ensure(room);
    searchAll(worlds, request);
    if (pairs_ > request.maxPairs) return pairs_;
    const std::uint64_t needed = entries_ + sharedWords();
    if (needed <= room) break;
    room = static_cast<std::size_t>(needed);
  }
  if (const World* shared = worlds.find(worlds.worldCount()); sharedWords() > 0)
    listShared(*shared, boxes, static_cast<std::size_t>(entries_));
  lists_.indices.size = static_cast<std::size_t>(entries_) + sharedWords();
  lists = lists_;
  return pairs_;
}

void WorldSearch::prepare(const WorldBlocks& worlds, std::size_t boxes) {
  lists_.byBox = byBox_.ensure(boxes).data;
  for (const std::uint32_t id : worlds.nowhere()) lists_.byBox[id] = {0, 0};
  std::size_t leafBlocks = 0;
  for (const World& world : worlds.worlds()) {
    leafBlocks = std::max<std::size_t>(leafBlocks, world.packed.tree.leafBlocks);
    for (const std::uint32_t id : world.packed.nan) lists_.byBox[id] = {0, 0};
  }
  for (const auto& worker : workers_) worker->memory.ensure(SearchMemory::wordsFor(leafBlocks));
}

void WorldSearch::searchAll(const WorldBlocks& worlds, const WorldSearchRequest& request) {
  entries_ = pairs_ = 0;
  std::fill(request.byWorld.begin(), request.byWorld.end(), 0u);
  for (const auto& worker : workers_) worker->words.clear();
  tasks_.forWorkers(worlds.units(), kUnitGrain,
                    [&](std::size_t worker, std::size_t begin, std::size_t end) {
                      Task task(*this, *workers_[worker], worlds, request);
                      return pairs_ <= request.maxPairs && task.run(worlds.worlds(), begin, end);
                    });
}

std::size_t WorldSearch::sharedWords() const {
  std::size_t count = 0;
  for (const auto& worker : workers_) count += worker->words.size();
  return count;
}

/// Writes the lists of the boxes in all worlds, from `begin` on.
void WorldSearch::listShared(const World& shared, std::size_t boxes, std::size_t begin) {
  const View<std::uint64_t> words = words_.ensure(sharedWords());
  std::uint64_t* end = words.data;
  for (const auto& worker : workers_)
    end = std::copy(worker->words.begin(), worker->words.end(), end);
  const std::uint64_t* sorted = sort_.words(tasks_, words, spare_.ensure(words.size).data, 32,
                                            static_cast<int>(std::bit_width(boxes)));
  tasks_.forRanges(words.size, kGrain, [&](std::size_t from, std::size_t to) {
    for (std::size_t k = from; k < to; ++k)
      lists_.indices[begin + k] = static_cast<std::uint32_t>(sorted[k]);
  });
  const auto firstOf = [&](std::uint64_t id) {
    return static_cast<std::size_t>(std::lower_bound(sorted, sorted + words.size, id << 32) -
                                    sorted);
  };
  for (const std::uint32_t id : shared.ids) {
    const std::size_t first = firstOf(id);
    lists_.byBox[id] = {begin + first,
                        static_cast<std::uint32_t>(firstOf(std::uint64_t{id} + 1) - first)};
  }
}

}  // namespace lbvh

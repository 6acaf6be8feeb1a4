#include "broadphase/host/find_neighbours.h"

#include <algorithm>
#include <numeric>

namespace lbvh {
namespace {

constexpr std::size_t kBlockGrain = 16;   // leaf blocks: dear and uneven, so small pieces
constexpr std::size_t kListGrain = 1024;  // lists of neighbours to sort
constexpr std::size_t kMeasureGrain = 4096;

constexpr std::size_t kScratchArrays = 8;  // of SearchScratch

/// Calls visit(index, box) for all that may overlap something.
template <class Visit>
void forBoxes(const PackedBoxes& packed, const Visit& visit) {
  for (std::uint32_t k = 0; k < packed.tree.leafBlocks; ++k) {
    const BoxBlock& block = packed.tree.blocks[k];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (block.child[lane] == kNullIndex) continue;
      visit(block.child[lane], block.box(lane));
    }
  }
  for (const std::uint32_t id : packed.oversized) visit(id, packed.boxes[id]);
}

}  // namespace

void NeighbourSearch::measure(View<const Aabb> boxes, SceneBounds* sum) {
  const std::size_t parts = tasks_.parts(boxes.size, kMeasureGrain);
  const View<SceneBounds> partial = partial_.ensure(parts);
  tasks_.forParts(boxes.size, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
    partial[part] = kernels_.measure(boxes, begin, end);
  });
  *sum = SceneBounds{};
  for (const SceneBounds& one : partial) *sum += one;
}

std::uint64_t NeighbourSearch::find(const PackedBoxes& queries, const PackedBoxes& targets,
                                    Node* memory, View<std::uint32_t> room, std::uint64_t limit) {
  static_assert(sizeof(NeighbourLists::List) <= 2 * sizeof(std::uint64_t));
  lists_ = reinterpret_cast<NeighbourLists::List*>(memory);
  room_ = room;
  found_.store(0, std::memory_order_relaxed);
  const NeighbourLists lists{room, lists_, &found_, limit};
  for (const std::uint32_t id : queries.nan) lists.byBox[id] = {0, 0};
  findTreeLists(queries, targets, lists);
  findOversizedLists(queries, targets, lists);
  return found_.load(std::memory_order_relaxed);
}

void NeighbourSearch::findTreeLists(const PackedBoxes& queries, const PackedBoxes& targets,
                                    const NeighbourLists& lists) {
  const std::size_t leafBlocks = targets.tree.leafBlocks;
  scratch_.ensure(kScratchArrays * SearchScratch::strideFor(leafBlocks) *
                  static_cast<std::size_t>(tasks_.threads()));
  tasks_.forWorkers(queries.tree.leafBlocks, kBlockGrain,
                    [&](std::size_t worker, std::size_t begin, std::size_t end) {
                      return kernels_.search(queries, targets, static_cast<std::uint32_t>(begin),
                                             static_cast<std::uint32_t>(end),
                                             scratch(worker, leafBlocks), lists);
                    });
}

// Few, so one by one against all that are targets.
void NeighbourSearch::findOversizedLists(const PackedBoxes& queries, const PackedBoxes& targets,
                                         const NeighbourLists& lists) {
  const bool isSelfSearch = &queries == &targets;
  tasks_.forRanges(queries.oversized.size, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const std::uint32_t id = queries.oversized[k];
      const auto forNeighbours = [&](auto visit) {
        forBoxes(targets, [&](std::uint32_t other, const Aabb& box) {
          if ((!isSelfSearch || id < other) && overlap(targets.boxes[id], box) &&
              shouldCollide(targets.filters, id, other))
            visit(other);
        });
      };
      std::uint32_t size = 0;
      forNeighbours([&](std::uint32_t) { ++size; });
      const std::uint64_t start = lists.found->fetch_add(size, std::memory_order_relaxed);
      if (start + size > lists.limit) return;
      lists.byBox[id] = {start, size};
      if (start + size > lists.room.size) continue;
      std::uint32_t* out = lists.room.data + start;
      forNeighbours([&](std::uint32_t other) { *out++ = other; });
    }
  });
}

void NeighbourSearch::sort(std::size_t n, Pair* out) {
  const NeighbourLists lists{room_, lists_, &found_, 0};
  const std::size_t chunks = (n + kListGrain - 1) / kListGrain;
  const View<std::uint64_t> starts = chunkStarts_.ensure(chunks + 1);
  const auto forLists = [&](std::size_t chunk, auto f) {
    f(static_cast<std::uint32_t>(chunk * kListGrain),
      static_cast<std::uint32_t>(std::min(n, (chunk + 1) * kListGrain)));
  };
  tasks_.forRanges(chunks, 8, [&](std::size_t begin, std::size_t end) {
    for (std::size_t chunk = begin; chunk < end; ++chunk)
      forLists(chunk, [&](std::uint32_t first, std::uint32_t last) {
        starts[chunk] = 0;
        for (std::uint32_t i = first; i < last; ++i) starts[chunk] += lists.byBox[i].size;
      });
  });
  starts[chunks] = 0;  // becomes the last one's end
  std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), std::uint64_t{0});
  growIndexSets(n);
  tasks_.forWorkers(chunks, 1, [&](std::size_t worker, std::size_t begin, std::size_t end) {
    for (std::size_t chunk = begin; chunk < end; ++chunk)
      forLists(chunk, [&](std::uint32_t first, std::uint32_t last) {
        const std::uint64_t pairs = starts[chunk + 1] - starts[chunk];
        kernels_.sortLists(lists, first, last, indexSet(worker),
                           {out + starts[chunk], static_cast<std::size_t>(pairs)});
      });
    return true;
  });
}

void NeighbourSearch::writeWords(View<const std::uint32_t> queries, PairWords format,
                                 std::uint64_t* out) {
  tasks_.forRanges(queries.size, kListGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const NeighbourLists::List list = lists_[queries[k]];
      for (std::uint64_t i = list.start; i < list.start + list.size; ++i) {
        out[i] = format.of(makePair(queries[k], room_[i]));
      }
    }
  });
}

SearchScratch NeighbourSearch::scratch(std::size_t worker, std::size_t leafBlocks) const {
  const std::size_t stride = SearchScratch::strideFor(leafBlocks);
  std::uint32_t* words = scratch_.data() + worker * kScratchArrays * stride;
  return {reinterpret_cast<float*>(words), words + 6 * stride, words + 7 * stride, stride};
}

void NeighbourSearch::growIndexSets(std::size_t boxes) {
  const std::size_t words = boxes / (64 * 64) + 1;
  if (65 * words <= indexSetSize_) return;
  indexSetSize_ = 0;
  const auto all = indexSets_.ensure(65 * words * static_cast<std::size_t>(tasks_.threads()));
  std::fill(all.begin(), all.end(), std::uint64_t{0});
  indexSetSize_ = 65 * words;
}

IndexSet NeighbourSearch::indexSet(std::size_t worker) const {
  const std::size_t words = indexSetSize_ / 65;
  std::uint64_t* memory = indexSets_.data() + worker * indexSetSize_;
  return {memory + words, memory, words};
}

std::size_t NeighbourSearch::memoryBytes() const {
  return chunkStarts_.bytes() + scratch_.bytes() + indexSets_.bytes() + partial_.bytes();
}

}  // namespace lbvh

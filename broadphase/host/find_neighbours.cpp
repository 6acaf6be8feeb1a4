// SPDX-License-Identifier: Zlib
#include "broadphase/host/find_neighbours.h"

namespace lbvh {
namespace {

constexpr std::size_t kBlockGrain = 16;  // leaf blocks; small, because their costs differ much

}  // namespace

std::uint64_t NeighbourSearch::find(const PackedBoxes& queries, const PackedBoxes& targets,
                                    ListKind kind, const NeighbourLists& lists, std::uint64_t limit,
                                    std::uint64_t mostTests) {
  std::atomic<std::uint64_t> found{0};
  tests_ = 0;
  const NeighbourCount count{&found, limit, &tests_, mostTests};
  for (const std::uint32_t id : queries.nan) lists.byBox[id] = {0, 0};
  findTreeLists(queries, targets, kind, lists, count);
  findOversizedLists(queries, targets, kind, lists, count);
  return found;
}

void NeighbourSearch::findTreeLists(const PackedBoxes& queries, const PackedBoxes& targets,
                                    ListKind kind, const NeighbourLists& lists,
                                    const NeighbourCount& count) {
  const std::size_t leafBlocks = targets.tree.leafBlocks;
  memory_.ensure(SearchMemory::wordsFor(leafBlocks) * static_cast<std::size_t>(tasks_.threads()));
  tasks_.forWorkers(queries.tree.leafBlocks, kBlockGrain,
                    [&](std::size_t worker, std::size_t begin, std::size_t end) {
                      return kernels_.search(queries, targets, kind,
                                             static_cast<std::uint32_t>(begin),
                                             static_cast<std::uint32_t>(end),
                                             memoryOf(worker, leafBlocks), lists, count);
                    });
}

// They are few, so each is tested against all targets.
void NeighbourSearch::findOversizedLists(const PackedBoxes& queries, const PackedBoxes& targets,
                                         ListKind kind, const NeighbourLists& lists,
                                         const NeighbourCount& count) {
  tasks_.forRanges(queries.oversized.size, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const std::uint32_t id = queries.oversized[k];
      const std::uint32_t first = kind == ListKind::full ? 0 : id + 1;
      const auto forNeighbours = [&](auto visit) {
        forBoxes(targets, [&](std::uint32_t other, const Aabb& box) {
          if (other >= first && overlap(targets.boxes[id], box) &&
              shouldCollide(targets.filters, id, other))
            visit(other);
        });
      };
      std::uint32_t size = 0;
      forNeighbours([&](std::uint32_t) { ++size; });
      const std::uint64_t start = count.found->fetch_add(size, std::memory_order_relaxed);
      if (start + size > count.limit) return;
      lists.byBox[id] = {start, size};
      if (start + size > lists.indices.size) continue;
      std::uint32_t* out = lists.indices.data + start;
      forNeighbours([&](std::uint32_t other) { *out++ = other; });
    }
  });
}

SearchMemory NeighbourSearch::memoryOf(std::size_t worker, std::size_t leafBlocks) const {
  return SearchMemory::in(memory_.data() + worker * SearchMemory::wordsFor(leafBlocks), leafBlocks);
}

}  // namespace lbvh

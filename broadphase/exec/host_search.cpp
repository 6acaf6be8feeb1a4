#include "broadphase/exec/host_search.h"

#include <algorithm>
#include <utility>

namespace lbvh {
namespace {

constexpr std::size_t kBlockGrain = 16;   // leaf blocks: dear and uneven, so small pieces
constexpr std::size_t kListGrain = 1024;  // lists of neighbours to sort
constexpr std::size_t kPackGrain = 256;   // leaf blocks
constexpr std::size_t kParentGrain = 64;
constexpr std::size_t kMeasureGrain = 4096;

constexpr std::size_t kScratchArrays = 8;  // of SearchScratch

}  // namespace

void HostSearch::measure(View<const Aabb> boxes, SceneBounds* sum) {
  const std::size_t parts = tasks_.parts(boxes.size, kMeasureGrain);
  const View<SceneBounds> partial = partial_.ensure(parts);
  tasks_.forParts(boxes.size, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
    partial[part] = kernels_.measure(boxes, begin, end);
  });
  *sum = SceneBounds{};
  for (const SceneBounds& one : partial) *sum += one;
}

std::size_t HostSearch::nodesFor(std::size_t n) {
  const auto leafBlocks = BlockTree::blocksOver(static_cast<std::uint32_t>(n));
  const std::size_t blocks = BlockTree::forLevels(leafBlocks, [](auto...) {});
  return (blocks * sizeof(BoxBlock) + leafBlocks * sizeof(FilterBlock)) / sizeof(Node);
}

void HostSearch::pack(View<const Aabb> boxes, View<const Filter> filters, const std::uint32_t* ids,
                      const SceneBounds& scene, View<Node> memory) {
  static_assert(sizeof(BoxBlock) % sizeof(Node) == 0 && sizeof(FilterBlock) % sizeof(Node) == 0);
  BlockTree tree;
  tree.boxes = scene.ordinary;
  tree.leafBlocks = BlockTree::blocksOver(scene.ordinary);
  tree.blocks = reinterpret_cast<BoxBlock*>(memory.data);
  const std::uint32_t blocks = BlockTree::forLevels(tree.leafBlocks, [](auto...) {});
  tree.root = blocks - 1;
  if (!filters.empty()) tree.filters = reinterpret_cast<FilterBlock*>(tree.blocks + blocks);
  input_ = {tree, boxes, filters, {ids + scene.ordinary, scene.side}};
  nan_ = {input_.side.end(), scene.nan};
  if (tree.boxes == 0) return;

  tasks_.forRanges(tree.leafBlocks, kPackGrain, [&](std::size_t begin, std::size_t end) {
    kernels_.packLeaves(input_, ids, static_cast<std::uint32_t>(begin),
                        static_cast<std::uint32_t>(end));
  });
  BlockTree::forLevels(
      tree.leafBlocks, [&](std::uint32_t first, std::uint32_t children, std::uint32_t parents) {
        const std::uint32_t count = BlockTree::blocksOver(children);
        tasks_.forRanges(count, kParentGrain, [&](std::size_t begin, std::size_t end) {
          for (auto i = static_cast<std::uint32_t>(begin); i < end; ++i)
            kernels_.packParent(tree, parents + i, first + i * kLanes,
                                std::min(kLanes, children - i * kLanes));
        });
      });
}

std::uint64_t HostSearch::find(View<std::uint32_t> room, std::uint64_t limit) {
  const std::size_t n = input_.boxes.size;
  room_ = room;
  found_.store(0, std::memory_order_relaxed);
  const NeighbourLists lists{room, lists_.ensure(n).data, &found_, limit};
  for (const std::uint32_t id : nan_) lists.byBox[id] = {0, 0};
  findTreeLists(lists);
  findSideLists(lists);
  return found_.load(std::memory_order_relaxed);
}

void HostSearch::findTreeLists(const NeighbourLists& lists) {
  const std::size_t blocks = input_.tree.leafBlocks;
  scratch_.ensure(kScratchArrays * SearchScratch::strideFor(blocks) *
                  static_cast<std::size_t>(tasks_.threads()));
  tasks_.forWorkers(
      blocks, kBlockGrain, [&](std::size_t worker, std::size_t begin, std::size_t end) {
        return kernels_.search(input_, static_cast<std::uint32_t>(begin),
                               static_cast<std::uint32_t>(end), scratch(worker), lists);
      });
}

// Few, so one by one against all boxes, and their lists come out sorted.
void HostSearch::findSideLists(const NeighbourLists& lists) {
  const SearchInput& in = input_;
  tasks_.forRanges(in.side.size, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const std::uint32_t id = in.side[k];
      const auto forNeighbours = [&](auto visit) {
        for (std::uint32_t other = id + 1; other < in.boxes.size; ++other)
          if (overlap(in.boxes[id], in.boxes[other]) && wanted(in.filters, id, other)) visit(other);
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

void HostSearch::sort(Pair* out) {
  const std::size_t n = input_.boxes.size;
  const NeighbourLists lists{room_, lists_.data(), &found_, 0};
  const std::size_t chunks = (n + kListGrain - 1) / kListGrain;
  const View<std::uint64_t> starts = chunkStarts_.ensure(chunks);
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
  std::uint64_t sum = 0;
  for (std::uint64_t& start : starts) {
    const std::uint64_t before = sum;
    sum += std::exchange(start, before);
  }
  growIndexSets();
  tasks_.forWorkers(chunks, 1, [&](std::size_t worker, std::size_t begin, std::size_t end) {
    for (std::size_t chunk = begin; chunk < end; ++chunk)
      forLists(chunk, [&](std::uint32_t first, std::uint32_t last) {
        kernels_.sortLists(lists, first, last, indexSet(worker), out + starts[chunk]);
      });
    return true;
  });
}

SearchScratch HostSearch::scratch(std::size_t worker) const {
  const std::size_t stride = SearchScratch::strideFor(input_.tree.leafBlocks);
  std::uint32_t* words = scratch_.data() + worker * kScratchArrays * stride;
  return {reinterpret_cast<float*>(words), words + 6 * stride, words + 7 * stride, stride};
}

void HostSearch::growIndexSets() {
  const std::size_t words = input_.boxes.size / (64 * 64) + 1;
  if (65 * words <= indexSetSize_) return;
  indexSetSize_ = 0;
  const auto all = indexSets_.ensure(65 * words * static_cast<std::size_t>(tasks_.threads()));
  std::fill(all.begin(), all.end(), std::uint64_t{0});
  indexSetSize_ = 65 * words;
}

IndexSet HostSearch::indexSet(std::size_t worker) const {
  const std::size_t words = indexSetSize_ / 65;
  std::uint64_t* memory = indexSets_.data() + worker * indexSetSize_;
  return {memory + words, memory, words};
}

std::size_t HostSearch::memoryBytes() const {
  return lists_.bytes() + chunkStarts_.bytes() + scratch_.bytes() + indexSets_.bytes() +
         partial_.bytes() + delta_.memoryBytes();
}

}  // namespace lbvh

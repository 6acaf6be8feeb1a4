// SPDX-License-Identifier: Zlib
#include "broadphase/host/world_blocks.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "broadphase/host/build_blocks.h"

namespace lbvh {
namespace {

constexpr std::size_t kGrain = 4096;  // boxes

/// A world of more boxes is packed by all threads: by one it would keep the others waiting.
std::size_t mostOfSmall(std::size_t boxes, int threads) {
  return std::max<std::size_t>(8192, boxes / (4 * static_cast<std::size_t>(threads)));
}

Aabb boundsOf(const BlockTree& tree) {
  const BoxBlock& root = tree.blocks[tree.root];
  Aabb bounds = root.box(0);
  for (std::uint32_t lane = 1; lane < kLanes; ++lane)  // a lane without a box changes nothing
    for (int axis = 0; axis < 3; ++axis) {
      bounds.min[axis] = std::min(bounds.min[axis], root.corners[axis][lane]);
      bounds.max[axis] = std::max(bounds.max[axis], root.corners[3 + axis][lane]);
    }
  return bounds;
}

}  // namespace

/// What a thread packs small worlds with.
struct WorldBlocks::Worker {
  explicit Worker(const SimdKernels& kernels) : order(tasks, kernels) {}
  HostTasks tasks{1};
  WorldOrder order;
};

WorldBlocks::WorldBlocks(HostTasks& tasks, const SimdKernels& kernels)
    : tasks_(tasks), kernels_(kernels), order_(tasks, kernels) {
  for (int k = 0; k < tasks.threads(); ++k) workers_.push_back(std::make_unique<Worker>(kernels));
}

WorldBlocks::~WorldBlocks() = default;

void WorldBlocks::clear() {
  worlds_.clear();
  worldCount_ = 0;
  nowhere_ = {};
}

void WorldBlocks::build(const RankedBoxes& boxes) try {
  clear();
  if (boxes.ranks == nullptr)
    listAll(boxes);
  else
    listByRank(boxes);
  lendBlocks(boxes);
  const std::size_t most = mostOfSmall(boxes.boxes.size, tasks_.threads());
  for (World& world : worlds_)
    if (world.ids.size > most) pack(world, tasks_, order_);
  packSmall(most);
  std::size_t units = 0;
  for (World& world : worlds_) {
    world.firstUnit = units;
    units += world.units();
  }
  worldCount_ = boxes.worldCount;
} catch (...) {
  clear();
  throw;
}

void WorldBlocks::listAll(const RankedBoxes& boxes) {
  const View<std::uint32_t> ids = ids_.ensure(boxes.boxes.size);
  std::iota(ids.begin(), ids.end(), 0u);
  if (!ids.empty()) worlds_.push_back({0, ids});
}

/// Rank and index in one word.
void WorldBlocks::listByRank(const RankedBoxes& boxes) {
  const std::size_t n = boxes.boxes.size;
  const View<std::uint32_t> ids = ids_.ensure(n);
  const View<std::uint64_t> words = words_.ensure(n);
  tasks_.forRanges(n, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) words[i] = std::uint64_t{boxes.ranks[i]} << 32 | i;
  });
  const std::uint32_t nowhere = boxes.worldCount + 1;
  const std::uint64_t* sorted = sort_.words(tasks_, words, spare_.ensure(n).data, 32,
                                            static_cast<int>(std::bit_width(nowhere)));
  tasks_.forRanges(n, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) ids[k] = static_cast<std::uint32_t>(sorted[k]);
  });
  for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
    const auto rank = static_cast<std::uint32_t>(sorted[begin] >> 32);
    while (end < n && sorted[end] >> 32 == rank) ++end;
    const View<std::uint32_t> mine{ids.data + begin, end - begin};
    if (rank == nowhere)
      nowhere_ = mine;
    else
      worlds_.push_back({rank, mine});
  }
}

/// As many blocks as there would be if all boxes were ordinary.
void WorldBlocks::lendBlocks(const RankedBoxes& boxes) {
  const auto blocksOf = [](const World& world) {
    const auto size = static_cast<std::uint32_t>(world.ids.size);
    return BlockTree::forLevels(BlockTree::blocksOver(size), [](auto...) {});
  };
  std::size_t count = 0;
  for (const World& world : worlds_) count += blocksOf(world);
  BoxBlock* blocks = blocks_.ensure(count).data;
  FilterBlock* filters = boxes.filters.empty() ? nullptr : filters_.ensure(count).data;
  for (World& world : worlds_) {
    world.packed = {};
    world.packed.boxes = boxes.boxes;
    world.packed.filters = boxes.filters;
    world.packed.tree.blocks = blocks;
    world.packed.tree.filters = filters;
    const std::size_t mine = blocksOf(world);
    blocks += mine;
    if (filters != nullptr) filters += mine;
  }
}

void WorldBlocks::pack(World& world, HostTasks& tasks, WorldOrder& order) {
  PackedBoxes& packed = world.packed;
  const SceneBounds counts = order.sort(packed.boxes, world.ids);
  BlockTree& tree = packed.tree;
  tree.boxes = counts.ordinary;
  tree.leafBlocks = BlockTree::blocksOver(counts.ordinary);
  tree.root = BlockTree::forLevels(tree.leafBlocks, [](auto...) {}) - 1;
  tree.isInIndexOrder = world.ids.size <= WorldOrder::kFew;
  packed.oversized = {world.ids.data + counts.ordinary, counts.oversized};
  packed.nan = {packed.oversized.end(), counts.nan};
  packBlocks(tasks, kernels_, packed, world.ids.data);
  if (tree.boxes > 0) world.bounds = boundsOf(tree);
}

void WorldBlocks::packSmall(std::size_t most) {
  tasks_.forWorkers(worlds_.size(), 1, [&](std::size_t worker, std::size_t begin, std::size_t end) {
    Worker& mine = *workers_[worker];
    for (std::size_t k = begin; k < end; ++k)
      if (worlds_[k].ids.size <= most) pack(worlds_[k], mine.tasks, mine.order);
    return true;
  });
}

const World* WorldBlocks::find(std::uint32_t rank) const {
  const auto at = std::partition_point(worlds_.begin(), worlds_.end(),
                                       [&](const World& world) { return world.rank < rank; });
  return at != worlds_.end() && at->rank == rank ? &*at : nullptr;
}

std::size_t WorldBlocks::units() const {
  return worlds_.empty() ? 0 : worlds_.back().firstUnit + worlds_.back().units();
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
#include "broadphase/host/world_blocks.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "broadphase/host/blocks.h"
#include "broadphase/host/box_order.h"

namespace lbvh {
namespace {

constexpr std::size_t kBoxGrain = 4096;  // boxes

/// Maximum number of boxes in a small world, which one thread packs. If one thread packed a larger
/// world, the other threads would have to wait for it.
std::size_t mostOfSmall(std::size_t boxes, int threads) {
  return std::max<std::size_t>(8192, boxes / (4 * static_cast<std::size_t>(threads)));
}

Aabb boundsOfRoot(const BlockTree& tree) {
  const BoxBlock& root = tree.blocks[tree.root];
  Aabb bounds = root.box(0);
  for (std::uint32_t lane = 1; lane < kLanes; ++lane)  // an empty lane changes nothing
    for (int axis = 0; axis < 3; ++axis) {
      bounds.min[axis] = std::min(bounds.min[axis], root.corners[axis][lane]);
      bounds.max[axis] = std::max(bounds.max[axis], root.corners[3 + axis][lane]);
    }
  return bounds;
}

}  // namespace

/// Orders and packs the boxes of one world.
class WorldBlocks::Packer {
 public:
  Packer(HostSpace& space, const SimdKernels& kernels)
      : tasks_(space.tasks()), kernels_(kernels), order_(space, kernels) {}

  void pack(World& world) {
    PackedBoxes& packed = world.packed;
    const SceneBounds counts = world.ids.size() <= BoxOrder::kMaxUnordered
                                   ? sortByClass(packed.boxes, world.ids)
                                   : sort(packed, world.ids);
    packed.tree.cover(counts.ordinary);
    packed.tree.isInIndexOrder = world.ids.size() <= BoxOrder::kMaxUnordered;
    packed.oversized = {world.ids.data() + counts.ordinary, counts.oversized};
    packed.nan = {packed.oversized.end(), counts.nan};
    packBlocks(tasks_, kernels_, packed, world.ids.data());
    if (packed.tree.boxes > 0) world.bounds = boundsOfRoot(packed.tree);
  }

 private:
  static SceneBounds sortByClass(View<const Aabb> boxes, View<std::uint32_t> ids);
  SceneBounds sort(const PackedBoxes& packed, View<std::uint32_t> ids);
  template <class T>
  View<const T> inOnePiece(View<const T> all, View<const std::uint32_t> ids, HostBuffer<T>& copies);

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  BoxOrder order_;
  BoxOrder::Scratch scratch_;
  HostBuffer<Aabb> boxes_;
  HostBuffer<Filter> filters_;
  HostBuffer<std::uint32_t> places_, before_;
};

/// The packer of one thread, for small worlds.
struct WorldBlocks::Worker {
  explicit Worker(const SimdKernels& kernels) : packer(space, kernels) {
    space.setTimesStages(false);
  }
  HostSpace space{1};
  Packer packer;
};

/// Sorts boxes by class: ordinary boxes, then oversized boxes, then those with a NaN.
/// @param ids ascending, and still ascending within each class afterwards
SceneBounds WorldBlocks::Packer::sortByClass(View<const Aabb> boxes, View<std::uint32_t> ids) {
  SceneBounds scene;
  for (const std::uint32_t id : ids) scene.ordinary += classify(boxes[id]) == BoxClass::ordinary;
  if (scene.ordinary == ids.size()) return scene;
  const auto moveToFront = [&](std::uint32_t* begin, BoxClass boxClass) {
    return std::stable_partition(begin, ids.end(),
                                 [&](std::uint32_t id) { return classify(boxes[id]) == boxClass; });
  };
  std::uint32_t* const oversized = moveToFront(ids.begin(), BoxClass::ordinary);
  std::uint32_t* const nan = moveToFront(oversized, BoxClass::oversized);
  scene.oversized = static_cast<std::uint32_t>(nan - oversized);
  scene.nan = static_cast<std::uint32_t>(ids.end() - nan);
  return scene;
}

/// Sorts boxes by class, and the ordinary boxes along a curve over this world.
SceneBounds WorldBlocks::Packer::sort(const PackedBoxes& packed, View<std::uint32_t> ids) {
  const std::size_t n = ids.size();
  const View<const Aabb> boxes = inOnePiece(packed.boxes, ids, boxes_);
  const View<const Filter> filters = inOnePiece(packed.filters, ids, filters_);
  std::uint32_t* const places = places_.ensure(n).data();
  std::uint32_t* const before = before_.ensure(n).data();
  StepHeader header{};
  StepStats stats;  // not reported
  scratch_.reset(BoxOrder::scratchBytesFor(n));
  order_.find(boxes, filters, 0, header, places, scratch_, stats);
  std::copy_n(ids.data(), n, before);
  tasks_.forRanges(n, kBoxGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) ids[k] = before[places[k]];
  });
  return header.scene;
}

/// Returns the boxes or filters of a world as one array. Does not copy them if their indices are
/// consecutive, which is the usual case.
/// @param all by box, or empty
template <class T>
View<const T> WorldBlocks::Packer::inOnePiece(View<const T> all, View<const std::uint32_t> ids,
                                              HostBuffer<T>& copies) {
  if (all.empty()) return {};
  const std::uint32_t first = ids[0];
  if (ids[ids.size() - 1] - first == ids.size() - 1) return {all.data() + first, ids.size()};
  const View<T> mine = copies.ensure(ids.size());
  tasks_.forRanges(ids.size(), kBoxGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) mine[k] = all[ids[k]];
  });
  return mine;
}

WorldBlocks::WorldBlocks(HostSpace& space, const SimdKernels& kernels)
    : tasks_(space.tasks()), ofLarge_(std::make_unique<Packer>(space, kernels)) {
  for (int k = 0; k < tasks_.threads(); ++k) workers_.push_back(std::make_unique<Worker>(kernels));
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
  const std::size_t most = mostOfSmall(boxes.boxes.size(), tasks_.threads());
  for (World& world : worlds_)
    if (world.ids.size() > most) ofLarge_->pack(world);
  packSmall(most);
  worldCount_ = boxes.worldCount;
} catch (...) {
  clear();
  throw;
}

void WorldBlocks::listAll(const RankedBoxes& boxes) {
  const View<std::uint32_t> ids = ids_.ensure(boxes.boxes.size());
  std::iota(ids.begin(), ids.end(), 0u);
  if (!ids.empty()) worlds_.push_back({0, ids});
}

/// Lists the boxes of each world, by sorting words that hold the rank and the index of a box.
void WorldBlocks::listByRank(const RankedBoxes& boxes) {
  const std::size_t n = boxes.boxes.size();
  const View<std::uint32_t> ids = ids_.ensure(n);
  const View<std::uint64_t> words = words_.ensure(n);
  tasks_.forRanges(n, kBoxGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) words[i] = std::uint64_t{boxes.ranks[i]} << 32 | i;
  });
  const std::uint32_t nowhere = boxes.worldCount + 1;
  const std::uint64_t* sorted =
      sort_.words(tasks_, words, 32, static_cast<int>(std::bit_width(nowhere)));
  tasks_.forRanges(n, kBoxGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) ids[k] = static_cast<std::uint32_t>(sorted[k]);
  });
  for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
    const auto rank = static_cast<std::uint32_t>(sorted[begin] >> 32);
    while (end < n && sorted[end] >> 32 == rank) ++end;
    const View<std::uint32_t> mine{ids.data() + begin, end - begin};
    if (rank == nowhere)
      nowhere_ = mine;
    else
      worlds_.push_back({rank, mine});
  }
}

/// Lends each world the blocks that it would need if all its boxes were ordinary.
void WorldBlocks::lendBlocks(const RankedBoxes& boxes) {
  const auto blocksOf = [](const World& world) {
    return BlockTree().cover(static_cast<std::uint32_t>(world.ids.size()));
  };
  std::size_t count = 0;
  for (const World& world : worlds_) count += blocksOf(world);
  BoxBlock* blocks = blocks_.ensure(count).data();
  FilterBlock* filters = boxes.filters.empty() ? nullptr : filters_.ensure(count).data();
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

void WorldBlocks::packSmall(std::size_t most) {
  tasks_.forWorkers(worlds_.size(), 1, [&](std::size_t worker, std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k)
      if (worlds_[k].ids.size() <= most) workers_[worker]->packer.pack(worlds_[k]);
    return true;
  });
}

const World* WorldBlocks::find(std::uint32_t rank) const {
  const auto at = std::partition_point(worlds_.begin(), worlds_.end(),
                                       [&](const World& world) { return world.rank < rank; });
  return at != worlds_.end() && at->rank == rank ? &*at : nullptr;
}

}  // namespace lbvh

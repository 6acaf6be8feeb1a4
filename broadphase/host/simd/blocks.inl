// SPDX-License-Identifier: Zlib
// Runs stage 4 on the host. Packs boxes into blocks of sixteen, and the bounds of blocks into the
// blocks above. Included by kernels.inl.

/// Moves the minimum or maximum of all lanes to lane 0.
template <std::uint32_t kHalf, bool kIsLeast>
inline void reduce(Floats& lanes) {
  if constexpr (kHalf > 0) {
    Floats other;
    shuffle(
        lanes, lanes, [](std::uint32_t i) { return i ^ kHalf; }, other);
    if constexpr (kIsLeast)
      least(lanes, other, lanes);
    else
      greatest(lanes, other, lanes);
    reduce<kHalf / 2, kIsLeast>(lanes);
  }
}

template <bool kIsLeast>
inline float reduceBlock(const float (&numbers)[kLanes]) {
  Floats lanes;
  std::memcpy(&lanes, numbers, sizeof lanes);
  for (std::uint32_t from = kWidth; from < kLanes; from += kWidth) {
    Floats more;
    std::memcpy(&more, numbers + from, sizeof more);
    if constexpr (kIsLeast)
      least(lanes, more, lanes);
    else
      greatest(lanes, more, lanes);
  }
  reduce<kWidth / 2, kIsLeast>(lanes);
  return lanes[0];
}

/// Writes the sixteen boxes with the indices `ids`, as BoxBlock::set() would.
/// @return whether all are ordinary
inline bool packBlock(const Aabb* boxes, const std::uint32_t* ids, BoxBlock& block) {
  Integers areOrdinary = Integers{} - 1;
  for (std::uint32_t from = 0; from < kLanes; from += kWidth) {
    const Boxes several([&](std::uint32_t i) -> const Aabb& { return boxes[ids[from + i]]; });
    Integers are;
    several.areOrdinary(are);
    areOrdinary &= are;
    for (int axis = 0; axis < 3; ++axis) {
      const Floats hi = several.hi[axis] + 0.0f;
      std::memcpy(block.corners[axis] + from, &several.lo[axis], sizeof hi);
      std::memcpy(block.corners[3 + axis] + from, &hi, sizeof hi);
    }
  }
  std::memcpy(block.child, ids, sizeof block.child);
  return all(areOrdinary);
}

/// Writes the corners of a block in steps of a grid.
inline void packShorts(const BoxBlock& block, const ShortGrid& grid, ShortBlock& out) {
  for (int k = 0; k < 6; ++k)
    for (std::uint32_t from = 0; from < kLanes; from += kWidth) {
      Floats t;
      std::memcpy(&t, block.corners[k] + from, sizeof t);
      t = (t - grid.lo[k % 3]) * grid.perStep[k % 3] - ShortGrid::kHalf;
      least(t, Floats{} + ShortGrid::kMax, t);
      greatest(t, Floats{} - ShortGrid::kMax, t);
      Integers steps;
      toIntegers(t, steps);
      if (k >= 3) steps = -steps;
      writeShorts<kWidth>(steps, out.corners[k] + from);
    }
}

/// Empties the lanes from `count` on and those of boxes that are not ordinary.
/// @return the number of ordinary boxes
inline std::uint32_t clearOthers(const Aabb* boxes, std::uint32_t count, BoxBlock& block) {
  for (std::uint32_t lane = 0; lane < kLanes; ++lane)
    if (lane >= count || classify(boxes[block.child[lane]]) != BoxClass::ordinary)
      block.clear(lane);
  return static_cast<std::uint32_t>(std::count_if(
      block.child, block.child + kLanes, [](std::uint32_t child) { return child != kNullIndex; }));
}

std::uint32_t packLeaves(const PackedBoxes& input, const std::uint32_t* ids, std::uint32_t begin,
                         std::uint32_t end) {
  std::uint32_t ordinary = 0;
  constexpr std::uint32_t kAhead = 32;  // boxes are prefetched, because they are scattered
  const BlockTree& tree = input.tree;
  const bool prefetches = input.boxes.size() > kBoxesInCache;
  for (std::uint32_t index = begin; index < end; ++index) {
    const std::uint32_t first = index * kLanes, count = std::min(kLanes, tree.boxes - first);
    for (std::uint32_t k = first + kAhead; prefetches && k < first + kAhead + kLanes; ++k) {
      if (k >= tree.boxes) break;
      prefetchObject(input.boxes[ids[k]]);
      if (tree.filters != nullptr) prefetch(&input.filters[ids[k]]);
    }
    const std::uint32_t* mine = ids + first;
    std::uint32_t last[kLanes];
    if (count < kLanes) {
      std::fill_n(std::copy_n(mine, count, last), kLanes - count, mine[0]);
      mine = last;
    }
    BoxBlock& block = tree.blocks[index];
    const bool areOrdinary = packBlock(input.boxes.data(), mine, block);
    ordinary +=
        areOrdinary && count == kLanes ? count : clearOthers(input.boxes.data(), count, block);
    if (tree.shorts != nullptr) packShorts(block, tree.shorts->grid, tree.shorts->blocks[index]);
    if (tree.filters == nullptr) continue;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)
      if (block.child[lane] != kNullIndex)
        tree.filters[index].set(lane, input.filters[block.child[lane]]);
      else
        tree.filters[index].clear(lane);
  }
  return ordinary;
}

/// All groups and all masks of a block.
inline Filter unite(const FilterBlock& block) {
  Filter all{0, 0};
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    all.group |= block.group[lane];
    all.mask |= block.mask[lane];
  }
  return all;
}

/// The groups and the masks that all boxes of a leaf block have.
inline Filter intersect(const FilterBlock& block, const BoxBlock& boxes) {
  Filter common{-1, -1};
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::int32_t noBox = boxes.child[lane] == kNullIndex ? -1 : 0;
    common.group &= block.group[lane] | noBox;
    common.mask &= block.mask[lane] | noBox;
  }
  return common;
}

void packBounds(const BlockTree& tree, std::uint32_t parent, std::uint32_t lane,
                std::uint32_t child) {
  BoxBlock& block = tree.blocks[parent];
  const BoxBlock& boxes = tree.blocks[child];
  for (int k = 0; k < 3; ++k) {
    block.corners[k][lane] = reduceBlock<true>(boxes.corners[k]);
    block.corners[3 + k][lane] = reduceBlock<false>(boxes.corners[3 + k]);
  }
  block.child[lane] = child;
  if (tree.filters == nullptr) return;
  tree.filters[parent].set(lane, unite(tree.filters[child]));
  if (tree.common != nullptr && child < tree.leafBlocks)
    tree.common[parent - tree.leafBlocks].set(lane, intersect(tree.filters[child], boxes));
}

void packParent(const BlockTree& tree, std::uint32_t parent, std::uint32_t child,
                std::uint32_t children) {
  for (std::uint32_t lane = 0; lane < children; ++lane)
    packBounds(tree, parent, lane, child + lane);
  for (std::uint32_t lane = children; lane < kLanes; ++lane) {
    tree.blocks[parent].clear(lane);
    if (tree.filters != nullptr) tree.filters[parent].clear(lane);
  }
}

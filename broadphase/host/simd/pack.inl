// SPDX-License-Identifier: Zlib
// Stage 4 on the host: packs boxes into blocks of sixteen, and the bounds of blocks into the blocks
// above. Included by kernels.inl.

/// Moves the least of all lanes, or the greatest, to lane 0.
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

/// The least of sixteen numbers, or the greatest.
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

/// Writes sixteen boxes, whose indices are `ids`, as BoxBlock::set() would.
inline void packBlock(const Aabb* boxes, const std::uint32_t* ids, BoxBlock& block) {
  for (std::uint32_t from = 0; from < kLanes; from += kWidth) {
    const Boxes several([&](std::uint32_t i) -> const Aabb& { return boxes[ids[from + i]]; });
    for (int axis = 0; axis < 3; ++axis) {
      const Floats hi = several.hi[axis] + 0.0f;
      std::memcpy(block.corners[axis] + from, &several.lo[axis], sizeof hi);
      std::memcpy(block.corners[3 + axis] + from, &hi, sizeof hi);
    }
  }
  std::memcpy(block.child, ids, sizeof block.child);
}

void packLeaves(const PackedBoxes& input, const std::uint32_t* ids, std::uint32_t begin,
                std::uint32_t end) {
  constexpr std::uint32_t kAhead = 32;  // boxes lie scattered: prefetch them
  const BlockTree& tree = input.tree;
  const bool prefetches = input.boxes.size > kBoxesInCache;
  for (std::uint32_t index = begin; index < end; ++index) {
    const std::uint32_t first = index * kLanes, count = std::min(kLanes, tree.boxes - first);
    for (std::uint32_t k = first + kAhead; prefetches && k < first + kAhead + kLanes; ++k) {
      if (k >= tree.boxes) break;
      prefetchAll(input.boxes[ids[k]]);
      if (tree.filters != nullptr) prefetch(&input.filters[ids[k]]);
    }
    const std::uint32_t* mine = ids + first;
    std::uint32_t last[kLanes];
    if (count < kLanes) {
      std::fill_n(std::copy_n(mine, count, last), kLanes - count, mine[0]);
      mine = last;
    }
    BoxBlock& block = tree.blocks[index];
    packBlock(input.boxes.data, mine, block);
    for (std::uint32_t lane = count; lane < kLanes; ++lane) block.clear(lane);
    if (tree.filters == nullptr) continue;
    for (std::uint32_t lane = 0; lane < count; ++lane) {
      tree.filters[index].group[lane] = input.filters[mine[lane]].group;
      tree.filters[index].mask[lane] = input.filters[mine[lane]].mask;
    }
  }
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
}

void packParent(const BlockTree& tree, std::uint32_t parent, std::uint32_t child,
                std::uint32_t children) {
  for (std::uint32_t lane = 0; lane < children; ++lane)
    packBounds(tree, parent, lane, child + lane);
  for (std::uint32_t lane = children; lane < kLanes; ++lane) tree.blocks[parent].clear(lane);
}

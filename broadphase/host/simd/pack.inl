// SPDX-License-Identifier: Zlib
// Stage 4 on the host: packs boxes into blocks of sixteen, and the bounds of blocks into the blocks
// above. Included by kernels.inl.

/// The bounds of a block's boxes.
inline void bounds(const BoxBlock& block, float (&corners)[6]) {
  for (int k = 0; k < 6; ++k) {
    float x[kLanes];
    std::copy_n(block.corners[k], kLanes, x);
    for (std::uint32_t half = kLanes / 2; half > 0; half /= 2)  // so that it becomes SIMD
      for (std::uint32_t i = 0; i < half; ++i) {
        const float a = x[i], b = x[i + half];
        x[i] = (k < 3 ? b < a : b > a) ? b : a;
      }
    corners[k] = x[0];
  }
}

void packLeaves(const PackedBoxes& input, const std::uint32_t* ids, std::uint32_t begin,
                std::uint32_t end) {
  constexpr std::uint32_t kAhead = 32;  // boxes lie scattered: prefetch them
  const BlockTree& tree = input.tree;
  for (std::uint32_t index = begin; index < end; ++index) {
    BoxBlock& block = tree.blocks[index];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t leaf = index * kLanes + lane;
      if (leaf >= tree.boxes) {
        block.clear(lane);
        continue;
      }
      if (leaf + kAhead < tree.boxes) {
        const std::uint32_t ahead = ids[leaf + kAhead];
        prefetchAll(input.boxes[ahead]);
        if (tree.filters != nullptr) prefetch(&input.filters[ahead]);
      }
      const std::uint32_t id = ids[leaf];
      block.set(lane, input.boxes[id], id);
      if (tree.filters == nullptr) continue;
      tree.filters[index].group[lane] = input.filters[id].group;
      tree.filters[index].mask[lane] = input.filters[id].mask;
    }
  }
}

void packBounds(const BlockTree& tree, std::uint32_t parent, std::uint32_t lane,
                std::uint32_t child) {
  BoxBlock& block = tree.blocks[parent];
  float corners[6];
  bounds(tree.blocks[child], corners);
  for (int k = 0; k < 6; ++k) block.corners[k][lane] = corners[k];
  block.child[lane] = child;
}

void packParent(const BlockTree& tree, std::uint32_t parent, std::uint32_t child,
                std::uint32_t children) {
  for (std::uint32_t lane = 0; lane < children; ++lane)
    packBounds(tree, parent, lane, child + lane);
  for (std::uint32_t lane = children; lane < kLanes; ++lane) tree.blocks[parent].clear(lane);
}

// SPDX-License-Identifier: Zlib
// Finds the blocks that a block of queries overlaps, and those that each of its boxes overlaps: the
// first part of stage 5. Included by kernels.inl.

/// Searches for the neighbours of the boxes in a range of leaf blocks. First it finds the target
/// leaf blocks that overlap the bounds of the query's block. Among these it finds the blocks that
/// overlap the query itself. Base class of searches that then test the boxes of these blocks.
class BlockSearch {
 protected:
  /// A lane of a query block, with its box and its filter.
  struct Lane {
    std::uint32_t block, lane;
  };

  /// @param skipsLesser whether blocks before the query's own block are not searched
  /// @param prefetches whether targets may not be in the cache
  BlockSearch(const PackedBoxes& queries, const PackedBoxes& targets, const SearchMemory& memory,
              const NeighbourCount& count, bool skipsLesser, bool prefetches)
      : queries_(queries.tree),
        tree_(targets.tree),
        memory_(memory),
        count_(count),
        skipsLesser_(skipsLesser),
        prefetches_(prefetches) {}

  /// With more blocks than this around a block of queries, each query descends the tree by itself,
  /// which takes about as many tests. Otherwise a few queries that are far apart would be tested
  /// against all blocks between them.
  static constexpr std::uint32_t kMaxShared = 8 * kLanes;
  static constexpr std::uint32_t kTestsToTell = 1024;  ///< many, because all threads share a count

  /// Finds the blocks around a query block, for all of its boxes.
  /// @return false if there are too many
  bool findShared(std::uint32_t block) {
    // The block's bounds are a lane of its parent. Parents are stored after the leaf blocks.
    return findBlocks(block, {queries_.leafBlocks + block / kLanes, block % kLanes}, kMaxShared);
  }

  /// Calls find(lane) for each box of a query block, until it returns false.
  /// @param areShared whether the blocks around the query block were found
  template <class Find>
  bool forQueries(std::uint32_t block, bool areShared, const Find& find) {
    const std::uint32_t boxes = std::min(kLanes, queries_.boxes - block * kLanes);
    for (std::uint32_t lane = 0; lane < boxes; ++lane) {
      if (queries_.blocks[block].child[lane] == kNullIndex) continue;
      if (!areShared) findBlocks(block, {block, lane}, kNullIndex);
      if (!find(lane)) return false;
    }
    return true;
  }

  /// Writes the blocks that overlap a query to `nearby`, in ascending order. @return their number
  std::uint32_t findNearby(const Simd::Box& box, std::uint32_t* nearby) {
    const SearchMemory memory = memory_;
    // Copied, so that the compiler knows that writes to the memory of the search do not change it.
    const std::uint32_t blocks = blocks_;
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < blocks; i += kLanes) {
      const std::uint32_t hits = Simd::overlaps(box, memory.corners + i, memory.stride);
      Simd::append(nearby + count, memory.blocks + i, hits);
      count += static_cast<std::uint32_t>(std::popcount(hits));
    }
    tests_ += (blocks + kLanes - 1) / kLanes + count;
    return count;
  }

  std::uint32_t shouldCollide(Lane query, std::uint32_t index) const {
    return Simd::shouldCollide(queries_.filters[query.block], query.lane, tree_.filters[index]);
  }

  /// Counts found neighbours. @return false if the limit was exceeded
  bool claim(std::uint64_t size, std::uint64_t& start) {
    start = count_.found->fetch_add(size, std::memory_order_relaxed);
    return start + size <= count_.limit;
  }

  /// Adds this thread's tests to those of all threads, if there are at least `few`.
  /// @return false if the limit was exceeded
  bool tellTests(std::uint64_t few) {
    if (tests_ < few || count_.tests == nullptr) return true;
    const std::uint64_t tests = tests_ + unsure_;
    if (count_.unsure != nullptr) count_.unsure->fetch_add(unsure_, std::memory_order_relaxed);
    tests_ = unsure_ = 0;
    return count_.tests->fetch_add(tests, std::memory_order_relaxed) + tests <= count_.mostTests;
  }

  const BlockTree queries_;
  const BlockTree tree_;  ///< the tree of the targets
  const SearchMemory memory_;
  const NeighbourCount& count_;
  /// Whether blocks were found with boxes that should perhaps not collide with a box of the query's
  /// block. Stays true until it is reset. Not set without BlockTree::common.
  bool mayMismatch_ = false;
  std::uint64_t unsure_ = 0;  ///< tests that 16-bit integers could not decide; not yet in count_

 private:
  static std::uint32_t highest(std::uint32_t bits) { return std::bit_floor(bits); }

  /// Writes the target leaf blocks that overlap the box at `from` into the memory of the search, in
  /// ascending order. Skips blocks whose filters cannot match. `from` is the query leaf block
  /// `block` or a lane of it.
  /// @return false if there are more than `most`, and not all were written
  bool findBlocks(std::uint32_t block, Lane from, std::uint32_t most) {
    const Simd::Box around(queries_.blocks[from.block], from.lane);
    std::uint32_t stack[7 * kLanes];  // at most seven levels for 2^30 boxes
    std::uint32_t depth = 0;
    if (tree_.boxes > 0) stack[depth++] = tree_.root;
    blocks_ = 0;
    for (; depth > 0; ++tests_) {
      const std::uint32_t index = stack[--depth];
      const BoxBlock& at = tree_.blocks[index];
      std::uint32_t hits = Simd::overlaps(around, at.corners[0], kLanes);
      if (tree_.filters != nullptr) hits &= shouldCollide(from, index);
      if (skipsLesser_ && at.child[0] < tree_.leafBlocks && at.child[0] < block)
        hits &= ~0u << std::min(block - at.child[0], kLanes);
      if (at.child[0] >= tree_.leafBlocks) {
        for (; hits != 0; hits &= ~highest(hits))
          stack[depth++] = at.child[std::countr_zero(highest(hits))];
        continue;
      }
      if (tree_.common != nullptr) mayMismatch_ |= (hits & ~allCollide(block, index)) != 0;
      for (std::size_t k = 0; k < 6; ++k)
        Simd::append(memory_.corners + k * memory_.stride + blocks_, at.corners[k], hits);
      Simd::append(memory_.blocks + blocks_, at.child, hits);
      blocks_ += static_cast<std::uint32_t>(std::popcount(hits));
      if (blocks_ > most) return false;
      if (prefetches_) prefetchBlocks(at.child, hits);
    }
    // The last group of blocks may have fewer than sixteen.
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)
      memory_.corners[blocks_ + lane] = std::numeric_limits<float>::infinity();
    return true;
  }

  /// The lanes of a parent of leaf blocks whose boxes should all collide with each box of a query
  /// block.
  std::uint32_t allCollide(std::uint32_t block, std::uint32_t parent) const {
    return Simd::shouldCollide(queries_.common[block / kLanes], block % kLanes,
                               tree_.common[parent - tree_.leafBlocks]);
  }

  void prefetchBlocks(const std::uint32_t* indices, std::uint32_t hits) {
    for (; hits != 0; hits &= hits - 1) {
      const auto* block =
          reinterpret_cast<const char*>(&tree_.blocks[indices[std::countr_zero(hits)]]);
      for (std::size_t at = 0; at < sizeof(BoxBlock); at += 64) prefetch(block + at);
    }
  }

  const bool skipsLesser_;
  const bool prefetches_;
  std::uint32_t blocks_ = 0;  ///< number of blocks in memory_
  std::uint64_t tests_ = 0;   ///< tests of a box against a block; not yet in count_
};

// SPDX-License-Identifier: Zlib
// Runs stage 5 on the host. Finds the list of neighbours of each box, sixteen boxes at a time.
// Included by kernels.inl.

/// Searches for the neighbours of the boxes in a range of leaf blocks. First it finds the target
/// leaf blocks that overlap the bounds of the query's block. Among these it finds the blocks that
/// overlap the query itself. Then it tests their boxes.
///
/// By rank, it searches only the query's own block and later ones, in ascending order. Otherwise it
/// finds each pair from both sides, and ListKind::half keeps it only for the smaller index. So each
/// list is in one piece, and pairs need not be sorted by their first box.
class Search {
 public:
  Search(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
         const SearchMemory& memory, const NeighbourLists& lists, const NeighbourCount& count,
         const NeighbourFilter* filter)
      : queries_(queries.tree),
        targets_(targets),
        tree_(targets.tree),
        memory_(memory),
        lists_(lists),
        count_(count),
        filter_(filter),
        isHalf_(kind == ListKind::half),
        isRanked_(kind == ListKind::ranked),
        skipsLesser_(isRanked_ || (isHalf_ && tree_.isInIndexOrder)) {}

  bool run(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t block = begin; block < end; ++block) {
      const std::uint32_t boxes = std::min(kLanes, queries_.boxes - block * kLanes);
      if (!isRanked_) prefetchLists(block);
      // The block's bounds are a lane of its parent. Parents are stored after the leaf blocks.
      const std::uint32_t parent = queries_.leafBlocks + block / kLanes;
      const bool areShared = findBlocks(block, {parent, block % kLanes}, kMaxShared);
      for (std::uint32_t lane = 0; lane < boxes; ++lane) {
        if (!hasList(block, lane)) continue;
        if (!areShared) findBlocks(block, {block, lane}, kNullIndex);
        if (!findList(block, lane)) return false;
      }
      if (!keepLists() || !tellTests(kTestsToTell)) return false;
    }
    return tellTests(1);
  }

 private:
  static constexpr std::uint32_t kCapacity = 4096;
  /// With more blocks than this around a block of queries, each query descends the tree by itself,
  /// which takes about as many tests. Otherwise a few queries that are far apart would be tested
  /// against all blocks between them.
  static constexpr std::uint32_t kMaxShared = 8 * kLanes;
  static constexpr std::uint32_t kTestsToTell = 1024;  ///< many, because all threads share a count

  /// Prefetches the elements of lists_.byBox for the block's boxes. They are far apart, and are
  /// written last.
  void prefetchLists(std::uint32_t block) {
    for (const std::uint32_t id : queries_.blocks[block].child)
      if (id != kNullIndex) prefetch(&lists_.byBox[id]);
  }

  /// False if the lane has no box. By rank, such a lane gets an empty list.
  bool hasList(std::uint32_t block, std::uint32_t lane) {
    if (queries_.blocks[block].child[lane] != kNullIndex) return true;
    if (isRanked_) waiting_[waitingCount_++] = {block * kLanes + lane, waitingEnd_};
    return false;
  }

  /// A lane of a query block, with its box and its filter.
  struct Lane {
    std::uint32_t block, lane;
  };

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
      for (std::size_t k = 0; k < 6; ++k)
        Simd::append(memory_.corners + k * memory_.stride + blocks_, at.corners[k], hits);
      Simd::append(memory_.blocks + blocks_, at.child, hits);
      blocks_ += static_cast<std::uint32_t>(std::popcount(hits));
      if (blocks_ > most) return false;
      if (!isHalf_ && !isRanked_) prefetchBlocks(at.child, hits);
    }
    // The last group of blocks may have fewer than sixteen.
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)
      memory_.corners[blocks_ + lane] = std::numeric_limits<float>::infinity();
    return true;
  }

  /// Called only for full lists. For other lists the targets are the queries, whose blocks are in
  /// the cache.
  void prefetchBlocks(const std::uint32_t* indices, std::uint32_t hits) {
    for (; hits != 0; hits &= hits - 1) {
      const auto* block =
          reinterpret_cast<const char*>(&tree_.blocks[indices[std::countr_zero(hits)]]);
      for (std::size_t at = 0; at < sizeof(BoxBlock); at += 64) prefetch(block + at);
    }
  }

  /// Writes the list of one box after those in `waiting_`. @return false if a limit was exceeded
  bool findList(std::uint32_t block, std::uint32_t lane) {
    const Simd::Box box(queries_.blocks[block], lane);
    const SearchMemory memory = memory_;
    // Copied, so that the compiler knows that writes to the memory of the search do not change it.
    const std::uint32_t blocks = blocks_;
    std::uint32_t nearby = 0;
    for (std::uint32_t i = 0; i < blocks; i += kLanes) {
      const std::uint32_t hits = Simd::overlaps(box, memory.corners + i, memory.stride);
      Simd::append(memory.nearby + nearby, memory.blocks + i, hits);
      nearby += static_cast<std::uint32_t>(std::popcount(hits));
    }
    tests_ += (blocks + kLanes - 1) / kLanes + nearby;
    const std::size_t most = std::size_t{nearby} * kLanes + oversized();
    if (waitingEnd_ + most > kCapacity && !keepLists()) return false;
    const std::uint32_t id = isRanked_ ? block * kLanes + lane : queries_.blocks[block].child[lane];
    const Query query{box, block, lane, id, isHalf_ ? static_cast<int>(id) : -1};
    if (most > kCapacity) return findLongList(query, nearby);
    const std::uint32_t begin = waitingEnd_;
    waitingEnd_ = testBlocks(query, 0, nearby, waitingEnd_);
    waitingEnd_ = testOversized(query, 0, oversized(), waitingEnd_);
    if (filter_ != nullptr) waitingEnd_ = begin + keep(query.id, begin, waitingEnd_ - begin);
    waiting_[waitingCount_++] = {query.id, begin};
    return true;
  }

  std::uint32_t keep(std::uint32_t id, std::uint32_t begin, std::uint32_t size) {
    return filter_->keep(filter_->data, id, list_ + begin, size);
  }

  struct Query {
    const Simd::Box& box;
    std::uint32_t block, lane, id;  ///< id is an index or, by rank, a rank
    int after;                      ///< only greater indices are kept
  };

  static std::uint32_t highest(std::uint32_t bits) { return std::bit_floor(bits); }

  /// Number of oversized targets. By rank, RankedPairs searches them.
  std::size_t oversized() const { return isRanked_ ? 0 : targets_.oversized.size(); }

  /// Appends the boxes in nearby blocks [begin, end) that the query overlaps. @return the new end
  std::uint32_t testBlocks(const Query& query, std::uint32_t begin, std::uint32_t end,
                           std::uint32_t at) {
    const bool isFiltered = tree_.filters != nullptr;
    if (!isRanked_)
      return isFiltered ? testByIndex<true>(query, begin, end, at)
                        : testByIndex<false>(query, begin, end, at);
    return isFiltered ? testByRank<true, Simd>(query, begin, end, at)
                      : testByRank<false, Simd>(query, begin, end, at);
  }

  template <bool kFiltered>
  std::uint32_t testByIndex(const Query& query, std::uint32_t begin, std::uint32_t end,
                            std::uint32_t at) {
    // Copied for the same reason as `blocks` in findList().
    const std::uint32_t* const nearby = memory_.nearby;
    for (std::uint32_t i = begin; i < end; ++i) {
      const BoxBlock& block = tree_.blocks[nearby[i]];
      std::uint32_t hits = Simd::overlaps(query.box, block.corners[0], kLanes);
      hits &= Simd::greater(block.child, query.after);
      if constexpr (kFiltered) hits &= shouldCollide({query.block, query.lane}, nearby[i]);
      Simd::append(list_ + at, block.child, hits);
      at += static_cast<std::uint32_t>(std::popcount(hits));
    }
    return at;
  }

  /// @tparam Set is Simd. It is a parameter because not every Simd has tests with 16-bit integers.
  template <bool kFiltered, class Set>
  std::uint32_t testByRank(const Query& query, std::uint32_t begin, std::uint32_t end,
                           std::uint32_t at) {
    const BoxBlock* const blocks = tree_.blocks;
    const auto test = [&](std::uint32_t index) {
      return Simd::overlaps(query.box, blocks[index].corners[0], kLanes);
    };
    if constexpr (Set::kUsesShorts) {
      if (tree_.shorts == nullptr) return testRanks<kFiltered>(query, begin, end, at, test);
      const ShortBlock* const shorts = tree_.shorts->blocks;
      const typename Set::ShortBox box(shorts[query.block], query.lane);
      return testRanks<kFiltered>(query, begin, end, at, [&](std::uint32_t index) {
        const ShortHits hits = Set::overlaps(box, shorts[index]);
        if (hits.areSure) return hits.bits;
        ++unsure_;
        return hits.bits & test(index);
      });
    } else {
      return testRanks<kFiltered>(query, begin, end, at, test);
    }
  }

  template <bool kFiltered, class Test>
  std::uint32_t testRanks(const Query& query, std::uint32_t begin, std::uint32_t end,
                          std::uint32_t at, const Test& test) {
    const std::uint32_t* const nearby = memory_.nearby;
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t index = nearby[i];
      std::uint32_t hits = test(index);
      if (index == query.block) hits &= ~1u << query.lane;
      if constexpr (kFiltered) hits &= shouldCollide({query.block, query.lane}, index);
      Simd::appendNumbers(list_ + at, index * kLanes, hits);
      at += static_cast<std::uint32_t>(std::popcount(hits));
    }
    return at;
  }

  std::uint32_t shouldCollide(Lane query, std::uint32_t index) const {
    return Simd::shouldCollide(queries_.filters[query.block], query.lane, tree_.filters[index]);
  }

  /// Appends the oversized boxes [begin, end) that the query overlaps. They may be infinite, so
  /// they are tested by comparisons.
  std::uint32_t testOversized(const Query& query, std::size_t begin, std::size_t end,
                              std::uint32_t at) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t other = targets_.oversized[i];
      list_[at] = other;
      at += query.after < static_cast<int>(other) &&
            overlap(targets_.boxes[query.id], targets_.boxes[other]) &&
            lbvh::shouldCollide(targets_.filters, query.id, other);
    }
    return at;
  }

  /// Writes a list that may be longer than kCapacity. The list is counted first, then written piece
  /// by piece.
  bool findLongList(const Query& query, std::uint32_t nearby) {
    std::uint64_t size = 0, start = 0;
    const auto count = [&](std::uint32_t found) { size += found; };
    forPieces(query, nearby, count);
    if (!claim(size, start)) return false;
    lists_.byBox[query.id] = {start, static_cast<std::uint32_t>(size)};
    if (start + size > lists_.indices.size()) return true;
    std::uint32_t* out = lists_.indices.data() + start;
    forPieces(query, nearby, [&](std::uint32_t found) { out = std::copy_n(list_, found, out); });
    return true;
  }

  template <class Piece>
  void forPieces(const Query& query, std::uint32_t nearby, const Piece& piece) {
    const auto kept = [&](std::uint32_t found) {
      piece(filter_ != nullptr ? keep(query.id, 0, found) : found);
    };
    for (std::uint32_t i = 0; i < nearby; i += kCapacity / kLanes)
      kept(testBlocks(query, i, std::min(nearby, i + kCapacity / kLanes), 0));
    for (std::size_t i = 0; i < oversized(); i += kCapacity)
      kept(testOversized(query, i, std::min<std::size_t>(oversized(), i + kCapacity), 0));
  }

  /// Copies the waiting lists to lists_. @return false if a limit was exceeded
  bool keepLists() {
    std::uint64_t start = 0;
    if (!claim(waitingEnd_, start)) return false;
    for (std::uint32_t i = 0; i < waitingCount_; ++i) {
      const Waiting& list = waiting_[i];
      const std::uint32_t end = i + 1 < waitingCount_ ? waiting_[i + 1].begin : waitingEnd_;
      lists_.byBox[list.id] = {start + list.begin, end - list.begin};
    }
    if (start + waitingEnd_ <= lists_.indices.size())
      std::copy_n(list_, waitingEnd_, lists_.indices.data() + start);
    waitingCount_ = waitingEnd_ = 0;
    return true;
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

  bool claim(std::uint64_t size, std::uint64_t& start) {
    start = count_.found->fetch_add(size, std::memory_order_relaxed);
    return start + size <= count_.limit;
  }

  struct Waiting {
    std::uint32_t id, begin;
  };

  const BlockTree queries_;
  const PackedBoxes& targets_;
  const BlockTree tree_;  ///< the tree of the targets
  const SearchMemory memory_;
  const NeighbourLists& lists_;  ///< a copy here made searches up to 6 % slower (AVX-512)
  const NeighbourCount& count_;
  const NeighbourFilter* const filter_;
  const bool isHalf_;         ///< keeps only pairs of the query box and a greater index
  const bool isRanked_;       ///< keeps only pairs of the query box and a greater rank
  const bool skipsLesser_;    ///< blocks before the query's own block hold only smaller indices
  std::uint32_t blocks_ = 0;  ///< number of blocks in memory_
  std::uint64_t tests_ = 0;   ///< tests of a box against a block; not yet in count_
  std::uint64_t unsure_ = 0;  ///< tests that 16-bit integers could not decide; not yet in count_
  std::uint32_t waitingCount_ = 0, waitingEnd_ = 0;
  Waiting waiting_[kLanes];
  std::uint32_t list_[kCapacity + kLanes];
};

bool search(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
            std::uint32_t begin, std::uint32_t end, const SearchMemory& memory,
            NeighbourLists lists, const NeighbourCount& count, const NeighbourFilter* filter) {
  return Search(queries, targets, kind, memory, lists, count, filter).run(begin, end);
}

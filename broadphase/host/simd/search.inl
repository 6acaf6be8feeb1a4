// SPDX-License-Identifier: Zlib
// Stage 5 on the host: for each box the list of its neighbours, found sixteen boxes at a time.
// Included by kernels.inl.

/// Searches for the boxes of a range of leaf blocks. First it finds the target leaf blocks that
/// overlap the query block's bounds. Among these it finds the blocks that overlap one query box.
/// Then it tests their boxes. Among the same boxes each pair is met from both sides, and may be
/// kept from the side of the smaller index only. So each box's list is in one piece, and no pairs
/// need to be sorted by their first box.
class Search {
 public:
  Search(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
         const SearchMemory& memory, const NeighbourLists& lists, const NeighbourCount& count)
      : queries_(queries.tree),
        targets_(targets),
        tree_(targets.tree),
        memory_(memory),
        lists_(lists),
        count_(count),
        isHalf_(kind == ListKind::half),
        skipsLesser_(isHalf_ && tree_.isInIndexOrder) {}

  bool run(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t block = begin; block < end; ++block) {
      const std::uint32_t boxes = std::min(kLanes, queries_.boxes - block * kLanes);
      for (std::uint32_t lane = 0; lane < boxes; ++lane)  // they are written last, and far apart
        prefetch(&lists_.byBox[queries_.blocks[block].child[lane]]);
      findBlocks(block);
      for (std::uint32_t lane = 0; lane < boxes; ++lane)
        if (!findList(block, lane)) return false;
      if (!keepLists() || !tellTests(kTestsToTell)) return false;
    }
    return tellTests(1);
  }

 private:
  static constexpr std::uint32_t kRoom = 4096;
  static constexpr std::uint32_t kTestsToTell = 1024;  ///< rarely, because all threads tell

  /// Writes the target leaf blocks that overlap the bounds of the query leaf block `block` into the
  /// memory of the search.
  void findBlocks(std::uint32_t block) {
    // The block's bounds are a lane of its parent, which lies behind the leaf blocks.
    const Simd::Box around(queries_.blocks[queries_.leafBlocks + block / kLanes], block % kLanes);
    std::uint32_t stack[7 * kLanes];  // at most seven levels for 2^30 boxes
    std::uint32_t depth = 0;
    if (tree_.boxes > 0) stack[depth++] = tree_.root;
    blocks_ = 0;
    for (; depth > 0; ++tests_) {
      const BoxBlock& at = tree_.blocks[stack[--depth]];
      std::uint32_t hits = Simd::overlaps(around, at.corners[0], kLanes);
      if (skipsLesser_ && at.child[0] < tree_.leafBlocks && at.child[0] < block)
        hits &= ~0u << std::min(block - at.child[0], kLanes);
      if (at.child[0] >= tree_.leafBlocks) {
        for (; hits != 0; hits &= hits - 1) stack[depth++] = at.child[std::countr_zero(hits)];
        continue;
      }
      for (std::size_t k = 0; k < 6; ++k)
        Simd::append(memory_.corners + k * memory_.stride + blocks_, at.corners[k], hits);
      Simd::append(memory_.blocks + blocks_, at.child, hits);
      blocks_ += static_cast<std::uint32_t>(std::popcount(hits));
      if (!isHalf_) prefetchBlocks(at.child, hits);
    }
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)  // the last sixteen may be fewer
      memory_.corners[blocks_ + lane] = std::numeric_limits<float>::infinity();
  }

  /// Only for other targets: the query blocks themselves are still in the cache.
  void prefetchBlocks(const std::uint32_t* indices, std::uint32_t hits) {
    for (; hits != 0; hits &= hits - 1) {
      const auto* block =
          reinterpret_cast<const char*>(&tree_.blocks[indices[std::countr_zero(hits)]]);
      for (std::size_t at = 0; at < sizeof(BoxBlock); at += 64) prefetch(block + at);
    }
  }

  /// Writes the list of one box behind those in `waiting_`. False: beyond the limit.
  bool findList(std::uint32_t block, std::uint32_t lane) {
    const Simd::Box box(queries_.blocks[block], lane);
    const SearchMemory memory = memory_;
    const std::uint32_t blocks = blocks_;  // writing to the memory of the search does not change it
    std::uint32_t nearby = 0;
    for (std::uint32_t i = 0; i < blocks; i += kLanes) {
      const std::uint32_t hits = Simd::overlaps(box, memory.corners + i, memory.stride);
      Simd::append(memory.nearby + nearby, memory.blocks + i, hits);
      nearby += static_cast<std::uint32_t>(std::popcount(hits));
    }
    tests_ += (blocks + kLanes - 1) / kLanes + nearby;
    const std::size_t most = std::size_t{nearby} * kLanes + targets_.oversized.size;
    if (waitingEnd_ + most > kRoom && !keepLists()) return false;
    const std::uint32_t id = queries_.blocks[block].child[lane];
    const Query query{box, block, lane, id, isHalf_ ? static_cast<int>(id) : -1};
    if (most > kRoom) return findLongList(query, nearby);
    const std::uint32_t begin = waitingEnd_;
    waitingEnd_ = testBlocks(query, 0, nearby, waitingEnd_);
    waitingEnd_ = testOversized(query, 0, targets_.oversized.size, waitingEnd_);
    waiting_[waitingCount_++] = {query.id, begin};
    return true;
  }

  struct Query {
    const Simd::Box& box;
    std::uint32_t block, lane, id;
    int after;  ///< only greater indices count
  };

  /// Appends to the list what the box overlaps in nearby blocks [begin, end).
  std::uint32_t testBlocks(const Query& query, std::uint32_t begin, std::uint32_t end,
                           std::uint32_t at) {
    return tree_.filters == nullptr ? testBlocks<false>(query, begin, end, at)
                                    : testBlocks<true>(query, begin, end, at);
  }

  template <bool kFiltered>
  std::uint32_t testBlocks(const Query& query, std::uint32_t begin, std::uint32_t end,
                           std::uint32_t at) {
    const std::uint32_t* const nearby = memory_.nearby;  // writing to list_ does not change them
    const BoxBlock* const blocks = tree_.blocks;
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t index = nearby[i];
      const BoxBlock& block = blocks[index];
      std::uint32_t hits = Simd::overlaps(query.box, block.corners[0], kLanes);
      hits &= Simd::greater(block.child, query.after);
      if constexpr (kFiltered)
        hits &=
            Simd::shouldCollide(queries_.filters[query.block], query.lane, tree_.filters[index]);
      Simd::append(list_ + at, block.child, hits);
      at += static_cast<std::uint32_t>(std::popcount(hits));
    }
    return at;
  }

  /// Likewise among the oversized boxes, which may be infinite.
  std::uint32_t testOversized(const Query& query, std::size_t begin, std::size_t end,
                              std::uint32_t at) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t other = targets_.oversized[i];
      list_[at] = other;
      at += query.after < static_cast<int>(other) &&
            overlap(targets_.boxes[query.id], targets_.boxes[other]) &&
            shouldCollide(targets_.filters, query.id, other);
    }
    return at;
  }

  /// A list that may be longer than the room is counted first, then written piece by piece.
  bool findLongList(const Query& query, std::uint32_t nearby) {
    std::uint64_t size = 0, start = 0;
    const auto count = [&](std::uint32_t found) { size += found; };
    forPieces(query, nearby, count);
    if (!claim(size, start)) return false;
    lists_.byBox[query.id] = {start, static_cast<std::uint32_t>(size)};
    if (start + size > lists_.indices.size) return true;
    std::uint32_t* out = lists_.indices.data + start;
    forPieces(query, nearby, [&](std::uint32_t found) { out = std::copy_n(list_, found, out); });
    return true;
  }

  template <class Piece>
  void forPieces(const Query& query, std::uint32_t nearby, const Piece& piece) {
    for (std::uint32_t i = 0; i < nearby; i += kRoom / kLanes)
      piece(testBlocks(query, i, std::min(nearby, i + kRoom / kLanes), 0));
    for (std::size_t i = 0; i < targets_.oversized.size; i += kRoom)
      piece(testOversized(query, i, std::min<std::size_t>(targets_.oversized.size, i + kRoom), 0));
  }

  /// Copies the waiting lists to their place.
  bool keepLists() {
    std::uint64_t start = 0;
    if (!claim(waitingEnd_, start)) return false;
    for (std::uint32_t i = 0; i < waitingCount_; ++i) {
      const Waiting& list = waiting_[i];
      const std::uint32_t end = i + 1 < waitingCount_ ? waiting_[i + 1].begin : waitingEnd_;
      lists_.byBox[list.id] = {start + list.begin, end - list.begin};
    }
    if (start + waitingEnd_ <= lists_.indices.size)
      std::copy_n(list_, waitingEnd_, lists_.indices.data + start);
    waitingCount_ = waitingEnd_ = 0;
    return true;
  }

  /// Adds up the tests of all threads once there are a few. False: beyond the limit.
  bool tellTests(std::uint64_t few) {
    if (tests_ < few || count_.tests == nullptr) return true;
    const std::uint64_t tests = tests_;
    tests_ = 0;
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
  const BlockTree tree_;  ///< the targets'
  const SearchMemory memory_;
  const NeighbourLists& lists_;
  const NeighbourCount& count_;
  const bool isHalf_;         ///< only pairs of the query box and a greater index
  const bool skipsLesser_;    ///< blocks before a box's own hold lesser indices only
  std::uint32_t blocks_ = 0;  ///< in the memory of the search
  std::uint64_t tests_ = 0;   ///< of a box against a block, not yet told
  std::uint32_t waitingCount_ = 0, waitingEnd_ = 0;
  Waiting waiting_[kLanes];
  std::uint32_t list_[kRoom + kLanes];
};

bool search(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
            std::uint32_t begin, std::uint32_t end, const SearchMemory& memory,
            const NeighbourLists& lists, const NeighbourCount& count) {
  return Search(queries, targets, kind, memory, lists, count).run(begin, end);
}

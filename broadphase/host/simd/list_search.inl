// SPDX-License-Identifier: Zlib
// Finds the list of neighbours of each box by index, sixteen boxes at a time: stage 5 of steps with
// a skin, and of searches of many worlds. Included by kernels.inl.

/// Finds each pair from both sides; ListKind::half keeps it only for the smaller index. So each
/// list is in one piece, and pairs need not be sorted by their first box.
class ListSearch : BlockSearch {
 public:
  ListSearch(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
             const SearchMemory& memory, const NeighbourLists& lists, const NeighbourCount& count,
             const NeighbourFilter* filter)
      : BlockSearch(queries, targets, memory, count,
                    kind == ListKind::half && targets.tree.isInIndexOrder, kind == ListKind::full),
        targets_(targets),
        lists_(lists),
        filter_(filter),
        isHalf_(kind == ListKind::half) {}

  bool run(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t block = begin; block < end; ++block) {
      prefetchLists(block);
      const bool isWithin = forQueries(block, findShared(block),
                                       [&](std::uint32_t lane) { return findList(block, lane); });
      if (!isWithin || !keepLists() || !tellTests(kTestsToTell)) return false;
    }
    return tellTests(1);
  }

 private:
  static constexpr std::uint32_t kCapacity = 4096;

  /// Prefetches the elements of lists_.byBox for the block's boxes. They are far apart, and are
  /// written last.
  void prefetchLists(std::uint32_t block) {
    for (const std::uint32_t id : queries_.blocks[block].child)
      if (id != kNullIndex) prefetch(&lists_.byBox[id]);
  }

  struct Query {
    const Simd::Box& box;
    Lane at;
    std::uint32_t id;
    int after;  ///< only greater indices are kept
  };

  /// Writes the list of one box after those in `waiting_`. @return false if a limit was exceeded
  bool findList(std::uint32_t block, std::uint32_t lane) {
    const Simd::Box box(queries_.blocks[block], lane);
    const std::uint32_t nearby = findNearby(box, memory_.nearby);
    const std::size_t most = std::size_t{nearby} * kLanes + targets_.oversized.size();
    if (waitingEnd_ + most > kCapacity && !keepLists()) return false;
    const std::uint32_t id = queries_.blocks[block].child[lane];
    const Query query{box, {block, lane}, id, isHalf_ ? static_cast<int>(id) : -1};
    if (most > kCapacity) return findLongList(query, nearby);
    const std::uint32_t begin = waitingEnd_;
    waitingEnd_ = testBlocks(query, 0, nearby, waitingEnd_);
    waitingEnd_ = testOversized(query, 0, targets_.oversized.size(), waitingEnd_);
    if (filter_ != nullptr) waitingEnd_ = begin + keep(query.id, begin, waitingEnd_ - begin);
    waiting_[waitingCount_++] = {query.id, begin};
    return true;
  }

  std::uint32_t keep(std::uint32_t id, std::uint32_t begin, std::uint32_t size) {
    return filter_->keep(filter_->data, id, list_ + begin, size);
  }

  /// Appends the boxes in nearby blocks [begin, end) that the query overlaps. @return the new end
  std::uint32_t testBlocks(const Query& query, std::uint32_t begin, std::uint32_t end,
                           std::uint32_t at) {
    return tree_.filters != nullptr ? testByIndex<true>(query, begin, end, at)
                                    : testByIndex<false>(query, begin, end, at);
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
      if constexpr (kFiltered) hits &= shouldCollide(query.at, nearby[i]);
      Simd::append(list_ + at, block.child, hits);
      at += static_cast<std::uint32_t>(std::popcount(hits));
    }
    return at;
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
    for (std::size_t i = 0; i < targets_.oversized.size(); i += kCapacity)
      kept(testOversized(query, i, std::min(targets_.oversized.size(), i + kCapacity), 0));
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

  struct Waiting {
    std::uint32_t id, begin;
  };

  const PackedBoxes& targets_;
  const NeighbourLists& lists_;  ///< a copy here made searches up to 6 % slower (AVX-512)
  const NeighbourFilter* const filter_;
  const bool isHalf_;  ///< keeps only pairs of the query box and a greater index
  std::uint32_t waitingCount_ = 0, waitingEnd_ = 0;
  Waiting waiting_[kLanes];
  std::uint32_t list_[kCapacity + kLanes];
};

bool search(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
            std::uint32_t begin, std::uint32_t end, const SearchMemory& memory,
            NeighbourLists lists, const NeighbourCount& count, const NeighbourFilter* filter) {
  return ListSearch(queries, targets, kind, memory, lists, count, filter).run(begin, end);
}

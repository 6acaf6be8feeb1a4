// The host's stages 4 and 5 over sixteen boxes at a time, written once over a struct Simd and
// included by host/simd/*.cpp, in an unnamed namespace and for one set of instructions each.
// Simd offers
//
//   Query(block, lane)           one box of a block, for overlaps()
//   overlaps(query, first, stride)   of sixteen boxes in six arrays `stride` apart: a bit each
//   greater(indices, index)      which of sixteen indices are greater, all signed: a bit each
//   wanted(filters, lane, others)    which of sixteen filters go with one: a bit each
//   append(out, in, bits)        writes those of sixteen words whose bits are set; may write more
//   compareEight(a, b)           of eight pairs, which differ and which are less: a bit each
//   kRow                         indices that host/simd/pair_sort.inl puts into a register
//
// No pragma once: each inclusion is another set of functions.

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

inline void setEmpty(BoxBlock& block, std::uint32_t lane) {
  for (int k = 0; k < 6; ++k)
    block.corners[k][lane] =
        k < 3 ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
  block.child[lane] = kNoBox;
}

void packLeaves(const PackedBoxes& input, const std::uint32_t* ids, std::uint32_t begin,
                std::uint32_t end) {
  constexpr std::uint32_t kAhead = 32;  // boxes lie scattered: ask for them early
  const BlockTree& tree = input.tree;
  for (std::uint32_t index = begin; index < end; ++index) {
    BoxBlock& block = tree.blocks[index];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t leaf = index * kLanes + lane;
      if (leaf >= tree.boxes) {
        setEmpty(block, lane);
        continue;
      }
      if (leaf + kAhead < tree.boxes) {
        const std::uint32_t ahead = ids[leaf + kAhead];
        prefetch(&input.boxes[ahead]);
        prefetch(&input.boxes[ahead].max[2]);
        if (tree.filters != nullptr) prefetch(&input.filters[ahead]);
      }
      const std::uint32_t id = ids[leaf];
      const Aabb& box = input.boxes[id];
      for (int axis = 0; axis < 3; ++axis) {
        block.corners[axis][lane] = box.min[axis];
        // Plus zero: -0 becomes +0, from which 0 can be taken without a sign.
        block.corners[3 + axis][lane] = box.max[axis] + 0.0f;
      }
      block.child[lane] = id;
      if (tree.filters == nullptr) continue;
      tree.filters[index].group[lane] = input.filters[id].group;
      tree.filters[index].mask[lane] = input.filters[id].mask;
    }
  }
}

void packParent(const BlockTree& tree, std::uint32_t parent, std::uint32_t child,
                std::uint32_t children) {
  BoxBlock& block = tree.blocks[parent];
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if (lane >= children) {
      setEmpty(block, lane);
      continue;
    }
    float corners[6];
    bounds(tree.blocks[child + lane], corners);
    for (int k = 0; k < 6; ++k) block.corners[k][lane] = corners[k];
    block.child[lane] = child + lane;
  }
}

/// One range of leaf blocks: for each block, first the leaf blocks that meet its bounds, then for
/// each of its boxes those of them that meet the box, then the boxes in these. Pairs are met from
/// both sides and kept from the side of the lesser index: so each box's list is in one piece, and
/// no pairs need to be sorted by their first box.
class Search {
 public:
  Search(const PackedBoxes& askers, const PackedBoxes& asked, const SearchScratch& scratch,
         const NeighbourLists& lists)
      : askers_(askers.tree),
        asked_(asked),
        tree_(asked.tree),
        scratch_(scratch),
        lists_(lists),
        amongThemselves_(&askers == &asked) {}

  bool run(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t block = begin; block < end; ++block) {
      const std::uint32_t boxes = std::min(kLanes, askers_.boxes - block * kLanes);
      for (std::uint32_t lane = 0; lane < boxes; ++lane)  // they are written last, and far apart
        prefetch(&lists_.byBox[askers_.blocks[block].child[lane]]);
      findBlocks(block);
      for (std::uint32_t lane = 0; lane < boxes; ++lane)
        if (!findList(block, lane)) return false;
      if (!keepLists()) return false;
    }
    return true;
  }

 private:
  static constexpr std::uint32_t kRoom = 4096;

  /// The leaf blocks that meet the bounds of the askers' leaf block `block`, into the scratch
  /// arrays.
  void findBlocks(std::uint32_t block) {
    // The block's bounds are a lane of its parent, which lies behind the leaf blocks.
    const Simd::Query around(askers_.blocks[askers_.leafBlocks + block / kLanes], block % kLanes);
    std::uint32_t stack[7 * kLanes];  // at most seven levels for 2^30 boxes
    std::uint32_t depth = 0;
    if (tree_.boxes > 0) stack[depth++] = tree_.root;
    blocks_ = 0;
    while (depth > 0) {
      const BoxBlock& at = tree_.blocks[stack[--depth]];
      std::uint32_t hits = Simd::overlaps(around, at.corners[0], kLanes);
      if (at.child[0] >= tree_.leafBlocks) {
        for (; hits != 0; hits &= hits - 1) stack[depth++] = at.child[std::countr_zero(hits)];
        continue;
      }
      for (std::size_t k = 0; k < 6; ++k)
        Simd::append(scratch_.corners + k * scratch_.stride + blocks_, at.corners[k], hits);
      Simd::append(scratch_.blocks + blocks_, at.child, hits);
      blocks_ += static_cast<std::uint32_t>(std::popcount(hits));
      if (!amongThemselves_) prefetchBlocks(at.child, hits);
    }
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)  // the last sixteen may be fewer
      scratch_.corners[blocks_ + lane] = std::numeric_limits<float>::infinity();
  }

  /// Only of blocks that are not those of the askers, which are still in the cache.
  void prefetchBlocks(const std::uint32_t* indices, std::uint32_t hits) {
    for (; hits != 0; hits &= hits - 1) {
      const auto* block =
          reinterpret_cast<const char*>(&tree_.blocks[indices[std::countr_zero(hits)]]);
      for (std::size_t at = 0; at < sizeof(BoxBlock); at += 64) prefetch(block + at);
    }
  }

  /// The list of one box, behind those that wait in `waiting_`. False: beyond the limit.
  bool findList(std::uint32_t block, std::uint32_t lane) {
    const Simd::Query query(askers_.blocks[block], lane);
    const SearchScratch scratch = scratch_;
    const std::uint32_t blocks = blocks_;  // writing to the scratch arrays does not change it
    std::uint32_t nearby = 0;
    for (std::uint32_t i = 0; i < blocks; i += kLanes) {
      const std::uint32_t hits = Simd::overlaps(query, scratch.corners + i, scratch.stride);
      Simd::append(scratch.nearby + nearby, scratch.blocks + i, hits);
      nearby += static_cast<std::uint32_t>(std::popcount(hits));
    }
    const std::size_t most = std::size_t{nearby} * kLanes + asked_.side.size;
    if (waitingEnd_ + most > kRoom && !keepLists()) return false;
    const std::uint32_t id = askers_.blocks[block].child[lane];
    const Asker asker{query, block, lane, id, amongThemselves_ ? static_cast<int>(id) : -1};
    if (most > kRoom) return findLongList(asker, nearby);
    const std::uint32_t begin = waitingEnd_;
    waitingEnd_ = meetBlocks(asker, 0, nearby, waitingEnd_);
    waitingEnd_ = meetSide(asker, 0, asked_.side.size, waitingEnd_);
    waiting_[waitingCount_++] = {asker.id, begin};
    return true;
  }

  struct Asker {
    const Simd::Query& query;
    std::uint32_t block, lane, id;
    int after;  ///< only greater indices count
  };

  /// Appends to the list what the box meets in nearby blocks [begin, end).
  std::uint32_t meetBlocks(const Asker& asker, std::uint32_t begin, std::uint32_t end,
                           std::uint32_t at) {
    return tree_.filters == nullptr ? meetBlocks<false>(asker, begin, end, at)
                                    : meetBlocks<true>(asker, begin, end, at);
  }

  template <bool kFiltered>
  std::uint32_t meetBlocks(const Asker& asker, std::uint32_t begin, std::uint32_t end,
                           std::uint32_t at) {
    const std::uint32_t* const nearby = scratch_.nearby;  // writing to list_ does not change them
    const BoxBlock* const blocks = tree_.blocks;
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t index = nearby[i];
      const BoxBlock& block = blocks[index];
      std::uint32_t hits = Simd::overlaps(asker.query, block.corners[0], kLanes);
      hits &= Simd::greater(block.child, asker.after);
      if constexpr (kFiltered)
        hits &= Simd::wanted(askers_.filters[asker.block], asker.lane, tree_.filters[index]);
      Simd::append(list_ + at, block.child, hits);
      at += static_cast<std::uint32_t>(std::popcount(hits));
    }
    return at;
  }

  /// Likewise in the side list, whose boxes may be infinite.
  std::uint32_t meetSide(const Asker& asker, std::size_t begin, std::size_t end, std::uint32_t at) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t other = asked_.side[i];
      list_[at] = other;
      at += asker.after < static_cast<int>(other) &&
            overlap(asked_.boxes[asker.id], asked_.boxes[other]) &&
            wanted(asked_.filters, asker.id, other);
    }
    return at;
  }

  /// A list that may be longer than the room: counted first, then written piece by piece.
  bool findLongList(const Asker& asker, std::uint32_t nearby) {
    std::uint64_t size = 0, start = 0;
    const auto count = [&](std::uint32_t found) { size += found; };
    forPieces(asker, nearby, count);
    if (!claim(size, start)) return false;
    lists_.byBox[asker.id] = {start, static_cast<std::uint32_t>(size)};
    if (start + size > lists_.room.size) return true;
    std::uint32_t* out = lists_.room.data + start;
    forPieces(asker, nearby, [&](std::uint32_t found) { out = std::copy_n(list_, found, out); });
    return true;
  }

  template <class Piece>
  void forPieces(const Asker& asker, std::uint32_t nearby, const Piece& piece) {
    for (std::uint32_t i = 0; i < nearby; i += kRoom / kLanes)
      piece(meetBlocks(asker, i, std::min(nearby, i + kRoom / kLanes), 0));
    for (std::size_t i = 0; i < asked_.side.size; i += kRoom)
      piece(meetSide(asker, i, std::min<std::size_t>(asked_.side.size, i + kRoom), 0));
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
    if (start + waitingEnd_ <= lists_.room.size)
      std::copy_n(list_, waitingEnd_, lists_.room.data + start);
    waitingCount_ = waitingEnd_ = 0;
    return true;
  }

  bool claim(std::uint64_t size, std::uint64_t& start) {
    start = lists_.found->fetch_add(size, std::memory_order_relaxed);
    return start + size <= lists_.limit;
  }

  struct Waiting {
    std::uint32_t id, begin;
  };

  const BlockTree askers_;
  const PackedBoxes& asked_;
  const BlockTree tree_;  ///< of the asked
  const SearchScratch scratch_;
  const NeighbourLists& lists_;
  const bool amongThemselves_;
  std::uint32_t blocks_ = 0;  ///< in the scratch arrays
  std::uint32_t waitingCount_ = 0, waitingEnd_ = 0;
  Waiting waiting_[kLanes];
  std::uint32_t list_[kRoom + kLanes];
};

bool search(const PackedBoxes& askers, const PackedBoxes& asked, std::uint32_t begin,
            std::uint32_t end, const SearchScratch& scratch, const NeighbourLists& lists) {
  return Search(askers, asked, scratch, lists).run(begin, end);
}

constexpr HostKernels kKernels{Simd::kName,
                               measure,
                               assignKeys<std::uint32_t>,
                               assignKeys<std::uint64_t>,
                               packLeaves,
                               packParent,
                               search,
                               sortLists,
                               mergeDelta};

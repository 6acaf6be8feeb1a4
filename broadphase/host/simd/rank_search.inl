// SPDX-License-Identifier: Zlib
// Finds the pairs of all boxes by rank, sixteen boxes at a time, and compares them with those of
// the last step: stages 5 and 7 of plain steps. Included by kernels.inl.

/// The boxes of a query block as 16-bit integers, each in registers of its own.
template <class Set, bool = Set::kUsesShorts>
struct ShortQueries {
  void prepare(const ShortBlock& block) {
    ShortBlock opposite;
    for (int k = 0; k < 6; ++k)
      for (std::uint32_t lane = 0; lane < kLanes; ++lane)
        opposite.corners[k][lane] = static_cast<std::int16_t>(-block.corners[(k + 3) % 6][lane]);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) boxes[lane].set(opposite, lane);
  }
  ShortHits test(std::uint32_t lane, const ShortBlock& block) const {
    return Set::overlaps(boxes[lane], block);
  }
  typename Set::ShortBox boxes[kLanes];
};
template <class Set>
struct ShortQueries<Set, false> {
  void prepare(const ShortBlock& /*block*/) {}
  ShortHits test(std::uint32_t /*lane*/, const ShortBlock& /*block*/) const { return {}; }
};

/// Finds the hits of each box (ranked_hits.h) in its own block and later ones, in ascending order.
/// So each pair is found once, and hits are sorted. Tests no filters for a block if all of its
/// boxes should collide with all boxes around it.
class RankSearch : BlockSearch {
 public:
  RankSearch(const PackedBoxes& boxes, const SearchMemory& memory, const RankLists& lists,
             const NeighbourCount& count)
      : BlockSearch(boxes, boxes, memory, count, true, false), lists_(lists) {}

  bool run(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t block = begin; block < end; ++block)
      if (!findHits(block) || !tellTests(kTestsToTell)) return false;
    return tellTests(1);
  }

 private:
  static constexpr std::uint32_t kMaxTests = 256;   ///< in one loop
  static constexpr std::uint32_t kCapacity = 4096;  ///< hits of a block
  static_assert(kCapacity >= kMaxShared * kLanes);

  /// Writes the hits of all boxes of a block. @return false if a limit was exceeded
  bool findHits(std::uint32_t block) {
    if (usesShorts()) shortQueries_.prepare(tree_.shorts->blocks[block]);
    mayMismatch_ = false;
    const bool areShared = findShared(block);
    std::uint32_t size = 0;
    bool isLong = false;  // if so, hits are only counted here, and found again below
    pairs_ = 0;
    forTests(block, areShared, [&](const std::uint32_t* others, std::uint32_t tests) {
      isLong |= size + tests > kCapacity;
      size += test(block, others, tests, hits_ + (isLong ? 0 : size));
    });
    std::uint64_t start = 0;
    if (!claim(pairs_, start)) return false;
    start = count_.hits->fetch_add(size, std::memory_order_relaxed);
    lists_.byBlock[block] = {start, size};
    if (start + size > lists_.hits.size()) return true;
    BlockHits* out = lists_.hits.data() + start;
    if (!isLong)
      std::copy_n(hits_, size, out);
    else
      forTests(block, areShared, [&](const std::uint32_t* others, std::uint32_t tests) {
        out = std::copy_n(hits_, test(block, others, tests, hits_), out);
      });
    return true;
  }

  bool usesShorts() const { return Simd::kUsesShorts && tree_.shorts != nullptr; }

  /// Calls run(others, tests) for the tests of all boxes of a block, many at a time. A loop for
  /// each box would be left at an unpredictable time, which takes as long as two tests.
  template <class Run>
  void forTests(std::uint32_t block, bool areShared, const Run& run) {
    std::uint32_t tests = 0;
    forQueries(block, areShared, [&](std::uint32_t lane) {
      std::uint32_t* const nearby = memory_.nearby + tests;
      const std::uint32_t count = findNearby(Simd::Box(queries_.blocks[block], lane), nearby);
      if (tests + count > kMaxTests) {
        run(memory_.nearby, tests);
        std::memset(lanes_, static_cast<int>(lane), kMaxTests);
        for (std::uint32_t k = 0; k < count; k += kMaxTests)
          run(nearby + k, std::min(kMaxTests, count - k));
        tests = 0;
        return true;
      }
      for (std::uint32_t k = 0; k < count; k += kLanes)
        std::memset(lanes_ + tests + k, static_cast<int>(lane), kLanes);
      tests += count;
      return true;
    });
    run(memory_.nearby, tests);
  }

  /// Tests the boxes of lanes_ against the blocks `others`. @return the number of hits
  std::uint32_t test(std::uint32_t block, const std::uint32_t* others, std::uint32_t tests,
                     BlockHits* out) {
    const auto testFloats = [&](std::uint32_t lane, std::uint32_t other) {
      return Simd::overlaps(Simd::Box(queries_.blocks[block], lane), tree_.blocks[other].corners[0],
                            kLanes);
    };
    if (!usesShorts()) return testFiltered(block, others, tests, out, testFloats);
    const ShortBlock* const shorts = tree_.shorts->blocks;
    const auto testShorts = [&](std::uint32_t lane, std::uint32_t other) {
      const ShortHits hits = shortQueries_.test(lane, shorts[other]);
      if (hits.areSure) return hits.bits;
      ++unsure_;
      return hits.bits & testFloats(lane, other);
    };
    return testFiltered(block, others, tests, out, testShorts);
  }

  template <class Test>
  std::uint32_t testFiltered(std::uint32_t block, const std::uint32_t* others, std::uint32_t tests,
                             BlockHits* out, const Test& test) {
    const auto testBoth = [&](std::uint32_t lane, std::uint32_t other) {
      return test(lane, other) & shouldCollide({block, lane}, other);
    };
    return mayMismatch_ ? testAll(block, others, tests, out, testBoth)
                        : testAll(block, others, tests, out, test);
  }

  template <class Test>
  std::uint32_t testAll(std::uint32_t block, const std::uint32_t* others, std::uint32_t tests,
                        BlockHits* out, const Test& test) {
    std::uint32_t at = 0;
    std::uint64_t pairs = 0;
    for (std::uint32_t i = 0; i < tests; ++i) {
      const std::uint32_t other = others[i], lane = lanes_[i];
      const std::uint32_t later = other == block ? ~1u << lane : ~0u;
      const std::uint32_t bits = test(lane, other) & later;
      out[at] = BlockHits::of(block, lane, other, bits);
      at += bits != 0;
      pairs += static_cast<std::uint32_t>(std::popcount(bits));
    }
    pairs_ += pairs;
    return at;
  }

  const RankLists& lists_;
  std::uint64_t pairs_ = 0;
  ShortQueries<Simd> shortQueries_;
  std::uint8_t lanes_[kMaxTests + kLanes];  ///< the boxes of the next tests
  BlockHits hits_[kCapacity];
};

bool searchByRank(const PackedBoxes& boxes, std::uint32_t begin, std::uint32_t end,
                  const SearchMemory& memory, const RankLists& lists, const NeighbourCount& count) {
  return RankSearch(boxes, memory, lists, count).run(begin, end);
}

std::uint32_t expandHits(View<const BlockHits> hits, std::uint32_t firstRank,
                         const std::uint32_t* numbers, std::uint32_t* own, std::uint32_t* other) {
  std::uint32_t pairs = 0;
  for (const BlockHits some : hits) {
    std::fill_n(own + pairs, kLanes, numbers[firstRank + some.ownRank()]);
    Simd::append(other + pairs, numbers + some.other() * kLanes, some.bits());
    pairs += static_cast<std::uint32_t>(std::popcount(some.bits()));
  }
  return pairs;
}

/// Skips up to eight equal hits, and merges the first ones that differ. No branch depends on the
/// hits: if one in five changes, most such branches would be mispredicted.
inline void stepOfHits(HitsMerge& merge) {
  const std::uint32_t differ = Simd::differEight(merge.now, merge.old);
  const int equal = std::countr_zero(differ | 1u << 8);
  merge.now += equal;
  merge.old += equal;
  const std::uint64_t now = merge.now->number, old = merge.old->number;
  const bool any = differ != 0;
  const bool isNow = any & (merge.now->key() <= merge.old->key());
  const bool isOld = any & (merge.old->key() <= merge.now->key());
  *merge.out = {{now & (0 - std::uint64_t{isNow})}, {old & (0 - std::uint64_t{isOld})}};
  merge.out += any;
  merge.now += isNow;
  merge.old += isOld;
}

/// Compares two lists with their predecessors in turns. Each step waits for the one before it, so
/// two independent steps take hardly longer than one.
void mergeHits(HitsMerge& one, HitsMerge& other) {
  HitsMerge a = one, b = other;
  const auto hasMany = [](const HitsMerge& merge) {
    return std::min(merge.nowEnd - merge.now, merge.oldEnd - merge.old) > kEights * 9;
  };
  const auto areEqualIn = [](const HitsMerge& merge) {
    return areEqual(merge.now, merge.old, Simd::differEight);
  };
  while (hasMany(a) && hasMany(b)) {
    const bool skips = areEqualIn(a) && areEqualIn(b);
    for (int k = 0; k < kEights && !skips; ++k) {
      stepOfHits(a);
      stepOfHits(b);
    }
    for (HitsMerge* merge : {&a, &b}) {
      merge->now += skips ? kEights * 8 : 0;
      merge->old += skips ? kEights * 8 : 0;
    }
  }
  mergeByEight(a, Simd::differEight, stepOfHits);
  mergeByEight(b, Simd::differEight, stepOfHits);
  one = a;
  other = b;
}

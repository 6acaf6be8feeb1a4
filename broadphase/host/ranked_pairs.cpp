// SPDX-License-Identifier: Zlib
#include "broadphase/host/ranked_pairs.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "broadphase/core/morton.h"

namespace lbvh {
namespace {
constexpr std::size_t kCopyGrain = 64;  // blocks

std::size_t bytesOf(const RankedPairs::Found& found) {
  std::size_t words = found.oversized.capacity();
  for (const auto& met : found.met) words += met.capacity();
  return found.memory.bytes() + found.ranked.starts.capacity() * sizeof(std::size_t) +
         words * sizeof(std::uint32_t);
}

/// Calls visit(pair) for each pair that contains an oversized box.
template <class Visit>
void forOversized(const RankedPairs::Found& found, const Visit& visit) {
  for (std::size_t k = 0; k < found.oversized.size(); ++k)
    for (const std::uint32_t other : found.met[k]) visit(makePair(found.oversized[k], other));
}

/// Writes pairs as lists, which are not sorted. @param forAll forAll(visit) visits each pair
template <class ForAll>
void writeAsLists(const ForAll& forAll, std::size_t boxes, NeighbourLists lists) {
  std::fill_n(lists.byBox, boxes, NeighbourList{0, 0});
  forAll([&](Pair pair) { ++lists.byBox[pair.first].size; });
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < boxes; ++i) {
    lists.byBox[i].start = start;
    start += std::exchange(lists.byBox[i].size, 0);
  }
  forAll([&](Pair pair) {
    NeighbourList& list = lists.byBox[pair.first];
    lists.indices[static_cast<std::size_t>(list.start) + list.size++] = pair.second;
  });
}

/// Pairs with the same key share one hit: their first box is the same, and their second boxes are
/// in the same block.
std::uint64_t keyOf(Pair pair) { return std::uint64_t{pair.first} << 32 | pair.second / kLanes; }

std::size_t countHits(View<const Pair> sorted) {
  std::size_t hits = sorted.empty() ? 0 : 1;
  for (std::size_t k = 1; k < sorted.size(); ++k) hits += keyOf(sorted[k]) != keyOf(sorted[k - 1]);
  return hits;
}

/// Turns sorted pairs of ranks into hits, without branches that depend on the pairs.
/// @param hits memory for countHits(sorted) hits
/// @param starts one for each block, and one more
void gather(View<const Pair> sorted, View<BlockHits> hits, std::vector<std::size_t>& starts) {
  std::fill(starts.begin(), starts.end(), std::size_t{0});
  std::size_t end = 0;
  std::uint64_t key = ~std::uint64_t{0};
  BlockHits last{};
  for (const Pair pair : sorted) {
    const std::uint32_t block = pair.first / kLanes, other = pair.second / kLanes;
    const bool isOther = keyOf(pair) != key;
    key = keyOf(pair);
    const std::uint32_t bit = 1u << pair.second % kLanes;
    last.number &= std::uint64_t{isOther} - 1;
    last.number |= BlockHits::of(block, pair.first % kLanes, other, bit).number;
    end += isOther;
    hits[end - 1] = last;
    starts[block + 1] = end;
  }
  for (std::size_t block = 1; block < starts.size(); ++block)
    starts[block] = std::max(starts[block], starts[block - 1]);
}

/// Finds the boxes that an oversized box overlaps. A pair of two oversized boxes is listed only for
/// the box with the smaller index.
void meetAll(const PackedBoxes& packed, std::uint32_t id, std::vector<std::uint32_t>& met) {
  const View<const Aabb> boxes = packed.boxes;
  const Aabb box = boxes[id];
  const auto isMine = [&](std::uint32_t other) {
    return other > id || classify(boxes[other]) != BoxClass::oversized;
  };
  met.clear();
  for (std::uint32_t other = 0; other < boxes.size(); ++other)
    if (overlap(box, boxes[other]) && other != id && isMine(other) &&
        shouldCollide(packed.filters, id, other))
      met.push_back(other);
}

}  // namespace

std::size_t RankedPairs::memoryBytes() const {
  return bytesOf(last_) + bytesOf(next_) + delta_.memoryBytes() + sort_.memoryBytes() +
         changes_.capacity() * sizeof(std::uint64_t) + newRanks_.bytes() + numbers_.bytes();
}

void RankedPairs::release() {
  areKnown_ = false;
  last_ = Found();
  next_ = Found();
  changes_ = {};
}

void RankedPairs::keep() {
  std::swap(last_, next_);
  areKnown_ = true;
}

bool RankedPairs::haveSameOversized(const PackedBoxes& packed) const {
  const View<const std::uint32_t> now = packed.oversized;
  return now.size() == last_.oversized.size() &&
         std::is_permutation(now.begin(), now.end(), last_.oversized.begin());
}

void RankedPairs::renumber(View<const std::uint32_t> before, View<const std::uint32_t> after,
                           NeighbourList* byRank, Scratch& spare) {
  const std::size_t n = after.size(), pairs = last_.rankedPairs;
  next_.ranked.starts.resize((n + kLanes - 1) / kLanes + 1);
  const View<std::uint32_t> newRanks = newRanks_.ensure(n);
  for (std::uint32_t rank = 0; rank < n; ++rank) newRanks[after[rank]] = rank;
  const View<std::uint32_t> numbers = wholeBlocks(before.size());
  for (std::size_t rank = 0; rank < before.size(); ++rank) numbers[rank] = newRanks[before[rank]];
  spare.reset(scratchBytes<std::uint32_t>(pairs) + scratchBytes<Pair>(pairs));
  const NeighbourLists lists{spare.lend<std::uint32_t>("neighbours", pairs), byRank};
  const View<Pair> sorted = spare.lend<Pair>("pairs by rank", pairs);
  writeAsLists([&](const auto& visit) { forRanked(last_.ranked, numbers, visit); }, n, lists);
  sort_.writePairs(lists, n, sorted);
  const std::size_t hits = countHits(sorted);
  next_.memory.reset(scratchBytes<BlockHits>(hits));
  const View<BlockHits> gathered = next_.memory.lend<BlockHits>("hits", hits);
  gather(sorted, gathered, next_.ranked.starts);
  next_.ranked.hits = gathered;
  std::swap(last_.memory, next_.memory);
  std::swap(last_.ranked, next_.ranked);
}

/// Memory for one number per rank. The empty lanes of the last block get kNullIndex.
View<std::uint32_t> RankedPairs::wholeBlocks(std::size_t ranks) {
  const View<std::uint32_t> numbers = numbers_.ensure(ranks + kLanes);
  std::fill(numbers.begin() + ranks, numbers.end(), kNullIndex);
  return numbers;
}

/// Calls visit(pair) for each pair, with the numbers of the two ranks instead of the ranks.
template <class Visit>
void RankedPairs::forRanked(const RankedHits& ranked, View<const std::uint32_t> numbers,
                            const Visit& visit) const {
  constexpr std::size_t kMost = 128;  // hits
  std::uint32_t own[kMost * kLanes], other[kMost * kLanes];
  for (std::size_t group = 0; group < ranked.blocks(); group += BlockHits::kGroup) {
    const std::size_t end = ranked.startOf(group + BlockHits::kGroup);
    for (std::size_t k = ranked.startOf(group); k < end; k += kMost) {
      const View<const BlockHits> some{ranked.hits.data() + k, std::min(kMost, end - k)};
      const std::uint32_t pairs = kernels_.expandHits(
          some, static_cast<std::uint32_t>(group) * kLanes, numbers.data(), own, other);
      for (std::uint32_t i = 0; i < pairs; ++i) visit(makePair(own[i], other[i]));
    }
  }
}

std::size_t RankedPairs::meetOversized(const PackedBoxes& packed) {
  next_.boxes = packed.boxes.size();
  next_.oversized.assign(packed.oversized.begin(), packed.oversized.end());
  std::sort(next_.oversized.begin(), next_.oversized.end());
  next_.met.resize(next_.oversized.size());
  tasks_.forRanges(next_.oversized.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) meetAll(packed, next_.oversized[k], next_.met[k]);
  });
  next_.pairs = 0;
  for (const auto& met : next_.met) next_.pairs += met.size();
  return next_.pairs;
}

void RankedPairs::join(const RankLists& lists, std::size_t blocks, std::size_t pairs) {
  std::vector<std::size_t>& starts = next_.ranked.starts;
  starts.resize(blocks + 1);
  std::size_t start = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    starts[block] = start;
    start += lists.byBlock[block].size;
  }
  starts[blocks] = start;
  next_.rankedPairs = pairs;
  next_.pairs += pairs;
  next_.ranked.hits = {lists.hits.data(), start};
  if (tasks_.threads() == 1) return;
  next_.memory.reset(scratchBytes<BlockHits>(start));
  const View<BlockHits> hits = next_.memory.lend<BlockHits>("hits", start);
  tasks_.forRanges(blocks, kCopyGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t block = begin; block < end; ++block)
      std::copy_n(lists.hits.data() + lists.byBlock[block].start, lists.byBlock[block].size,
                  hits.data() + starts[block]);
  });
  next_.ranked.hits = hits;
}

void RankedPairs::compare(View<const std::uint32_t> ids, View<const std::uint8_t> removedObjects,
                          Scratch& memory) {
  words_ = {static_cast<int>(std::bit_width(ids.size()))};
  delta_.find({last_.ranked, next_.ranked, ids, removedObjects, words_}, memory, changes_);
  for (std::size_t k = 0; k < next_.oversized.size(); ++k) compareOversized(k, removedObjects);
}

void RankedPairs::compareOversized(std::size_t k, View<const std::uint8_t> removedObjects) {
  const auto pairOf = [id = next_.oversized[k]](std::uint32_t other) {
    return makePair(id, other);
  };
  const auto counted = [&](std::uint32_t other) {
    return !involvesRemoved(pairOf(other), removedObjects);
  };
  const auto added = [&](std::uint32_t other) {
    changes_.push_back(words_.change(pairOf(other), true));
  };
  const auto gone = [&](std::uint32_t other) {
    if (counted(other)) changes_.push_back(words_.change(pairOf(other), false));
  };
  auto before = last_.met[k].begin(), after = next_.met[k].begin();
  const auto beforeEnd = last_.met[k].end(), afterEnd = next_.met[k].end();
  while (before != beforeEnd && after != afterEnd) {
    if (*before < *after) {
      gone(*before++);
    } else if (*after < *before) {
      added(*after++);
    } else {
      if (!counted(*before++)) added(*after);
      ++after;
    }
  }
  std::for_each(before, beforeEnd, gone);
  std::for_each(after, afterEnd, added);
}

void RankedPairs::writeLists(const Found& found, View<const std::uint32_t> ids,
                             NeighbourLists lists) {
  const View<std::uint32_t> numbers = wholeBlocks(ids.size());
  std::copy(ids.begin(), ids.end(), numbers.begin());
  const auto forAll = [&](const auto& visit) {
    forRanked(found.ranked, numbers, visit);
    forOversized(found, visit);
  };
  writeAsLists(forAll, found.boxes, lists);
}

}  // namespace lbvh

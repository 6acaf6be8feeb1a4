// SPDX-License-Identifier: Zlib
#include "broadphase/host/ranked_pairs.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "broadphase/core/morton.h"

namespace lbvh {
namespace {

std::size_t bytesOf(const RankedPairs::Found& found) {
  std::size_t words = found.oversized.capacity();
  for (const auto& met : found.met) words += met.capacity();
  return found.memory.bytes() + words * sizeof(std::uint32_t);
}

/// Calls visit(pair) for each pair of ranks, with numberOf(rank) in place of a rank.
template <class NumberOf, class Visit>
void forRanked(View<const Pair> byRank, const NumberOf& numberOf, const Visit& visit) {
  for (const Pair pair : byRank) visit(makePair(numberOf(pair.first), numberOf(pair.second)));
}

/// Calls visit(pair) for each pair of an oversized box.
template <class Visit>
void forOversized(const RankedPairs::Found& found, const Visit& visit) {
  for (std::size_t k = 0; k < found.oversized.size(); ++k)
    for (const std::uint32_t other : found.met[k]) visit(makePair(found.oversized[k], other));
}

/// Writes pairs as lists, which are not sorted. @param forAll calls its argument for each pair
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

/// Finds the boxes that an oversized box overlaps. A pair of two oversized boxes is listed at the
/// smaller index only.
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
  return bytesOf(last_) + bytesOf(next_) + sort_.memoryBytes() + delta_.memoryBytes() +
         changes_.capacity() * sizeof(std::uint64_t) + removedRanks_.capacity() + newRanks_.bytes();
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
                           NeighbourLists lists) {
  const std::size_t pairs = last_.byRank.size();
  next_.memory.reset(scratchBytes<Pair>(pairs));
  const View<Pair> renumbered = next_.memory.lend<Pair>("pairs by rank", pairs);
  const View<std::uint32_t> newRanks = newRanks_.ensure(after.size());
  for (std::uint32_t rank = 0; rank < after.size(); ++rank) newRanks[after[rank]] = rank;
  const auto newRank = [&](std::uint32_t rank) { return newRanks[before[rank]]; };
  writeAsLists([&](const auto& visit) { forRanked(last_.byRank, newRank, visit); }, after.size(),
               lists);
  sort_.writePairs(lists, after.size(), renumbered);
  std::swap(last_.memory, next_.memory);
  last_.byRank = renumbered;
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

void RankedPairs::join(const NeighbourLists& lists, std::size_t ranks) {
  const std::size_t pairs = lists.indices.size();
  next_.memory.reset(scratchBytes<Pair>(pairs));
  next_.byRank = next_.memory.lend<Pair>("pairs by rank", pairs);
  next_.pairs += pairs;
  sort_.joinLists(lists, ranks, next_.byRank);
}

void RankedPairs::compare(View<const std::uint32_t> ids, View<const std::uint8_t> removedObjects,
                          Scratch& memory) {
  memory.reset(scratchBytes<Pair>(next_.byRank.size()) + scratchBytes<Pair>(last_.byRank.size()));
  const View<Pair> added = memory.lend<Pair>("added", next_.byRank.size());
  const View<Pair> removed = memory.lend<Pair>("removed", last_.byRank.size());
  const auto found =
      delta_.compare(tasks_, last_.byRank, next_.byRank, removedRanks(ids, removedObjects),
                     added.data(), removed.data());
  words_ = {static_cast<int>(std::bit_width(ids.size()))};
  changes_.clear();
  if (const std::size_t count = found.added.size() + found.removed.size();
      count > changes_.capacity())
    changes_.reserve(count + count / 2);
  const auto note = [&](View<const Pair> pairs, bool areAdded) {
    for (const Pair pair : pairs)
      changes_.push_back(words_.change(makePair(ids[pair.first], ids[pair.second]), areAdded));
  };
  note(found.added, true);
  note(found.removed, false);
  for (std::size_t k = 0; k < next_.oversized.size(); ++k) compareOversized(k, removedObjects);
}

View<const std::uint8_t> RankedPairs::removedRanks(View<const std::uint32_t> ids,
                                                   View<const std::uint8_t> removedObjects) {
  if (removedObjects.empty()) return {};
  removedRanks_.resize(ids.size());
  for (std::size_t rank = 0; rank < ids.size(); ++rank)
    removedRanks_[rank] = ids[rank] < removedObjects.size() && removedObjects[ids[rank]] != 0;
  return {removedRanks_.data(), removedRanks_.size()};
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
  const auto idOf = [&](std::uint32_t rank) { return ids[rank]; };
  const auto forAll = [&](const auto& visit) {
    forRanked(found.byRank, idOf, visit);
    forOversized(found, visit);
  };
  writeAsLists(forAll, found.boxes, lists);
}

}  // namespace lbvh

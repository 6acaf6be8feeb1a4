// SPDX-License-Identifier: Zlib
#include "broadphase/host/compare_left.h"

#include <algorithm>
#include <utility>

#include "broadphase/prefetch.h"

namespace lbvh {
namespace {

constexpr std::size_t kGrain = 128;  // boxes
constexpr std::uint8_t kWasIn = 1, kOverlapped = 2;
constexpr std::uint32_t kOverlaps = CandidateRows::kOverlaps, kIndex = CandidateRows::kIndex;

/// One thread's share of a comparison.
struct Comparison {
  const BoxChanges& changes;
  const CandidateRows& rows;
  const NeighbourLists& lists;
  PairWords words;
  LeftComparison::Part& part;

  View<std::uint32_t> found(std::uint32_t i) const {
    const NeighbourList& list = lists.byBox[i];
    return {lists.indices.data + list.start, list.size};
  }

  /// A box overlaps itself, which does not count.
  void takeItself(std::uint32_t i) const {
    const View<std::uint32_t> ids = found(i);
    std::uint32_t* const end = std::remove(ids.begin(), ids.end(), i);
    lists.byBox[i].size = static_cast<std::uint32_t>(end - ids.begin());
  }

  void compare(std::uint32_t i) const {
    for (const std::uint32_t entry : rows.all(i))
      part.marks[entry & kIndex] = (entry & kOverlaps) != 0 ? kWasIn | kOverlapped : kWasIn;
    takeItself(i);
    part.entries += rows.all(i).size + found(i).size;
    for (std::uint32_t& entry : found(i)) entry = compareFound(i, entry);
    for (const std::uint32_t entry : rows.all(i))
      if (std::exchange(part.marks[entry & kIndex], 0) != 0) lose(i, entry);
  }

  /// @return the entry of i's row
  std::uint32_t compareFound(std::uint32_t i, std::uint32_t id) const {
    const std::uint8_t marks = std::exchange(part.marks[id], 0);
    const bool isOld = marks != 0, overlapped = (marks & kOverlapped) != 0;
    const bool is = overlap(changes.boxes[i], changes.boxes[id]);
    const bool was = wasPair(i, id, overlapped);
    if (is != was && isMine(i, id)) note(is, i, id);
    if (hasRow(id) && !isOld) edit(RowEdit::insert, id, i, is);
    if (hasRow(id) && isOld && is != overlapped) edit(RowEdit::set, id, i, is);
    return id | (is ? kOverlaps : 0) | (rows.isHub(id) ? CandidateRows::kIsHub : 0);
  }

  void lose(std::uint32_t i, std::uint32_t entry) const {
    const std::uint32_t id = entry & kIndex;
    if (wasPair(i, id, (entry & kOverlaps) != 0) && isMine(i, id)) note(false, i, id);
    if (hasRow(id)) edit(RowEdit::erase, id, i, false);
  }

  /// Pairs of removed objects have ended without being a change.
  bool wasPair(std::uint32_t i, std::uint32_t id, bool overlapped) const {
    const bool hasEnded = overlapped && involvesRemoved({i, id}, changes.removedObjects);
    part.ended += hasEnded && isMine(i, id);
    return overlapped && !hasEnded;
  }

  /// If both have left, only one of them notes how their pair changes.
  bool isMine(std::uint32_t i, std::uint32_t id) const {
    return rows.isHub(id) || i < id || !changes.hasLeft(id);
  }
  bool hasRow(std::uint32_t id) const { return !rows.isHub(id) && !changes.hasLeft(id); }

  void note(bool isAdded, std::uint32_t i, std::uint32_t id) const {
    part.changes.push_back(words.change(makePair(i, id), isAdded));
  }
  void edit(RowEdit::Kind kind, std::uint32_t row, std::uint32_t i, bool is) const {
    part.edits.push_back({kind, row, i | (is ? kOverlaps : 0)});
  }

  void prefetchBox(std::uint32_t id) const {
    prefetchAll(changes.boxes[id]);
    prefetch(&part.marks[id]);
    rows.prefetchRow(id);
  }
};

}  // namespace

void LeftComparison::compare(HostTasks& tasks, const BoxChanges& changes, const CandidateRows& rows,
                             const NeighbourLists& lists, PairWords words) {
  const View<const std::uint32_t> ids = changes.leftIds;
  const bool prefetches = changes.boxes.size > kBoxesInCache;
  used_ = tasks.parts(ids.size, kGrain);
  parts_.resize(std::max(parts_.size(), used_));
  tasks.forParts(ids.size, used_, [&](std::size_t k, std::size_t begin, std::size_t end) {
    Part& part = parts_[k];
    part.changes.clear();
    part.edits.clear();
    part.ended = part.entries = 0;
    part.marks.resize(changes.boxes.size);
    const Comparison all{changes, rows, lists, words, part};
    const std::uint32_t* const own = ids.data + begin;
    forPrefetched(
        prefetches, end - begin, [&](std::size_t at) { all.compare(own[at]); },
        [&](std::size_t at) {
          rows.prefetchRow(own[at]);
          prefetch(&lists.byBox[own[at]]);
        },
        [&](std::size_t at) {
          rows.prefetchEntries(own[at]);
          prefetch(all.found(own[at]).data);
          prefetchAll(changes.boxes[own[at]]);
        },
        [&](std::size_t at) {
          for (const std::uint32_t entry : rows.all(own[at])) all.prefetchBox(entry & kIndex);
          for (const std::uint32_t id : all.found(own[at])) all.prefetchBox(id);
        });
  });
}

std::size_t LeftComparison::memoryBytes() const {
  std::size_t bytes = 0;
  for (const Part& part : parts_)
    bytes += part.changes.capacity() * sizeof(std::uint64_t) +
             part.edits.capacity() * sizeof(RowEdit) + part.marks.capacity();
  return bytes;
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
#include "broadphase/host/verlet/compare_escaped.h"

#include <algorithm>
#include <utility>

#include "broadphase/core/prefetch.h"

namespace lbvh {
namespace {

constexpr std::size_t kGrain = 128;  // boxes
constexpr std::uint8_t kWasIn = 1, kOverlapped = 2;
constexpr std::uint32_t kOverlaps = CandidateRows::kOverlaps, kIndex = CandidateRows::kIndex;

/// One thread's share of a comparison.
struct Comparison {
  const BoxChanges& changes;
  const CandidateRows& rows;
  const View<const Hub> hubs;
  const NeighbourLists lists;
  PairWords words;
  EscapeComparison::Part& part;

  View<std::uint32_t> found(std::uint32_t i) const {
    const NeighbourList& list = lists.byBox[i];
    return {lists.indices.data() + list.start, list.size};
  }

  /// Removes the box from its own list. The search finds it because it overlaps itself.
  void takeItself(std::uint32_t i) const {
    const View<std::uint32_t> ids = found(i);
    std::uint32_t* const end = std::remove(ids.begin(), ids.end(), i);
    lists.byBox[i].size = static_cast<std::uint32_t>(end - ids.begin());
  }

  void compare(std::uint32_t i) const {
    takeItself(i);
    if (rows.isHub(i)) compareHub(findHub(hubs, i));
    for (const std::uint32_t entry : rows.all(i))
      part.marks[entry & kIndex] = (entry & kOverlaps) != 0 ? kWasIn | kOverlapped : kWasIn;
    part.entries += rows.all(i).size() + found(i).size();
    for (std::uint32_t& entry : found(i)) entry = compareFound(i, entry);
    for (const std::uint32_t entry : rows.all(i))
      if (std::exchange(part.marks[entry & kIndex], 0) != 0) lose(i, entry);
  }

  /// Compares a hub with its candidates, using the candidates' rows. Then removes all boxes but
  /// hubs from the hub's list.
  void compareHub(const Hub& hub) const {
    const View<std::uint32_t> ids = found(hub.id);
    const auto compareRows = [&](View<const std::uint32_t> others, bool isIn) {
      for (const std::uint32_t id : others)
        if (!rows.isHub(id) && std::exchange(part.marks[id], kWasIn) == 0)
          compareRow(id, hub.id, isIn);
    };
    const View<const std::uint32_t> former{hub.former.data(), hub.former.size()};
    compareRows({ids.data(), ids.size()}, true);
    compareRows(former, false);
    for (const std::uint32_t id : ids) part.marks[id] = 0;
    for (const std::uint32_t id : former) part.marks[id] = 0;
    std::uint32_t* const end =
        std::remove_if(ids.begin(), ids.end(), [&](std::uint32_t id) { return !rows.isHub(id); });
    lists.byBox[hub.id].size = static_cast<std::uint32_t>(end - ids.begin());
  }

  /// Compares a hub with one candidate.
  /// @param isIn whether the hub belongs in the candidate's row
  void compareRow(std::uint32_t id, std::uint32_t hub, bool isIn) const {
    if (changes.hasEscaped(id)) return;  // compare(id) compares that row
    const View<const std::uint32_t> own = rows.own(id);
    const auto* const entry = std::find_if(
        own.begin(), own.end(), [=](std::uint32_t other) { return (other & kIndex) == hub; });
    ++part.entries;
    const bool wasIn = entry != own.end(), overlapped = wasIn && (*entry & kOverlaps) != 0;
    if (!wasIn && !isIn) return;
    const bool is = isIn && overlap(changes.boxes[hub], changes.boxes[id]);
    const bool was = wasPair(hub, id, overlapped);
    if (is != was) note(is, hub, id);
    if (wasIn != isIn)
      edit(isIn ? RowEdit::insert : RowEdit::erase, id, hub, is);
    else if (is != overlapped)
      edit(RowEdit::set, id, hub, is);
  }

  /// Compares box i with a box in its new list. @return the entry for i's row
  std::uint32_t compareFound(std::uint32_t i, std::uint32_t id) const {
    const std::uint8_t marks = std::exchange(part.marks[id], 0);
    const bool isOld = marks != 0, overlapped = (marks & kOverlapped) != 0;
    const bool is = overlap(changes.boxes[i], changes.boxes[id]);
    const bool was = wasPair(i, id, overlapped);
    if (is != was && isMine(i, id)) note(is, i, id);
    if (isInRow(i, id) && !isOld) edit(RowEdit::insert, id, i, is);
    if (isInRow(i, id) && isOld && is != overlapped) edit(RowEdit::set, id, i, is);
    return id | (is ? kOverlaps : 0) | hubMark(i, id);
  }

  /// Compares box i with an entry of its previous row that is not in its new list.
  void lose(std::uint32_t i, std::uint32_t entry) const {
    const std::uint32_t id = entry & kIndex;
    if (wasPair(i, id, (entry & kOverlaps) != 0) && isMine(i, id)) note(false, i, id);
    if (isInRow(i, id)) edit(RowEdit::erase, id, i, false);
  }

  /// Whether the two boxes were a pair. Pairs of removed objects have ended, but are not reported.
  bool wasPair(std::uint32_t i, std::uint32_t id, bool overlapped) const {
    const bool hasEnded = overlapped && involvesRemoved({i, id}, changes.removedObjects);
    part.ended += hasEnded && isMine(i, id);
    return overlapped && !hasEnded;
  }

  /// Whether box i records the change of the pair. If both boxes have escaped, only one of
  /// them does.
  bool isMine(std::uint32_t i, std::uint32_t id) const {
    if (rows.isHub(i) != rows.isHub(id)) return rows.isHub(id) || !changes.hasEscaped(id);
    return i < id || !changes.hasEscaped(id);
  }
  /// Whether i belongs in the row of `id`, and compare(id) does not compare that row.
  bool isInRow(std::uint32_t i, std::uint32_t id) const {
    return (!rows.isHub(id) || rows.isHub(i)) && !changes.hasEscaped(id);
  }
  /// The hub flag of entry `id` in the row of i. Rows of hubs have no such flags.
  std::uint32_t hubMark(std::uint32_t i, std::uint32_t id) const {
    return rows.isHub(id) && !rows.isHub(i) ? CandidateRows::kIsHub : 0;
  }

  void note(bool isAdded, std::uint32_t i, std::uint32_t id) const {
    part.changes.push_back(words.change(makePair(i, id), isAdded));
  }
  void edit(RowEdit::Kind kind, std::uint32_t row, std::uint32_t i, bool is) const {
    part.edits.push_back({kind, row, i | (is ? kOverlaps : 0) | hubMark(row, i)});
  }

  void prefetchBox(std::uint32_t id) const {
    prefetchObject(changes.boxes[id]);
    prefetch(&part.marks[id]);
    rows.prefetchRow(id);
  }
};

}  // namespace

void EscapeComparison::compare(HostTasks& tasks, const BoxChanges& changes,
                               const CandidateRows& rows, View<const Hub> hubs,
                               NeighbourLists lists, PairWords words) {
  const View<const std::uint32_t> ids = changes.escapedIds;
  const bool prefetches = changes.boxes.size() > kBoxesInCache;
  used_ = tasks.parts(ids.size(), kGrain);
  parts_.resize(std::max(parts_.size(), used_));
  tasks.forParts(ids.size(), used_, [&](std::size_t k, std::size_t begin, std::size_t end) {
    Part& part = parts_[k];
    part.changes.clear();
    part.edits.clear();
    part.ended = part.entries = 0;
    part.marks.resize(changes.boxes.size());
    const Comparison all{changes, rows, hubs, lists, words, part};
    const std::uint32_t* const own = ids.data() + begin;
    forPrefetched(
        prefetches, end - begin, [&](std::size_t at) { all.compare(own[at]); },
        [&](std::size_t at) {
          rows.prefetchRow(own[at]);
          prefetch(&lists.byBox[own[at]]);
        },
        [&](std::size_t at) {
          rows.prefetchEntries(own[at]);
          prefetch(all.found(own[at]).data());
          prefetchObject(changes.boxes[own[at]]);
        },
        [&](std::size_t at) {
          for (const std::uint32_t entry : rows.all(own[at])) all.prefetchBox(entry & kIndex);
          for (const std::uint32_t id : all.found(own[at])) all.prefetchBox(id);
        });
  });
}

std::size_t EscapeComparison::memoryBytes() const {
  std::size_t bytes = 0;
  for (const Part& part : parts_)
    bytes += part.changes.capacity() * sizeof(std::uint64_t) +
             part.edits.capacity() * sizeof(RowEdit) + part.marks.capacity();
  return bytes;
}

}  // namespace lbvh

#include "broadphase/host/candidates.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <utility>

#include "broadphase/prefetch.h"

namespace lbvh {
namespace {

constexpr std::size_t kRowGrain = 512;
constexpr std::size_t kWordGrain = 8;     // words of 64 boxes each
constexpr std::size_t kWordsAtOnce = 32;  // likewise
// Boxes whose rows are read one behind the other sooner than they are prefetched: measured.
constexpr std::size_t kMostInOrder = 65536;

bool hasBit(View<const std::uint64_t> bits, std::uint32_t i) {
  return (bits[i / kMaskBits] >> i % kMaskBits & 1) != 0;
}

bool isRemoved(View<const std::uint8_t> flags, std::uint32_t i) {
  return i < flags.size && flags[i] != 0;
}

}  // namespace

std::size_t Candidates::adopt(const NeighbourLists& lists, View<const Aabb> boxes) {
  areKnown_ = false;
  pairs_ = 0;
  const bool fits = layOut(lists, boxes);
  std::atomic<std::size_t> pairs{0};
  tasks_.forRanges(boxes.size, kRowGrain, [&](std::size_t begin, std::size_t end) {
    std::size_t found = 0;
    const auto list = [&](std::size_t k) {
      const NeighbourList& one = lists.byBox[begin + k];
      return View<const std::uint32_t>{lists.indices.data + one.start, one.size};
    };
    forPrefetched(
        boxes.size > kBoxesInCache, end - begin,
        [&](std::size_t k) { found += fill(static_cast<std::uint32_t>(begin + k), lists, boxes); },
        [&](std::size_t k) { prefetch(list(k).data, list(k).size * sizeof(std::uint32_t)); },
        [&](std::size_t k) {
          for (const std::uint32_t id : list(k)) prefetchAll(boxes[id]);
        });
    pairs.fetch_add(found, std::memory_order_relaxed);
  });
  pairs_ = pairs;
  areKnown_ = fits;
  return pairs_;
}

void Candidates::forget() {
  areKnown_ = false;
  pairs_ = used_ = 0;
  rows_ = std::vector<Row>();
  entries_ = HostBuffer<std::uint32_t>();
  marks_ = std::vector<std::uint8_t>();
  hubs_.clear();
  flips_ = std::vector<std::vector<std::uint64_t>>();
  changes_ = std::vector<std::uint64_t>();
  edits_ = std::vector<Edit>();
}

/// Rows in the order of their boxes, each with some room for more.
bool Candidates::layOut(const NeighbourLists& lists, View<const Aabb> boxes) {
  hubs_.clear();
  marks_.assign(boxes.size, 0);
  rows_.resize(boxes.size);
  std::size_t used = 0;
  for (std::uint32_t i = 0; i < boxes.size; ++i) {
    const std::uint32_t size = lists.byBox[i].size;
    const bool isOne = size > kHubSize;
    if (isOne && hubs_.size() < kMostHubs) {
      hubs_.push_back({i, boxes[i]});
      marks_[i] = kHubMark;
    }
    const std::uint32_t room =
        isOne ? std::uint32_t{kMostHubs} : size + size / 4 + (size > 1 ? 1 : 0);
    rows_[i] = {static_cast<std::uint32_t>(used), 0, 0, static_cast<std::uint16_t>(room), 0};
    used += room;
    if (isOne && marks_[i] == 0) used = std::numeric_limits<std::uint32_t>::max();
    if (used >= std::numeric_limits<std::uint32_t>::max() / 2) {  // rows are named by 32 bits
      rows_.clear();
      return false;
    }
  }
  entries_.ensure(used + used / 4 + 2 * kHubSize);
  used_ = used;
  return true;
}

/// Fills the row of a box, and leaves in its list what belongs to its pairs.
/// @return how many those are
std::uint32_t Candidates::fill(std::uint32_t i, const NeighbourLists& lists,
                               View<const Aabb> boxes) {
  NeighbourList& list = lists.byBox[i];
  std::uint32_t* const ids = lists.indices.data + list.start;
  const bool hasRow = !rows_.empty(), hasAll = hasRow && !isHub(i);
  std::uint32_t kept = 0;
  for (std::uint32_t first = 0; first < list.size; first += kAtOnce) {
    const std::uint32_t count = std::min(list.size - first, kAtOnce);
    const std::uint64_t overlaps = kernels_.findFlips(boxes.data, boxes[i], ids + first, count);
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint32_t id = ids[first + k];
      if (id == i) continue;
      const bool is = (overlaps >> k & 1) != 0;
      if (hasAll || (hasRow && isHub(id)))
        insert(i, id | (is ? kOverlaps : 0) | (hasAll && isHub(id) ? kIsHub : 0));
      ids[kept] = id;
      kept += is & (id > i);
    }
  }
  list.size = kept;
  return kept;
}

bool Candidates::haveHubsChanged(View<const Aabb> boxes) const {
  return std::any_of(hubs_.begin(), hubs_.end(),
                     [&](const Hub& hub) { return differ(hub.box, boxes[hub.id]); });
}

bool Candidates::compare(const BoxChanges& changes, const NeighbourLists& lists) {
  rows_.resize(changes.boxes.size, Row{0, 0, 0, 0, 0});
  marks_.resize(changes.boxes.size);
  format_ = {static_cast<int>(std::bit_width(changes.boxes.size))};
  edits_.clear();
  changes_.clear();
  ended_ = 0;
  const auto hasLeft = [&](const Hub& hub) { return hasBit(changes.left, hub.id); };
  if (std::any_of(hubs_.begin(), hubs_.end(), hasLeft)) return false;
  testChanged(changes);
  if (!compareAllLeft(changes, lists)) return false;
  for (const auto& flips : flips_) changes_.insert(changes_.end(), flips.begin(), flips.end());
  const auto added = static_cast<std::size_t>(std::count_if(
      changes_.begin(), changes_.end(), [this](std::uint64_t change) { return isAdded(change); }));
  pairsAfter_ = pairs_ + added - (changes_.size() - added) - ended_;
  return true;
}

/// The candidates of boxes that have changed, but not left. If many have, it is sooner to test
/// those of all boxes once than to look from both sides.
void Candidates::testChanged(const BoxChanges& changes) {
  const std::size_t n = changes.boxes.size, words = changes.changed.size;
  const bool testsAll = 2 * changes.changes > n;
  const bool prefetches = n > (testsAll ? kMostInOrder : kBoxesInCache);
  const std::size_t parts = tasks_.parts(words, kWordGrain);
  flips_.resize(parts);
  tasks_.forParts(words, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
    std::vector<std::uint64_t>& found = flips_[part];
    found.clear();
    const auto test = [&](std::uint32_t i) {
      testOwn(changes, i, found);
      if (!testsAll) testOthers(changes, i, found);
    };
    const auto forTested = [&](std::size_t word, std::size_t last, const auto& visit) {
      for (; word < last; ++word) {
        const std::size_t first = word * kMaskBits;
        const std::uint64_t tested = testsAll ? bitsBelow(n, first) : changes.changed[word];
        forBits(tested & ~changes.left[word], first, visit);
      }
    };
    if (!prefetches) return forTested(begin, end, test);
    std::array<std::uint32_t, kWordsAtOnce * kMaskBits> ids;
    for (; begin < end; begin += kWordsAtOnce) {
      std::size_t count = 0;
      forTested(begin, std::min(end, begin + kWordsAtOnce),
                [&](std::uint32_t i) { ids[count++] = i; });
      forRows(changes.boxes, {ids.data(), count}, test);
    }
  });
}

/// Calls visit(i) for each of the boxes, whose row and candidates it reads.
template <class Visit>
void Candidates::forRows(View<const Aabb> boxes, View<const std::uint32_t> ids,
                         const Visit& visit) const {
  forPrefetched(
      true, ids.size, [&](std::size_t k) { visit(ids[k]); },
      [&](std::size_t k) { prefetchAll(rows_[ids[k]]); },
      [&](std::size_t k) { prefetchEntries(ids[k]); },
      [&](std::size_t k) {
        prefetchAll(boxes[ids[k]]);
        for (const std::uint32_t entry : row(ids[k])) prefetchAll(boxes[entry & kIndex]);
      });
}

/// Calls visit(candidate) for those of a part of a row that have begun or ceased to overlap.
template <class Visit>
void Candidates::forFlips(View<const Aabb> boxes, std::uint32_t i, const std::uint32_t* begin,
                          const std::uint32_t* end, const Visit& visit) const {
  for (; begin < end; begin += kAtOnce) {
    const auto count = static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(end - begin, kAtOnce));
    const std::uint64_t flips = kernels_.findFlips(boxes.data, boxes[i], begin, count);
    forBits(flips, 0, [&](std::uint32_t k) { visit(begin[k]); });
  }
}

void Candidates::testOwn(const BoxChanges& changes, std::uint32_t i,
                         std::vector<std::uint64_t>& found) const {
  const Row row = rows_[i];
  const std::uint32_t* const begin = entries_.data() + row.start;
  forFlips(changes.boxes, i, begin, begin + row.own, [&](std::uint32_t candidate) {
    const std::uint32_t id = candidate & kIndex;
    if (hasBit(changes.left, id)) return;  // it is compared from there
    note((candidate & kOverlaps) == 0, i, id, found);
  });
}

/// Those that have not changed, for they do not test theirs.
void Candidates::testOthers(const BoxChanges& changes, std::uint32_t i,
                            std::vector<std::uint64_t>& found) const {
  const Row row = rows_[i];
  const std::uint32_t* const begin = entries_.data() + row.start;
  forFlips(changes.boxes, i, begin + row.own, begin + row.size, [&](std::uint32_t candidate) {
    const std::uint32_t id = candidate & kIndex;
    if (!hasBit(changes.changed, id)) note((candidate & kOverlaps) == 0, i, id, found);
  });
}

/// Of most rows all.
void Candidates::prefetchEntries(std::uint32_t i) const {
  const std::uint32_t* const begin = entries_.data() + rows_[i].start;
  prefetch(begin);
  prefetch(begin + 15);
}

bool Candidates::compareAllLeft(const BoxChanges& changes, const NeighbourLists& lists) {
  const View<const std::uint32_t> ids = changes.leftIds;
  const auto found = [&](std::size_t k) {
    const NeighbourList& list = lists.byBox[ids[k]];
    return View<std::uint32_t>{lists.indices.data + list.start, list.size};
  };
  const auto prefetchBox = [&](std::uint32_t id) {
    prefetchAll(changes.boxes[id]);
    prefetch(&marks_[id]);
    prefetchAll(rows_[id]);
  };
  bool fits = true;
  forPrefetched(
      changes.boxes.size > kBoxesInCache, ids.size,
      [&](std::size_t k) {
        const View<std::uint32_t> entries = found(k);
        std::uint32_t* const end = std::remove(entries.begin(), entries.end(), ids[k]);
        lists.byBox[ids[k]].size = static_cast<std::uint32_t>(end - entries.begin());
        fits = fits && compareLeft(changes, ids[k], found(k));
      },
      [&](std::size_t k) {
        prefetchAll(rows_[ids[k]]);
        prefetch(&lists.byBox[ids[k]]);
      },
      [&](std::size_t k) {
        prefetchEntries(ids[k]);
        prefetch(found(k).data);
      },
      [&](std::size_t k) {
        prefetchAll(changes.boxes[ids[k]]);
        for (const std::uint32_t entry : row(ids[k])) prefetchBox(entry & kIndex);
        for (const std::uint32_t id : found(k)) prefetchBox(id);
      });
  return fits;
}

/// Compares the candidates of a box that has left with those that it had.
bool Candidates::compareLeft(const BoxChanges& changes, std::uint32_t i,
                             View<std::uint32_t> entries) {
  const auto forOld = [&](auto visit) {
    for (const std::uint32_t entry : row(i)) visit(entry & kIndex, (entry & kOverlaps) != 0);
  };
  const auto wasPair = [&](std::uint32_t id, bool overlapped) {
    return overlapped && !isRemoved(changes.removedObjects, i) &&
           !isRemoved(changes.removedObjects, id);
  };
  const auto isMine = [&](std::uint32_t id) {
    return isHub(id) || i < id || !hasBit(changes.left, id);
  };
  const auto hasRow = [&](std::uint32_t id) { return !isHub(id) && !hasBit(changes.left, id); };

  forOld([&](std::uint32_t id, bool overlapped) {
    marks_[id] |= overlapped ? kOld | kOverlapped : kOld;
  });
  bool fits = makeRoom(rows_[i], entries.size);
  for (std::uint32_t& entry : entries) {
    const std::uint32_t id = entry;
    const bool isOld = (marks_[id] & kOld) != 0, overlapped = (marks_[id] & kOverlapped) != 0;
    marks_[id] &= kHubMark;
    const bool is = overlap(changes.boxes[i], changes.boxes[id]), was = wasPair(id, overlapped);
    entry = id | (is ? kOverlaps : 0) | (isHub(id) ? kIsHub : 0);
    if (isMine(id)) {
      ended_ += overlapped && !was;
      if (is != was) note(is, i, id, changes_);
    }
    if (!hasRow(id)) continue;
    const std::uint32_t back = i | (is ? kOverlaps : 0);
    if (!isOld)
      fits = fits && edit(Edit::insert, id, back);
    else if (is != overlapped)
      fits = fits && edit(Edit::set, id, back);
  }
  forOld([&](std::uint32_t id, bool overlapped) {
    if ((marks_[id] & kOld) == 0) return;
    marks_[id] &= kHubMark;
    const bool was = wasPair(id, overlapped);
    if (isMine(id)) {
      ended_ += overlapped && !was;
      if (was) note(false, i, id, changes_);
    }
    if (hasRow(id)) fits = fits && edit(Edit::erase, id, i);
  });
  return fits;
}

bool Candidates::edit(Edit::Kind kind, std::uint32_t row, std::uint32_t entry) {
  edits_.push_back({kind, row, entry});
  if (kind != Edit::insert) return true;
  Row& to = rows_[row];
  ++to.expected;
  return makeRoom(to, std::size_t{to.size} + to.expected);
}

/// Moves the row behind the others if it has not enough room.
bool Candidates::makeRoom(Row& row, std::size_t size) {
  if (size <= row.room) return true;
  const std::size_t room = size + size / 2 + 2;
  if (size > kHubSize || used_ + room > entries_.capacity()) return false;
  std::copy_n(entries_.data() + row.start, row.size, entries_.data() + used_);
  row.start = static_cast<std::uint32_t>(used_);
  row.room = static_cast<std::uint16_t>(room);
  used_ += room;
  return true;
}

void Candidates::commit(const BoxChanges& changes, const NeighbourLists& lists) {
  const auto prefetchRow = [this](std::uint32_t i) { prefetchAll(rows_[i]); };
  const bool prefetches = changes.boxes.size > kBoxesInCache;
  forPrefetched(
      prefetches, edits_.size(), [&](std::size_t k) { apply(edits_[k]); },
      [&](std::size_t k) { prefetchRow(edits_[k].row); },
      [&](std::size_t k) { prefetchEntries(edits_[k].row); });
  const View<const std::uint32_t> left = changes.leftIds;
  forPrefetched(
      prefetches, left.size,
      [&](std::size_t k) {
        const NeighbourList list = lists.byBox[left[k]];
        rows_[left[k]].size = rows_[left[k]].own = 0;
        for (std::uint32_t at = 0; at < list.size; ++at)
          insert(left[k], lists.indices[list.start + at]);
      },
      [&](std::size_t k) {
        prefetchRow(left[k]);
        prefetch(&lists.byBox[left[k]]);
      },
      [&](std::size_t k) { prefetchEntries(left[k]); });
  for (const auto& flips : flips_)
    forPrefetched(
        prefetches, flips.size(), [&](std::size_t k) { applyFlip(flips[k]); },
        [&](std::size_t k) {
          prefetchRow(pair(flips[k]).first);
          prefetchRow(pair(flips[k]).second);
        },
        [&](std::size_t k) {
          prefetchEntries(pair(flips[k]).first);
          prefetchEntries(pair(flips[k]).second);
        });
  pairs_ = pairsAfter_;
}

void Candidates::applyFlip(std::uint64_t change) {
  const Pair both = pair(change);
  const std::uint32_t mark = isAdded(change) ? kOverlaps : 0;
  if (!isHub(both.first)) apply({Edit::set, both.first, both.second | mark});
  if (!isHub(both.second)) apply({Edit::set, both.second, both.first | mark});
}

void Candidates::apply(const Edit& edit) {
  Row& row = rows_[edit.row];
  if (edit.kind == Edit::insert) {
    --row.expected;
    return insert(edit.row, edit.entry);
  }
  std::uint32_t* const at = find(edit.row, edit.entry & kIndex);
  if (edit.kind == Edit::set)
    *at = (*at & ~kOverlaps) | (edit.entry & kOverlaps);
  else
    erase(row, at);
}

void Candidates::insert(std::uint32_t i, std::uint32_t entry) {
  Row& row = rows_[i];
  std::uint32_t* const begin = entries_.data() + row.start;
  const bool isOwn = ((entry & kIndex) > i) | ((entry & kIsHub) != 0);
  begin[row.size] = begin[row.own];  // without a branch, for it would be foretold badly
  begin[isOwn ? row.own : row.size] = entry;
  row.own = static_cast<std::uint16_t>(row.own + isOwn);
  ++row.size;
}

void Candidates::erase(Row& row, std::uint32_t* at) {
  std::uint32_t* const begin = entries_.data() + row.start;
  if (at < begin + row.own) {
    *at = begin[--row.own];
    at = begin + row.own;
  }
  *at = begin[--row.size];
}

std::uint32_t* Candidates::find(std::uint32_t row, std::uint32_t id) {
  std::uint32_t* at = entries_.data() + rows_[row].start;
  while ((*at & kIndex) != id) ++at;
  return at;
}

std::size_t Candidates::roomForLists() const {
  std::size_t hubs = 0;
  if (hubs_.empty()) return used_;
  for (const Row& row : rows_) {
    const std::uint32_t* const at = entries_.data() + row.start;
    hubs += static_cast<std::size_t>(std::count_if(
        at, at + row.size, [](std::uint32_t entry) { return (entry & kIsHub) != 0; }));
  }
  return used_ + hubs + hubs_.size() * kMostHubs;
}

void Candidates::writeLists(const NeighbourLists& lists) const {
  const std::uint32_t* const entries = entries_.data();
  tasks_.forRanges(rows_.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Row row = rows_[i];
      std::uint32_t* const out = lists.indices.data + row.start;
      std::uint32_t size = 0;
      for (std::uint32_t k = 0; k < row.size; ++k) {
        const std::uint32_t entry = entries[row.start + k];
        out[size] = entry & kIndex;
        size += (entry & kOverlaps) != 0 && (entry & kIndex) > i;
      }
      lists.byBox[i] = {row.start, size};
    }
  });
  if (!hubs_.empty()) writeHubLists(lists);
}

/// A hub's own row has other hubs only. The rest of its list is what the others' rows say.
void Candidates::writeHubLists(const NeighbourLists& lists) const {
  std::vector<std::uint64_t> ends(hubs_.size());
  forHubPairs([&](std::size_t hub, std::uint32_t) { ++ends[hub]; });
  std::uint64_t start = used_;
  for (std::size_t k = 0; k < hubs_.size(); ++k) {
    NeighbourList& list = lists.byBox[hubs_[k].id];
    std::copy_n(lists.indices.data + list.start, list.size, lists.indices.data + start);
    const std::uint64_t own = list.size, size = own + std::exchange(ends[k], start + own);
    list = {start, static_cast<std::uint32_t>(size)};
    start += size;
  }
  forHubPairs([&](std::size_t hub, std::uint32_t i) { lists.indices[ends[hub]++] = i; });
}

/// Calls visit(hub, i) for each hub and each box of greater index that overlaps it and is none.
template <class Visit>
void Candidates::forHubPairs(const Visit& visit) const {
  const auto isBefore = [](const Hub& hub, std::uint32_t id) { return hub.id < id; };
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const std::uint32_t* const begin = entries_.data() + rows_[i].start;
    for (const std::uint32_t* at = begin; at != begin + rows_[i].own; ++at) {
      const std::uint32_t id = *at & kIndex;
      if ((*at & kIsHub) == 0 || (*at & kOverlaps) == 0 || id > i) continue;
      const auto hub = std::lower_bound(hubs_.begin(), hubs_.end(), id, isBefore);
      visit(static_cast<std::size_t>(hub - hubs_.begin()), i);
    }
  }
}

std::size_t Candidates::memoryBytes() const {
  std::size_t bytes = rows_.capacity() * sizeof(Row) + entries_.bytes() + marks_.capacity() +
                      hubs_.capacity() * sizeof(Hub) + changes_.capacity() * sizeof(std::uint64_t) +
                      edits_.capacity() * sizeof(Edit);
  for (const auto& flips : flips_) bytes += flips.capacity() * sizeof(std::uint64_t);
  return bytes;
}

}  // namespace lbvh

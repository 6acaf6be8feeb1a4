// SPDX-License-Identifier: Zlib
#include "broadphase/host/verlet/candidates.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <utility>

#include "broadphase/core/prefetch.h"

namespace lbvh {
namespace {

constexpr std::size_t kRowGrain = 512;
constexpr std::size_t kEditGrain = 1024;
constexpr std::size_t kWordGrain = 8;     // words of 64 boxes each
constexpr std::size_t kWordsAtOnce = 32;  // words of 64 boxes each
// Up to this many boxes, reading all rows in order is faster without prefetching (measured).
constexpr std::size_t kMaxInOrder = 65536;

}  // namespace

std::size_t Candidates::adopt(NeighbourLists lists, View<const Aabb> boxes,
                              View<const Aabb> grown) {
  areKnown_ = false;
  pairs_ = 0;
  const bool fits = layOut(lists, boxes, grown);
  std::atomic<std::size_t> pairs{0};
  tasks_.forRanges(boxes.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    std::size_t found = 0;
    const auto list = [&](std::size_t k) {
      const NeighbourList& one = lists.byBox[begin + k];
      return View<const std::uint32_t>{lists.indices.data() + one.start, one.size};
    };
    forPrefetched(
        boxes.size() > kBoxesInCache, end - begin,
        [&](std::size_t k) { found += fill(static_cast<std::uint32_t>(begin + k), lists, boxes); },
        [&](std::size_t k) { prefetch(list(k).data(), list(k).size() * sizeof(std::uint32_t)); },
        [&](std::size_t k) {
          for (const std::uint32_t id : list(k)) prefetchObject(boxes[id]);
        });
    pairs.fetch_add(found, std::memory_order_relaxed);
  });
  pairs_ = pairs;
  areKnown_ = fits;
  return pairs_;
}

void Candidates::forget() {
  areKnown_ = false;
  pairs_ = 0;
  rows_.forget();
  hubs_.clear();
  flips_ = std::vector<std::vector<std::uint64_t>>();
  escapes_ = EscapeComparison();
  changes_ = std::vector<std::uint64_t>();
}

/// The maximum number of entries of a row. Boxes with more candidates are hubs. The limit is
/// raised if many boxes are crowded together, because otherwise all of them would be hubs.
/// @return 0 if every limit leaves too many hubs
std::size_t Candidates::mostEntries(View<const NeighbourList> lists) {
  for (std::size_t most = CandidateRows::kUsualEntries; most <= CandidateRows::kMaxEntries;
       most *= 2) {
    std::size_t hubs = 0;
    for (std::size_t i = 0; i < lists.size() && hubs <= kMaxHubs; ++i) hubs += lists[i].size > most;
    if (hubs <= kMaxHubs) return most;
  }
  return 0;
}

/// Makes empty rows in the order of their boxes, each with spare capacity. Lists the hubs.
bool Candidates::layOut(const NeighbourLists& lists, View<const Aabb> boxes,
                        View<const Aabb> grown) {
  hubs_.clear();
  escapes_.reset();
  const std::size_t most = mostEntries({lists.byBox, boxes.size()});
  const auto capacityOf = [&](std::uint32_t i) -> std::size_t {
    const std::size_t size = lists.byBox[i].size;
    if (size <= most) return size + size / 4 + (size > 1 ? 1 : 0);
    hubs_.push_back({i, size, boxes[i], grown[i]});
    return kMaxHubs;
  };
  if (most == 0 || !rows_.layOut(boxes.size(), most, capacityOf)) {
    rows_.forget();
    hubs_.clear();
    return false;
  }
  for (const Hub& hub : hubs_) rows_.setHub(hub.id);
  return true;
}

/// Fills the row of a box, and reduces the box's list to the pairs with boxes of greater index.
/// @return the number of these pairs
std::uint32_t Candidates::fill(std::uint32_t i, NeighbourLists lists, View<const Aabb> boxes) {
  NeighbourList& list = lists.byBox[i];
  std::uint32_t* const ids = lists.indices.data() + list.start;
  const bool hasRow = rows_.size() != 0, hasAll = hasRow && !rows_.isHub(i);
  const bool hasHubs = hasRow && !hubs_.empty();
  CandidateRows::Filler row = hasRow ? rows_.fill(i) : CandidateRows::Filler{};
  std::uint32_t kept = 0;
  for (std::uint32_t first = 0; first < list.size; first += kAtOnce) {
    const auto count =
        static_cast<std::uint32_t>(std::min<std::size_t>(list.size - first, kAtOnce));
    const std::uint64_t overlaps = kernels_.findFlips(boxes.data(), boxes[i], ids + first, count);
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint32_t id = ids[first + k];
      if (id == i) continue;
      const bool is = (overlaps >> k & 1) != 0, isHub = hasHubs && rows_.isHub(id);
      if (hasAll || isHub) row.insert(id | (is ? kOverlaps : 0) | (hasAll && isHub ? kIsHub : 0));
      ids[kept] = id;
      kept += is & (id > i);
    }
  }
  list.size = kept;
  if (hasRow) rows_.keep(i, row);
  return kept;
}

bool Candidates::compare(const BoxChanges& changes, NeighbourLists lists) {
  rows_.resize(changes.boxes.size());
  words_ = {static_cast<int>(std::bit_width(changes.boxes.size()))};
  testChanged(changes);
  escapes_.compare(tasks_, changes, rows_, {hubs_.data(), hubs_.size()}, lists, words_);
  if (!reserveRows(changes, lists)) return false;
  changes_.clear();
  std::size_t ended = 0;
  for (const auto& flips : flips_) changes_.insert(changes_.end(), flips.begin(), flips.end());
  for (const EscapeComparison::Part& part : escapes_.parts()) {
    changes_.insert(changes_.end(), part.changes.begin(), part.changes.end());
    ended += part.ended;
  }
  const auto added = static_cast<std::size_t>(
      std::count_if(changes_.begin(), changes_.end(),
                    [this](std::uint64_t change) { return words_.isAdded(change); }));
  pairsAfter_ = pairs_ + added - (changes_.size() - added) - ended;
  return true;
}

/// Tests the candidates of boxes that have changed but not escaped. If more than half of the boxes
/// have changed, it tests the candidates of all boxes that have not escaped. Each pair is then
/// tested from one side only, which is faster.
void Candidates::testChanged(const BoxChanges& changes) {
  const std::size_t n = changes.boxes.size();
  const bool testsAll = 2 * changes.changes > n;
  const std::size_t words = testsAll ? changes.escaped.size() : changes.words.size();
  const bool prefetches = n > (testsAll ? kMaxInOrder : kBoxesInCache);
  const std::size_t parts = tasks_.parts(words, kWordGrain);
  flips_.resize(parts);
  tested_ = 0;
  tasks_.forParts(words, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
    std::vector<std::uint64_t>& found = flips_[part];
    found.clear();
    std::uint64_t candidates = 0;
    const auto test = [&](std::uint32_t i) {
      const View<const std::uint32_t> entries = testsAll ? rows_.own(i) : rows_.all(i);
      candidates += entries.size();
      testRow(changes, i, entries, found);
    };
    const auto forTested = [&](std::size_t at, std::size_t last, const auto& visit) {
      for (; at < last; ++at) {
        const std::size_t word = testsAll ? at : changes.words[at], first = word * kMaskBits;
        const std::uint64_t tested = testsAll ? ~std::uint64_t{0} : changes.changed[word];
        forBits(tested & bitsBelow(n, first) & ~changes.escaped[word], first, visit);
      }
    };
    if (!prefetches) forTested(begin, end, test);
    std::array<std::uint32_t, kWordsAtOnce * kMaskBits> ids;
    for (; prefetches && begin < end; begin += kWordsAtOnce) {
      std::size_t count = 0;
      forTested(begin, std::min(end, begin + kWordsAtOnce),
                [&](std::uint32_t i) { ids[count++] = i; });
      forRows(changes.boxes, {ids.data(), count}, test);
    }
    tested_.fetch_add(candidates, std::memory_order_relaxed);
  });
}

void Candidates::count(StepWork& work) const {
  work.tested += tested_;
  for (const EscapeComparison::Part& part : escapes_.parts()) {
    work.compared += part.entries;
    work.edited += part.edits.size();
  }
}

/// Calls visit(i) for each of the boxes, after prefetching the row and the candidates of the box.
template <class Visit>
void Candidates::forRows(View<const Aabb> boxes, View<const std::uint32_t> ids,
                         const Visit& visit) const {
  forPrefetched(
      true, ids.size(), [&](std::size_t k) { visit(ids[k]); },
      [&](std::size_t k) { rows_.prefetchRow(ids[k]); },
      [&](std::size_t k) { rows_.prefetchEntries(ids[k]); },
      [&](std::size_t k) {
        prefetchObject(boxes[ids[k]]);
        for (const std::uint32_t entry : rows_.all(ids[k])) prefetchObject(boxes[entry & kIndex]);
      });
}

/// Records which of these entries of box i's row have begun or ceased to overlap box i.
void Candidates::testRow(const BoxChanges& changes, std::uint32_t i,
                         View<const std::uint32_t> entries,
                         std::vector<std::uint64_t>& found) const {
  const std::size_t own = rows_.own(i).size();
  for (std::size_t first = 0; first < entries.size(); first += kAtOnce) {
    const std::uint32_t* const begin = entries.data() + first;
    const auto count = static_cast<std::uint32_t>(std::min(entries.size() - first, kAtOnce));
    const std::uint64_t flips =
        kernels_.findFlips(changes.boxes.data(), changes.boxes[i], begin, count);
    forBits(flips, 0, [&](std::uint32_t k) {
      const std::uint32_t id = begin[k] & kIndex;
      // EscapeComparison records the changes of escaped candidates. If an entry is not in
      // own(), and its candidate has changed, the test of the candidate's row records the change.
      if (first + k < own ? changes.hasEscaped(id) : changes.hasChanged(id)) return;
      found.push_back(words_.change(makePair(i, id), (begin[k] & kOverlaps) == 0));
    });
  }
}

/// Reserves capacity in the rows of the escaped boxes, and in the rows that get new entries.
bool Candidates::reserveRows(const BoxChanges& changes, const NeighbourLists& lists) {
  const bool prefetches = changes.boxes.size() > kBoxesInCache;
  bool fits = true;
  const View<const std::uint32_t> escaped = changes.escapedIds;
  forPrefetched(
      prefetches, escaped.size(),
      [&](std::size_t k) {
        fits = fits && rows_.reserve(escaped[k], lists.byBox[escaped[k]].size);
      },
      [&](std::size_t k) {
        rows_.prefetchRow(escaped[k]);
        prefetch(&lists.byBox[escaped[k]]);
      });
  for (const EscapeComparison::Part& part : escapes_.parts())
    forPrefetched(
        prefetches, part.edits.size(),
        [&](std::size_t k) {
          const RowEdit& edit = part.edits[k];
          if (edit.kind == RowEdit::insert) fits = fits && rows_.expect(edit.row);
        },
        [&](std::size_t k) {
          if (part.edits[k].kind == RowEdit::insert) rows_.prefetchRow(part.edits[k].row);
        });
  return fits;
}

void Candidates::commit(const BoxChanges& changes, const NeighbourLists& lists) {
  std::size_t edits = changes_.size();
  for (const EscapeComparison::Part& part : escapes_.parts()) edits += part.edits.size();
  // Each thread edits the rows of a range of boxes, so that no two threads edit the same row.
  const std::size_t n = rows_.size(), parts = tasks_.parts(edits, kEditGrain);
  tasks_.forParts(n, parts, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (const EscapeComparison::Part& part : escapes_.parts())
      applyEdits({part.edits.data(), part.edits.size()}, begin, end);
    for (const auto& flips : flips_) applyFlips({flips.data(), flips.size()}, begin, end);
  });
  tasks_.forRanges(changes.escapedIds.size(), kEditGrain, [&](std::size_t begin, std::size_t end) {
    fillEscaped({changes.escapedIds.data() + begin, end - begin}, lists);
  });
  for (Hub& hub : hubs_) {
    if (!changes.hasEscaped(hub.id)) continue;
    hub.candidates = hub.former.size();
    hub.box = changes.boxes[hub.id];
    hub.grown = changes.grown[hub.id];
  }
  pairs_ = pairsAfter_;
}

/// Applies the edits of rows [begin, end).
void Candidates::applyEdits(View<const RowEdit> edits, std::size_t begin, std::size_t end) {
  const auto isMine = [&](std::size_t k) { return edits[k].row - begin < end - begin; };
  forPrefetched(
      rows_.size() > kBoxesInCache, edits.size(),
      [&](std::size_t k) {
        if (isMine(k)) rows_.apply(edits[k]);
      },
      [&](std::size_t k) {
        if (isMine(k)) rows_.prefetchRow(edits[k].row);
      },
      [&](std::size_t k) {
        if (isMine(k)) rows_.prefetchEntries(edits[k].row);
      });
}

/// Applies the changes of pairs to rows [begin, end).
void Candidates::applyFlips(View<const std::uint64_t> flips, std::size_t begin, std::size_t end) {
  const auto forRowsOf = [&](std::size_t k, const auto& visit) {
    const Pair pair = words_.changed(flips[k]);
    const auto isMine = [&](std::uint32_t i) { return i - begin < end - begin; };
    if (isMine(pair.first)) visit(pair.first, pair.second);
    if (isMine(pair.second)) visit(pair.second, pair.first);
  };
  forPrefetched(
      rows_.size() > kBoxesInCache, flips.size(),
      [&](std::size_t k) {
        const std::uint32_t mark = words_.isAdded(flips[k]) ? kOverlaps : 0;
        forRowsOf(k, [&](std::uint32_t i, std::uint32_t id) {
          if (!rows_.isHub(i)) rows_.apply({RowEdit::set, i, id | mark});
        });
      },
      [&](std::size_t k) {
        forRowsOf(k, [&](std::uint32_t i, std::uint32_t) { rows_.prefetchRow(i); });
      },
      [&](std::size_t k) {
        forRowsOf(k, [&](std::uint32_t i, std::uint32_t) { rows_.prefetchEntries(i); });
      });
}

void Candidates::fillEscaped(View<const std::uint32_t> escaped, const NeighbourLists& lists) {
  forPrefetched(
      rows_.size() > kBoxesInCache, escaped.size(),
      [&](std::size_t k) {
        const NeighbourList list = lists.byBox[escaped[k]];
        rows_.clear(escaped[k]);
        const std::uint32_t* others = lists.indices.data() + list.start;
        for (std::uint32_t at = 0; at < list.size; ++at) rows_.insert(escaped[k], others[at]);
      },
      [&](std::size_t k) {
        rows_.prefetchRow(escaped[k]);
        prefetch(&lists.byBox[escaped[k]]);
      },
      [&](std::size_t k) { rows_.prefetchEntries(escaped[k]); });
}

std::size_t Candidates::capacityForLists() const {
  if (hubs_.empty()) return rows_.end();
  std::size_t hubs = 0;
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const View<const std::uint32_t> entries = rows_.all(i);
    hubs += static_cast<std::size_t>(std::count_if(
        entries.begin(), entries.end(), [](std::uint32_t entry) { return (entry & kIsHub) != 0; }));
  }
  return rows_.end() + hubs + hubs_.size() * kMaxHubs;
}

void Candidates::writeLists(NeighbourLists lists) const {
  tasks_.forRanges(rows_.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (auto i = static_cast<std::uint32_t>(begin); i < end; ++i) {
      std::uint32_t* const out = lists.indices.data() + rows_.start(i);
      std::uint32_t size = 0;
      for (const std::uint32_t entry : rows_.all(i)) {
        out[size] = entry & kIndex;
        size += (entry & kOverlaps) != 0 && (entry & kIndex) > i;
      }
      lists.byBox[i] = {rows_.start(i), size};
    }
  });
  if (!hubs_.empty()) writeHubLists(lists);
}

/// Completes the lists of hubs. A hub's own row has only other hubs. Its other pairs are in the
/// rows of its candidates.
void Candidates::writeHubLists(NeighbourLists lists) const {
  std::vector<std::uint64_t> ends(hubs_.size());
  forHubPairs([&](std::size_t hub, std::uint32_t) { ++ends[hub]; });
  std::uint64_t start = rows_.end();
  for (std::size_t k = 0; k < hubs_.size(); ++k) {
    NeighbourList& list = lists.byBox[hubs_[k].id];
    std::copy_n(lists.indices.data() + list.start, list.size, lists.indices.data() + start);
    const std::uint64_t own = list.size, size = own + std::exchange(ends[k], start + own);
    list = {start, static_cast<std::uint32_t>(size)};
    start += size;
  }
  forHubPairs([&](std::size_t hub, std::uint32_t i) {
    lists.indices[static_cast<std::size_t>(ends[hub]++)] = i;
  });
}

/// Calls visit(hub, i) for each hub and each box i that overlaps it, has a greater index, and is
/// not a hub.
template <class Visit>
void Candidates::forHubPairs(const Visit& visit) const {
  const View<const Hub> hubs{hubs_.data(), hubs_.size()};
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    for (const std::uint32_t entry : rows_.own(i)) {
      const std::uint32_t id = entry & kIndex;
      if ((entry & kIsHub) == 0 || (entry & kOverlaps) == 0 || id > i) continue;
      visit(static_cast<std::size_t>(&findHub(hubs, id) - hubs.data()), i);
    }
  }
}

std::size_t Candidates::memoryBytes() const {
  std::size_t bytes = rows_.memoryBytes() + escapes_.memoryBytes() +
                      hubs_.capacity() * sizeof(Hub) + changes_.capacity() * sizeof(std::uint64_t);
  for (const auto& flips : flips_) bytes += flips.capacity() * sizeof(std::uint64_t);
  for (const Hub& hub : hubs_) bytes += hub.former.capacity() * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace lbvh

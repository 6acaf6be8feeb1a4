// SPDX-License-Identifier: Zlib
// Stores the candidates of boxes (candidates.h): a row of entries for each box, all rows in one
// array. Hubs are boxes with too many candidates for a row. Tests no overlaps and searches nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/prefetch.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/types.h"

namespace lbvh {

/// A box with very many candidates, such as a ground or a platform. Its candidates' rows contain
/// the hub. Its own row lists only other hubs, because editing thousands of entries one by one
/// would take too long. When a hub changes, its candidates are searched for as if it had escaped.
struct Hub {
  std::uint32_t id;
  std::size_t candidates;  ///< approximate number
  Aabb box, grown;         ///< both in the last step
  /// If the hub has escaped in this step: all boxes whose rows may list it.
  std::vector<std::uint32_t> former = {};
};

/// @param hubs sorted by id; one of them must have this id
inline const Hub& findHub(View<const Hub> hubs, std::uint32_t id) {
  return *std::lower_bound(hubs.begin(), hubs.end(), id,
                           [](const Hub& hub, std::uint32_t other) { return hub.id < other; });
}

struct RowEdit {
  enum Kind : std::uint8_t { insert, erase, set } kind;
  std::uint32_t row, entry;
};

class CandidateRows {
 public:
  /// An entry is a candidate's index with two flags: whether it overlaps the row's box, and whether
  /// it is a hub.
  static constexpr std::uint32_t kOverlaps = kCandidateOverlaps, kIndex = kCandidateIndex;
  static constexpr std::uint32_t kIsHub = 1u << 30;

  static constexpr std::size_t kUsualEntries = 1024, kMaxEntries = 16384;  ///< limits of a row

  /// Makes n empty rows, one after the other, each with capacity for capacityOf(i) entries.
  /// @param mostEntries maximum number of entries of a row from now on
  /// @return false if the numbers are too large for a Row; then there are no rows
  template <class CapacityOf>
  bool layOut(std::size_t n, std::size_t mostEntries, const CapacityOf& capacityOf) {
    rows_.resize(n);
    mostEntries_ = mostEntries;
    std::size_t used = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::size_t capacity = capacityOf(i);
      rows_[i] = {};
      rows_[i].start = static_cast<std::uint32_t>(used);
      rows_[i].capacity = capacity & kMaxCapacity;
      used += capacity;
      if (capacity <= kMaxCapacity && used < kMaxNamed) continue;
      rows_.clear();
      return false;
    }
    entries_.ensure(withSpare(used));
    used_ = used;
    return true;
  }
  /// New rows have no capacity.
  void resize(std::size_t n) { rows_.resize(n); }
  /// Frees the memory.
  void forget();

  std::size_t size() const { return rows_.size(); }
  /// start() is the index of a row's first entry in the array. end() is the end of all rows.
  std::size_t start(std::uint32_t i) const { return rows_[i].start; }
  std::size_t end() const { return used_; }

  /// all() returns the entries of a row. They begin with own(): the candidates of greater index,
  /// and the hubs.
  View<const std::uint32_t> all(std::uint32_t i) const { return {at(i), rows_[i].size}; }
  View<const std::uint32_t> own(std::uint32_t i) const { return {at(i), rows_[i].own}; }

  bool isHub(std::uint32_t i) const { return rows_[i].isHub; }
  void setHub(std::uint32_t i) { rows_[i].isHub = true; }

  /// reserve() provides capacity for `size` entries. expect() provides capacity for one more
  /// insertion. Rows may move.
  /// @return false if the row cannot get this capacity
  bool reserve(std::uint32_t i, std::size_t size);
  bool expect(std::uint32_t i) {
    ++rows_[i].expected;
    return reserve(i, std::size_t{rows_[i].size} + rows_[i].expected);
  }
  void insert(std::uint32_t i, std::uint32_t entry) {
    Filler filler = fill(i);
    filler.insert(entry);
    keep(i, filler);
  }
  void clear(std::uint32_t i) { rows_[i].size = rows_[i].own = 0; }

  /// Inserts many entries into a row. The row's counts change only in keep().
  struct Filler {
    std::uint32_t* begin;
    std::uint32_t i, own, size;

    void insert(std::uint32_t entry) {
      const bool isOwn = ((entry & kIndex) > i) | ((entry & kIsHub) != 0);
      begin[size] = begin[own];  // branchless, because a branch would often be mispredicted
      begin[isOwn ? own : size] = entry;
      own += isOwn;
      ++size;
    }
  };
  Filler fill(std::uint32_t i) {
    return {entries_.data() + rows_[i].start, i, rows_[i].own, rows_[i].size};
  }
  void keep(std::uint32_t i, const Filler& filler) {
    rows_[i].own = static_cast<std::uint16_t>(filler.own);
    rows_[i].size = static_cast<std::uint16_t>(filler.size);
  }
  /// For an insertion, expect() must have been called. For other edits, the row must contain the
  /// candidate.
  void apply(const RowEdit& edit);

  void prefetchRow(std::uint32_t i) const { prefetchObject(rows_[i]); }
  /// Must be called after prefetchRow(). Prefetches only the first entries of a long row.
  void prefetchEntries(std::uint32_t i) const {
    prefetch(at(i));
    prefetch(at(i) + 15);
  }

  std::size_t memoryBytes() const { return rows_.capacity() * sizeof(Row) + entries_.bytes(); }

 private:
  static constexpr std::size_t kMaxCapacity = 0x7FFF;
  static constexpr std::size_t kMaxNamed = 0x7FFFFFFF;

  struct Row {
    std::uint32_t start = 0;
    std::uint16_t size = 0, own = 0, expected = 0;
    std::uint16_t capacity : 15 = 0, isHub : 1 = 0;
  };

  const std::uint32_t* at(std::uint32_t i) const { return entries_.data() + rows_[i].start; }
  /// The size of the array, with spare entries because some rows will move to its end.
  std::size_t withSpare(std::size_t used) const {
    return used + used / 8 + rows_.size() / 4 + 2 * mostEntries_;
  }
  bool compact();
  void erase(Row& row, std::uint32_t* at);

  std::vector<Row> rows_;
  HostBuffer<std::uint32_t> entries_;
  std::size_t used_ = 0, mostEntries_ = kUsualEntries;
};

}  // namespace lbvh

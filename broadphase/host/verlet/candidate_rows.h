// SPDX-License-Identifier: Zlib
// For each box a row of entries, all rows in one array: the candidates of boxes (candidates.h) and
// what is known of them. Does not test, does not search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/prefetch.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/types.h"

namespace lbvh {

/// How a row changes.
struct RowEdit {
  enum Kind : std::uint8_t { insert, erase, set } kind;
  std::uint32_t row, entry;
};

class CandidateRows {
 public:
  /// An entry is a candidate's index with two marks: whether it overlaps the row's box, and whether
  /// it is a hub.
  static constexpr std::uint32_t kOverlaps = kCandidateOverlaps, kIndex = kCandidateIndex;
  static constexpr std::uint32_t kIsHub = 1u << 30;

  static constexpr std::size_t kMostEntries = 1024;  ///< of a row
  static constexpr std::size_t kNoRoom = ~std::size_t{0};

  /// Empty rows, one behind the other, each with room for roomOf(i) entries.
  /// @return false if that is kNoRoom, or more than can be named: then there are no rows
  template <class RoomOf>
  bool layOut(std::size_t n, const RoomOf& roomOf) {
    rows_.resize(n);
    std::size_t used = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::size_t room = roomOf(i);
      rows_[i] = {};
      rows_[i].start = static_cast<std::uint32_t>(used);
      rows_[i].room = room & kMostRoom;
      used += room;
      if (room <= kMostRoom && used < kMostNamed) continue;
      rows_.clear();
      return false;
    }
    entries_.ensure(withSpare(used));
    used_ = used;
    return true;
  }
  /// New rows have no room.
  void resize(std::size_t n) { rows_.resize(n); }
  /// Gives the memory back.
  void forget();

  std::size_t size() const { return rows_.size(); }
  /// Where a row's entries begin, and where all rows end, in the array.
  std::size_t start(std::uint32_t i) const { return rows_[i].start; }
  std::size_t end() const { return used_; }

  /// A row's entries: first its own, which are those of greater index and the hubs.
  View<const std::uint32_t> all(std::uint32_t i) const { return {at(i), rows_[i].size}; }
  View<const std::uint32_t> own(std::uint32_t i) const { return {at(i), rows_[i].own}; }

  /// A hub is a candidate of very many. It is in their rows, but has none of them in its own.
  bool isHub(std::uint32_t i) const { return rows_[i].isHub; }
  void setHub(std::uint32_t i) { rows_[i].isHub = true; }

  /// Makes room for so many entries in all, or for one more insertion. Rows may move.
  /// @return false if there is none
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

  /// Inserts many entries into a row, which is as it was until they are kept.
  struct Filler {
    std::uint32_t* begin;
    std::uint32_t i, own, size;

    void insert(std::uint32_t entry) {
      const bool isOwn = ((entry & kIndex) > i) | ((entry & kIsHub) != 0);
      begin[size] = begin[own];  // without a branch, for it would be mispredicted
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
  /// An insertion must have been expected. Other edits want the candidate to be in the row.
  void apply(const RowEdit& edit);

  void prefetchRow(std::uint32_t i) const { prefetchAll(rows_[i]); }
  /// After prefetchRow(). Of long rows the first entries.
  void prefetchEntries(std::uint32_t i) const {
    prefetch(at(i));
    prefetch(at(i) + 15);
  }

  std::size_t memoryBytes() const { return rows_.capacity() * sizeof(Row) + entries_.bytes(); }

 private:
  static constexpr std::size_t kMostRoom = 0x7FFF;
  static constexpr std::size_t kMostNamed = 0x7FFFFFFF;

  struct Row {
    std::uint32_t start = 0;
    std::uint16_t size = 0, own = 0, expected = 0;
    std::uint16_t room : 15 = 0, isHub : 1 = 0;
  };

  const std::uint32_t* at(std::uint32_t i) const { return entries_.data() + rows_[i].start; }
  /// Some rows will move behind the others.
  std::size_t withSpare(std::size_t used) const {
    return used + used / 4 + rows_.size() / 2 + 2 * kMostEntries;
  }
  bool compact();
  void erase(Row& row, std::uint32_t* at);

  std::vector<Row> rows_;
  HostBuffer<std::uint32_t> entries_;
  std::size_t used_ = 0;
};

}  // namespace lbvh

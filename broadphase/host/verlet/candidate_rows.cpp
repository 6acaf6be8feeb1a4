// SPDX-License-Identifier: Zlib
#include "broadphase/host/verlet/candidate_rows.h"

#include <algorithm>
#include <utility>

namespace lbvh {

void CandidateRows::forget() {
  rows_ = std::vector<Row>();
  entries_ = HostBuffer<std::uint32_t>();
  used_ = 0;
}

/// Moves the row to the end of the array if the row's capacity is too small.
bool CandidateRows::reserve(std::uint32_t i, std::size_t size) {
  if (size <= rows_[i].capacity) return true;
  const std::size_t capacity = size + size / 2 + 2;
  if (size > mostEntries_) return false;
  if (used_ + capacity > entries_.capacity() && !compact()) return false;
  Row& row = rows_[i];
  std::copy_n(entries_.data() + row.start, row.size, entries_.data() + used_);
  row.start = static_cast<std::uint32_t>(used_);
  row.capacity = capacity & kMaxCapacity;
  used_ += capacity;
  return true;
}

/// Closes the gaps that moved rows have left in the array.
bool CandidateRows::compact() {
  std::size_t used = 0;
  for (const Row& row : rows_) used += row.capacity;
  if (withSpare(used) >= kMaxNamed) return false;
  HostBuffer<std::uint32_t> entries;
  entries.ensure(withSpare(used));
  used_ = 0;
  for (Row& row : rows_) {
    std::copy_n(entries_.data() + row.start, row.size, entries.data() + used_);
    row.start = static_cast<std::uint32_t>(used_);
    used_ += row.capacity;
  }
  entries_ = std::move(entries);
  return true;
}

void CandidateRows::apply(const RowEdit& edit) {
  if (edit.kind == RowEdit::insert) {
    --rows_[edit.row].expected;
    return insert(edit.row, edit.entry);
  }
  std::uint32_t* at = entries_.data() + rows_[edit.row].start;
  while ((*at & kIndex) != (edit.entry & kIndex)) ++at;
  if (edit.kind == RowEdit::set)
    *at = (*at & ~kOverlaps) | (edit.entry & kOverlaps);
  else
    erase(rows_[edit.row], at);
}

void CandidateRows::erase(Row& row, std::uint32_t* at) {
  std::uint32_t* const begin = entries_.data() + row.start;
  if (at < begin + row.own) {
    *at = begin[--row.own];
    at = begin + row.own;
  }
  *at = begin[--row.size];
}

}  // namespace lbvh

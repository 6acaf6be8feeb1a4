// SPDX-License-Identifier: Zlib
// Stage 6 on the host: sorts each box's list of neighbours and writes it as pairs. Short lists are
// sorted in registers, by a bitonic network (Batcher 1968, "Sorting networks and their
// applications") over one to eight rows of Simd::kRow indices, without a branch. Long lists are
// sorted by a set of bits. Included by kernels.inl.

using Row = Lanes<std::uint32_t, Simd::kRow>;

/// Moves the lesser of each two lanes to `low`, the greater to `high`.
inline void orderRows(Row& low, Row& high) {
  Row lesser;
  least(low, high, lesser);
  greatest(low, high, high);
  low = lesser;
}

/// Orders lane i and lane i ^ kFlip.
template <std::uint32_t kFlip>
inline void orderLanes(Row& row) {
  Row other;
  shuffle(
      row, row, [](std::uint32_t i) { return i ^ kFlip; }, other);
  orderRows(row, other);
  shuffle(
      row, other, [](std::uint32_t i) { return i < (i ^ kFlip) ? i : i + Simd::kRow; }, row);
}

/// Sorts a bitonic row, or each bitonic piece of 2 * kDistance lanes in it.
template <std::uint32_t kDistance>
inline void mergeLanes(Row& row) {
  if constexpr (kDistance > 0) {
    orderLanes<kDistance>(row);
    mergeLanes<kDistance / 2>(row);
  }
}

template <std::uint32_t kLength = 2>
inline void sortLanes(Row& row) {
  if constexpr (kLength <= Simd::kRow) {
    orderLanes<kLength - 1>(row);
    mergeLanes<kLength / 4>(row);
    sortLanes<kLength * 2>(row);
  }
}

/// Sorts bitonic rows. If their number is not a power of two, the missing rows count as the
/// greatest: a row that is compared with a missing one stays where it is.
template <std::uint32_t kRows>
inline void mergeRows(Row* rows) {
  if constexpr (kRows == 1) {
    mergeLanes<Simd::kRow / 2>(*rows);
  } else {
    constexpr std::uint32_t kHalf = std::bit_ceil(kRows) / 2;
    for (std::uint32_t i = kHalf; i < kRows; ++i) orderRows(rows[i - kHalf], rows[i]);
    mergeRows<kHalf>(rows);
    mergeRows<kRows - kHalf>(rows + kHalf);
  }
}

template <std::uint32_t kRows>
inline void sortRows(Row* rows) {
  if constexpr (kRows == 1) {
    sortLanes(*rows);
  } else {
    constexpr std::uint32_t kHalf = std::bit_ceil(kRows) / 2;
    sortRows<kHalf>(rows);
    sortRows<kRows - kHalf>(rows + kHalf);
    for (std::uint32_t i = kHalf; i < kRows; ++i) {  // compares the first with the last, and so on
      shuffle(
          rows[i], rows[i], [](std::uint32_t lane) { return Simd::kRow - 1 - lane; }, rows[i]);
      orderRows(rows[2 * kHalf - 1 - i], rows[i]);
    }
    mergeRows<kHalf>(rows);
    mergeRows<kRows - kHalf>(rows + kHalf);
  }
}

/// Reads and writes whole rows, beyond the ends of the list and of its pairs.
template <std::uint32_t kRows>
inline void sortPairs(std::uint32_t first, const std::uint32_t* list, std::uint32_t size,
                      Pair* out) {
  Row lanes, rows[kRows];
  for (std::uint32_t lane = 0; lane < Simd::kRow; ++lane) lanes[lane] = lane;
  for (std::uint32_t i = 0; i < kRows; ++i) {
    std::memcpy(&rows[i], list + i * Simd::kRow, sizeof(Row));
    select(lanes + i * Simd::kRow < size, rows[i], Row{} + kNullIndex, rows[i]);
  }
  sortRows<kRows>(rows);
  const Row firsts = Row{} + first;
  for (std::uint32_t i = 0; i < kRows; ++i) {
    Row halves[2];
    shuffle(
        firsts, rows[i], [](std::uint32_t k) { return k / 2 + k % 2 * Simd::kRow; }, halves[0]);
    shuffle(
        firsts, rows[i], [](std::uint32_t k) { return (k + Simd::kRow) / 2 + k % 2 * Simd::kRow; },
        halves[1]);
    std::memcpy(static_cast<void*>(out + i * Simd::kRow), halves, sizeof halves);
  }
}

/// For long lists: each index sets its bit, and the bits are read in order.
inline void sortLong(std::uint32_t first, const std::uint32_t* list, std::uint32_t size,
                     const IndexSet& set, Pair* out) {
  std::uint32_t least = kNullIndex;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t index = list[i], word = index / 64;
    least = std::min(least, index);
    set.bits[word] |= std::uint64_t{1} << index % 64;
    set.words[word / 64] |= std::uint64_t{1} << word % 64;
  }
  for (std::size_t i = least / (64 * 64); i < set.wordCount; ++i)
    for (std::uint64_t words = std::exchange(set.words[i], 0); words != 0; words &= words - 1) {
      const std::size_t word = i * 64 + static_cast<std::size_t>(std::countr_zero(words));
      for (std::uint64_t bits = std::exchange(set.bits[word], 0); bits != 0; bits &= bits - 1)
        *out++ = {first, static_cast<std::uint32_t>(word * 64) +
                             static_cast<std::uint32_t>(std::countr_zero(bits))};
    }
}

/// Lists of at most so many rows are short. Where a row has four lanes there is no instruction for
/// the minimum, and beyond four rows sortLong is faster.
constexpr std::uint32_t kMostRows = Simd::kRow > 4 ? 8 : 4;

/// For a list of `rows` rows, at most kMostRows.
template <std::uint32_t kRows = 1>
inline void sortShort(std::uint32_t rows, std::uint32_t first, const std::uint32_t* list,
                      std::uint32_t size, Pair* out) {
  if constexpr (kRows < kMostRows)
    if (rows != kRows) return sortShort<kRows + 1>(rows, first, list, size, out);
  sortPairs<kRows>(first, list, size, out);
}

/// The same, where nothing behind the list may be read, and nothing behind its pairs written.
inline void sortCopy(std::uint32_t rows, std::uint32_t first, const std::uint32_t* list,
                     std::uint32_t size, Pair* out) {
  if (size == 0) return;
  std::uint32_t copy[kMostRows * Simd::kRow] = {};
  Pair sorted[kMostRows * Simd::kRow];
  std::copy_n(list, size, copy);
  sortShort(rows, first, copy, size, sorted);
  std::copy_n(sorted, size, out);
}

void sortLists(const NeighbourLists& lists, std::uint32_t begin, std::uint32_t end,
               const IndexSet& set, View<Pair> out) {
  constexpr std::uint32_t kAhead = 24;  // lists lie scattered: prefetch them
  Pair* at = out.data;
  for (std::uint32_t first = begin; first < end; ++first) {
    if (first + kAhead < end) {
      const std::uint32_t* const ahead = lists.indices.data + lists.byBox[first + kAhead].start;
      prefetch(ahead);
      prefetch(ahead + Simd::kRow - 1);
    }
    const NeighbourList list = lists.byBox[first];
    const std::uint32_t* const indices = lists.indices.data + list.start;
    const std::uint32_t rows =
        list.size / Simd::kRow + 1;  // at least one, so that an empty list needs no branch
    const bool hasRoom = rows * Simd::kRow <= lists.indices.size - list.start &&
                         rows * Simd::kRow <= static_cast<std::size_t>(out.end() - at);
    if (rows > kMostRows)
      sortLong(first, indices, list.size, set, at);
    else if (hasRoom)
      sortShort(rows, first, indices, list.size, at);
    else
      sortCopy(rows, first, indices, list.size, at);
    at += list.size;
  }
}

// SPDX-License-Identifier: Zlib
// Runs stages 6 and 7 on the host. Stage 6 sorts each box's list of neighbours and writes it as
// pairs. Short lists are sorted in registers, by a bitonic network (Batcher 1968, "Sorting networks
// and their applications"). The network has one to eight rows of Simd::kRow indices, and no branch.
// Long lists are sorted by a bit set. Stage 7 compares two sorted lists of pairs, eight at a time.
// Included by kernels.inl.

using Row = Lanes<std::uint32_t, Simd::kRow>;

/// Per lane: moves the smaller number to `low`, the larger to `high`.
inline void orderRows(Row& low, Row& high) {
  Row smaller;
  least(low, high, smaller);
  greatest(low, high, high);
  low = smaller;
}

/// Sorts each pair of lanes i and i ^ kFlip.
template <std::uint32_t kFlip>
inline void orderLanes(Row& row) {
  Row other;
  shuffle(
      row, row, [](std::uint32_t i) { return i ^ kFlip; }, other);
  orderRows(row, other);
  shuffle(
      row, other, [](std::uint32_t i) { return i < (i ^ kFlip) ? i : i + Simd::kRow; }, row);
}

/// Sorts each bitonic piece of 2 * kDistance lanes of a row.
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

/// Sorts bitonic rows. If their number is not a power of two, the missing rows are treated as
/// larger than all others. So a row that is compared with a missing one stays where it is.
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

/// Writes the pairs of the index `first` and each index of a row.
inline void writeRow(std::uint32_t first, const Row& row, Pair* out) {
  const Row firsts = Row{} + first;
  Row halves[2];
  shuffle(
      firsts, row, [](std::uint32_t k) { return k / 2 + k % 2 * Simd::kRow; }, halves[0]);
  shuffle(
      firsts, row, [](std::uint32_t k) { return (k + Simd::kRow) / 2 + k % 2 * Simd::kRow; },
      halves[1]);
  std::memcpy(static_cast<void*>(out), halves, sizeof halves);
}

/// Sorts a list of at most kRows rows, and writes its pairs. Reads and writes whole rows, past the
/// ends of the list and of its pairs.
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
  for (std::uint32_t i = 0; i < kRows; ++i) writeRow(first, rows[i], out + i * Simd::kRow);
}

/// Sorts a long list. Each index sets its bit, and the bits are read in order.
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

/// Maximum number of rows of a short list. SSE2, with rows of four lanes, has no instruction for
/// the minimum of indices. So sortLong() is faster beyond four rows.
constexpr std::uint32_t kMaxRows = Simd::kRow > 4 ? 8 : 4;

/// Sorts a list of `rows` rows, at most kMaxRows.
template <std::uint32_t kRows = 1>
inline void sortShort(std::uint32_t rows, std::uint32_t first, const std::uint32_t* list,
                      std::uint32_t size, Pair* out) {
  if constexpr (kRows < kMaxRows)
    if (rows != kRows) return sortShort<kRows + 1>(rows, first, list, size, out);
  sortPairs<kRows>(first, list, size, out);
}

/// Like sortShort(), but reads nothing past the end of the list and writes nothing past its pairs.
inline void sortCopy(std::uint32_t rows, std::uint32_t first, const std::uint32_t* list,
                     std::uint32_t size, Pair* out) {
  if (size == 0) return;
  std::uint32_t copy[kMaxRows * Simd::kRow] = {};
  Pair sorted[kMaxRows * Simd::kRow];
  std::copy_n(list, size, copy);
  sortShort(rows, first, copy, size, sorted);
  std::copy_n(sorted, size, out);
}

void sortLists(NeighbourLists lists, std::uint32_t begin, std::uint32_t end, const IndexSet& set,
               View<Pair> out) {
  if (out.size() == 0) return;          // without pairs the lists may have no memory
  constexpr std::uint32_t kAhead = 24;  // lists are prefetched, because they are scattered
  Pair* at = out.data();
  for (std::uint32_t first = begin; first < end; ++first) {
    if (first + kAhead < end) {
      const std::uint32_t* const ahead = lists.indices.data() + lists.byBox[first + kAhead].start;
      prefetch(ahead);
      prefetch(ahead + Simd::kRow - 1);
    }
    const NeighbourList list = lists.byBox[first];
    const std::uint32_t* const indices = lists.indices.data() + list.start;
    const std::uint32_t rows =
        list.size / Simd::kRow + 1;  // at least one, so that an empty list needs no branch
    const bool fits = rows * Simd::kRow <= lists.indices.size() - list.start &&
                      rows * Simd::kRow <= static_cast<std::size_t>(out.end() - at);
    if (rows > kMaxRows)
      sortLong(first, indices, list.size, set, at);
    else if (fits)
      sortShort(rows, first, indices, list.size, at);
    else
      sortCopy(rows, first, indices, list.size, at);
    at += list.size;
  }
}

/// Skips up to eight equal pairs, and merges the first pair that differs. No branch depends on the
/// pairs: if one in ten changes, most such branches would be mispredicted.
inline void stepOfPairs(DeltaMerge& merge) {
  const auto [differ, less] = Simd::compareEight(merge.now, merge.old);
  const std::uint32_t first = differ & (0u - differ);  // 0 if all eight are equal
  const bool isNew = (less & first) != 0, isGone = (first & ~less) != 0;
  const int equal = std::countr_zero(differ | 1u << 8);
  merge.now += equal;
  merge.old += equal;
  *merge.added = *merge.now;
  *merge.removed = *merge.old;
  merge.added += isNew;
  merge.removed += isGone;
  merge.now += isNew;
  merge.old += isGone;
}

constexpr int kEights = 4;

/// Whether kEights times eight elements are equal. Their comparisons do not depend on each other,
/// unlike those of steps.
/// @param differ returns which of eight elements differ
template <class T, class Differ>
inline bool areEqual(const T* a, const T* b, const Differ& differ) {
  std::uint32_t any = 0;
  for (int k = 0; k < kEights; ++k) any |= differ(a + 8 * k, b + 8 * k);
  return any == 0;
}

/// Merges two lists by steps until one of them is nearly at its end. Skips many elements at once if
/// they are equal.
/// @param step merges up to eight elements, and reads at most nine
template <class Merge, class Differ, class Step>
inline void mergeByEight(Merge& given, const Differ& differ, const Step& step) {
  Merge merge = given;
  const auto rest = [&] { return std::min(merge.nowEnd - merge.now, merge.oldEnd - merge.old); };
  while (rest() > kEights * 9) {
    if (areEqual(merge.now, merge.old, differ)) {
      merge.now += kEights * 8;
      merge.old += kEights * 8;
    } else {
      for (int k = 0; k < kEights; ++k) step(merge);
    }
  }
  while (rest() > 8) step(merge);
  given = merge;
}

void mergeDelta(DeltaMerge& merge) {
  const auto differ = [](const Pair* a, const Pair* b) { return Simd::compareEight(a, b).differ; };
  mergeByEight(merge, differ, stepOfPairs);
}

/// Repeatedly copies the pairs before the next change, at most eight, and applies the change. The
/// only branch on the number of copied pairs is for eight.
void patchPairs(PairPatch& given) {
  PairPatch patch = given;
  while (patch.oldEnd - patch.old >= 8 && patch.outEnd - patch.out >= 9 &&
         patch.added != patch.addedEnd && patch.removed != patch.removedEnd) {
    const bool isAdded = *patch.added < *patch.removed;
    const Pair change = isAdded ? *patch.added : *patch.removed;
    const Pair changes[8] = {change, change, change, change, change, change, change, change};
    const auto before =
        static_cast<std::uint32_t>(std::countr_one(Simd::compareEight(patch.old, changes).less));
    std::memcpy(static_cast<void*>(patch.out), patch.old, sizeof changes);
    patch.old += before;
    patch.out += before;
    if (before == 8) continue;
    *patch.out = change;
    patch.out += isAdded;
    patch.added += isAdded;
    patch.removed += !isAdded;
    patch.old += !isAdded;
  }
  given = patch;
}

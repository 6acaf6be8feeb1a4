// SPDX-License-Identifier: Zlib
// Stage 7 on the host: compares two sorted lists of pairs, eight pairs at a time. Included by
// kernels.inl.

/// Skips equal pairs, at most eight, up to the first that differ, and merges that one. No branch
/// depends on the pairs: where one in ten changes, most such branches would be mispredicted.
inline void stepOfEight(DeltaMerge& merge) {
  const auto [differ, less] = Simd::compareEight(merge.now, merge.old);
  const std::uint32_t first = differ & (0u - differ);  // none if the eight are equal
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

inline bool areEqual(const Pair* a, const Pair* b) {
  std::uint32_t differ = 0;
  for (int k = 0; k < kEights; ++k) differ |= Simd::compareEight(a + 8 * k, b + 8 * k).differ;
  return differ == 0;
}

/// Where little changes it skips several eights at once: no step waits for the one before.
void mergeDelta(DeltaMerge& given) {
  DeltaMerge merge = given;
  const auto left = [&] { return std::min(merge.nowEnd - merge.now, merge.oldEnd - merge.old); };
  while (left() > kEights * 9) {  // a step takes at most nine
    if (areEqual(merge.now, merge.old)) {
      merge.now += kEights * 8;
      merge.old += kEights * 8;
    } else {
      for (int k = 0; k < kEights; ++k) stepOfEight(merge);
    }
  }
  while (left() > 8) stepOfEight(merge);
  given = merge;
}

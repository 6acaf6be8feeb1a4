// SPDX-License-Identifier: Zlib
// Sorts boxes with equal keys by their filters. Boxes whose keys along the curve are equal are near
// each other, so each of their blocks overlaps all the others. After the sort, most blocks have
// boxes of one filter, and a search skips blocks whose filters cannot match (block_tree.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/radix_sort.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/types.h"

namespace lbvh {

class FilterOrder {
 public:
  FilterOrder(HostTasks& tasks, HostRadixSort& sort) : tasks_(tasks), sort_(sort) {}

  /// Sorts boxes with equal keys by group, then by mask, then by index. Runs of fewer than 2 * kFew
  /// equal keys may stay unsorted, because a search of so few boxes is fast in any order.
  /// @param filters by box, or empty
  /// @param ids the boxes sorted by key, and by index if keys are equal
  /// @param keyAt keyAt(k) is the key of box ids[k]
  template <class KeyAt>
  void sortTies(View<const Filter> filters, View<std::uint32_t> ids, const KeyAt& keyAt) {
    if (filters.empty()) return;
    const std::size_t n = ids.size();
    for (std::size_t k = kFew, done = 0; k < n; k += kFew) {
      const auto key = keyAt(k);
      if (keyAt(k - kFew) != key || k < done) continue;
      std::size_t begin = k - kFew, end = k + 1;
      while (begin > done && keyAt(begin - 1) == key) --begin;
      while (end < n && keyAt(end) == key) ++end;
      sortRun(filters, {ids.data() + begin, end - begin});
      done = end;
    }
  }

  std::size_t memoryBytes() const { return keys_.bytes() + spareKeys_.bytes() + spareIds_.bytes(); }

 private:
  static constexpr std::size_t kFew = 128;

  static std::uint64_t keyOf(Filter filter) {
    return std::uint64_t{static_cast<std::uint32_t>(filter.group)} << 32 |
           static_cast<std::uint32_t>(filter.mask);
  }

  void sortRun(View<const Filter> filters, View<std::uint32_t> ids) {
    const std::size_t n = ids.size();
    const View<std::uint64_t> keys = keys_.ensure(n);
    std::uint64_t differs = 0;
    for (std::size_t k = 0; k < n; ++k) {
      keys[k] = keyOf(filters[ids[k]]);
      differs |= keys[k] ^ keys[0];
    }
    if (differs == 0) return;
    sort_.byKey(tasks_, keys, ids, spareKeys_.ensure(n), spareIds_.ensure(n), 0, 64);
  }

  HostTasks& tasks_;
  HostRadixSort& sort_;
  HostBuffer<std::uint64_t> keys_, spareKeys_;
  HostBuffer<std::uint32_t> spareIds_;
};

}  // namespace lbvh

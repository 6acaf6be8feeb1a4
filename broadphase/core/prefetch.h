// SPDX-License-Identifier: Zlib
// Prefetches memory into the cache. This changes no result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/core/compiler.h"

namespace lbvh {

/// With up to this many boxes, all their data stay in the cache, so prefetching only costs time
/// (measured).
inline constexpr std::size_t kBoxesInCache = 12288;

/// Prefetches the cache lines of `bytes` bytes from `at` on.
inline void prefetch(const void* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  for (std::uintptr_t line = begin & ~std::uintptr_t{63}; line < begin + bytes; line += 64)
    prefetch(reinterpret_cast<const void*>(line));
}

/// Prefetches both cache lines that a small object may be in.
template <class T>
void prefetchObject(const T& object) {
  prefetch(&object);
  prefetch(reinterpret_cast<const char*>(&object + 1) - 1);
}

/// Calls visit(k) for each k less than n. Before that, it calls each stage with the same k. A stage
/// is kAhead elements ahead of its successor: the next stage, or visit(). It prefetches what its
/// successor reads.
/// @param prefetches if false, only visit() is called
template <class Visit, class... Stages>
void forPrefetched(bool prefetches, std::size_t n, const Visit& visit, const Stages&... stages) {
  constexpr std::size_t kAhead = 12;
  const std::size_t ahead = prefetches ? kAhead * sizeof...(stages) : 0;
  const auto call = [n](const auto& f, std::size_t k) {
    if (k < n) f(k);  // a negative k wraps around to a huge number
  };
  for (std::size_t i = 0; i < n + ahead; ++i) {
    std::size_t k = i;
    if (prefetches) ((call(stages, k), k -= kAhead), ...);
    call(visit, k);
  }
}

}  // namespace lbvh

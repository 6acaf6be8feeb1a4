// SPDX-License-Identifier: Zlib
// Asks the processor for memory before it is read. Hints: they change no result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/core/compiler.h"

namespace lbvh {

/// So few boxes, and what belongs to them, are in the cache anyway: prefetching would only cost.
/// Measured.
inline constexpr std::size_t kBoxesInCache = 12288;

/// Asks for the cache lines of `bytes` bytes from `at` on.
inline void prefetch(const void* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  for (std::uintptr_t line = begin & ~std::uintptr_t{63}; line < begin + bytes; line += 64)
    prefetch(reinterpret_cast<const void*>(line));
}

/// Asks for both cache lines that a small object may lie in.
template <class T>
void prefetchAll(const T& object) {
  prefetch(&object);
  prefetch(reinterpret_cast<const char*>(&object + 1) - 1);
}

/// Calls visit(k) for each k below n, and before that one stage after another for the same k, each
/// some calls of visit() ahead of the next: a stage prefetches what the next one reads.
/// @param prefetches false: visit() only
template <class Visit, class... Stages>
void forPrefetched(bool prefetches, std::size_t n, const Visit& visit, const Stages&... stages) {
  constexpr std::size_t kAhead = 12;
  const std::size_t ahead = prefetches ? kAhead * sizeof...(stages) : 0;
  const auto call = [n](const auto& f, std::size_t k) {
    if (k < n) f(k);  // k wraps around where it is not yet its turn
  };
  for (std::size_t i = 0; i < n + ahead; ++i) {
    std::size_t k = i;
    if (prefetches) ((call(stages, k), k -= kAhead), ...);
    call(visit, k);
  }
}

}  // namespace lbvh

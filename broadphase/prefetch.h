// Asks the processor for memory before it is read. Hints: they change no result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lbvh {

/// Asks for the cache line of `at`, which may be any address, null included.
inline void prefetch(const void* at) {
#if defined(__GNUC__)
  __builtin_prefetch(at);
#else
  (void)at;
#endif
}

/// Asks for the cache lines of `bytes` bytes from `at` on.
inline void prefetch(const void* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  for (std::size_t offset = 0; offset < bytes; offset += 64)
    prefetch(reinterpret_cast<const void*>(begin + offset));
}

}  // namespace lbvh

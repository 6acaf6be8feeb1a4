// SPDX-License-Identifier: Zlib
// What compilers and processors spell differently: GCC and Clang (also as clang-cl), Microsoft's.
// lanes.h has the vector types. Not installed.
#pragma once

#include <cstdint>

#if defined(__GNUC__) || defined(__clang__)
#define LBVH_GNU 1
#endif

#if defined(__x86_64__) || defined(_M_X64)
#define LBVH_X86_64 1
#endif
#if defined(__SSE2__) || defined(_M_X64)
#define LBVH_SSE2 1
#endif
#if defined(__aarch64__) || defined(_M_ARM64)
#define LBVH_ARM64 1
#endif

#if defined(LBVH_SSE2)
#include <immintrin.h>
#elif defined(LBVH_ARM64)
#include <arm_neon.h>
#endif
#if !defined(LBVH_GNU)
#include <intrin.h>
#endif

// Functions between these two may use the instructions of `targets`. Microsoft's compiler lets
// every function use those that it names.
#define LBVH_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define LBVH_BEGIN_TARGET(targets) \
  LBVH_PRAGMA(clang attribute push(__attribute__((target(targets))), apply_to = function))
#define LBVH_END_TARGET LBVH_PRAGMA(clang attribute pop)
#elif defined(LBVH_GNU)
#define LBVH_BEGIN_TARGET(targets) LBVH_PRAGMA(GCC push_options) LBVH_PRAGMA(GCC target(targets))
#define LBVH_END_TARGET LBVH_PRAGMA(GCC pop_options)
#else
#define LBVH_BEGIN_TARGET(targets)
#define LBVH_END_TARGET
#endif

namespace lbvh {

#if defined(LBVH_X86_64)
/// What the instruction CPUID writes.
struct Cpuid {
  std::uint32_t eax, ebx, ecx, edx;
};

inline Cpuid cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Cpuid result;
#if defined(LBVH_GNU)
  __asm__("cpuid"
          : "=a"(result.eax), "=b"(result.ebx), "=c"(result.ecx), "=d"(result.edx)
          : "a"(leaf), "c"(subleaf));
#else
  int registers[4];
  __cpuidex(registers, static_cast<int>(leaf), static_cast<int>(subleaf));
  result = {static_cast<std::uint32_t>(registers[0]), static_cast<std::uint32_t>(registers[1]),
            static_cast<std::uint32_t>(registers[2]), static_cast<std::uint32_t>(registers[3])};
#endif
  return result;
}

/// Which registers the system keeps when it changes threads. Only where CPUID says OSXSAVE.
inline std::uint32_t registersOfSystem() {
#if defined(LBVH_GNU)
  std::uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
#else
  return static_cast<std::uint32_t>(_xgetbv(0));
#endif
}
#endif

/// Asks for the cache line of `at`, which may be any address, null included.
inline void prefetch(const void* at) {
#if defined(LBVH_GNU)
  __builtin_prefetch(at);
  __asm__ volatile("");  // else GCC takes a function that only prefetches for one without effect
#elif defined(LBVH_X86_64)
  _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0);
#elif defined(LBVH_ARM64)
  __prefetch(at);
#else
  (void)at;
#endif
}

}  // namespace lbvh

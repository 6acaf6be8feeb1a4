// SPDX-License-Identifier: Zlib
// Hides differences between compilers (GCC, Clang, clang-cl and Microsoft's compiler) and between
// processors. Vector types are in host/simd/lanes.h. Not installed.
#pragma once

#include <cstdint>

#if defined(__GNUC__) || defined(__clang__)
#define GPULBVH_GNU 1
#endif

#if defined(__x86_64__) || defined(_M_X64)
#define GPULBVH_X86_64 1
#endif
#if defined(__SSE2__) || defined(_M_X64)
#define GPULBVH_SSE2 1
#endif
#if defined(__aarch64__) || defined(_M_ARM64)
#define GPULBVH_ARM64 1
#endif

#if defined(GPULBVH_SSE2)
#include <immintrin.h>
#elif defined(GPULBVH_ARM64)
#include <arm_neon.h>
#endif
#if !defined(GPULBVH_GNU)
#include <intrin.h>
#endif

// Functions between GPULBVH_BEGIN_TARGET and GPULBVH_END_TARGET may use the instructions of
// `targets`. Microsoft's compiler needs no permission: it compiles every intrinsic in any function.
#define GPULBVH_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define GPULBVH_BEGIN_TARGET(targets) \
  GPULBVH_PRAGMA(clang attribute push(__attribute__((target(targets))), apply_to = function))
#define GPULBVH_END_TARGET GPULBVH_PRAGMA(clang attribute pop)
#elif defined(GPULBVH_GNU)
#define GPULBVH_BEGIN_TARGET(targets) \
  GPULBVH_PRAGMA(GCC push_options) GPULBVH_PRAGMA(GCC target(targets))
#define GPULBVH_END_TARGET GPULBVH_PRAGMA(GCC pop_options)
#else
#define GPULBVH_BEGIN_TARGET(targets)
#define GPULBVH_END_TARGET
#endif

// Prevents the inlining of rarely used code, which would take registers from a short caller.
#if defined(GPULBVH_GNU)
#define GPULBVH_NOINLINE __attribute__((noinline))
#else
#define GPULBVH_NOINLINE __declspec(noinline)
#endif

// Hides the inner struct of an exported class. Otherwise its members would be exported, too.
#if defined(GPULBVH_GNU) && !defined(_WIN32)
#define GPULBVH_HIDDEN __attribute__((visibility("hidden")))
#else
#define GPULBVH_HIDDEN
#endif

namespace lbvh {

#if defined(GPULBVH_X86_64)
struct Cpuid {
  std::uint32_t eax, ebx, ecx, edx;
};

inline Cpuid cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Cpuid result;
#if defined(GPULBVH_GNU)
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

/// The registers that the operating system saves when it switches threads, as bits of XCR0. May be
/// called only if CPUID reports OSXSAVE.
inline std::uint32_t registersOfSystem() {
#if defined(GPULBVH_GNU)
  std::uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
#else
  return static_cast<std::uint32_t>(_xgetbv(0));
#endif
}
#endif

/// Tells the processor that this thread waits, in a loop, for another thread's write.
inline void relax() {
#if defined(GPULBVH_SSE2)
  _mm_pause();
#elif defined(GPULBVH_ARM64) && defined(GPULBVH_GNU)
  __asm__ volatile("yield");
#elif defined(GPULBVH_ARM64)
  __yield();
#endif
}

/// Prefetches the cache line of `at`, which may be any address, even null.
inline void prefetch(const void* at) {
#if defined(GPULBVH_GNU)
  __builtin_prefetch(at);
  // Without this statement GCC treats a function that only prefetches as one without effect.
  __asm__ volatile("");
#elif defined(GPULBVH_X86_64)
  _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0);
#elif defined(GPULBVH_ARM64)
  __prefetch(at);
#else
  (void)at;
#endif
}

}  // namespace lbvh

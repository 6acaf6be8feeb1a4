// SPDX-License-Identifier: Zlib
// Defines the memory policy of the host for GrowBuffer and Scratch.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>

#include "broadphase/core/buffer.h"

#if defined(__has_feature)
#define GPULBVH_HAS_FEATURE(feature) __has_feature(feature)
#else
#define GPULBVH_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || GPULBVH_HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, bytes) static_cast<void>(p)
#define ASAN_UNPOISON_MEMORY_REGION(p, bytes) static_cast<void>(p)
#endif

namespace lbvh {

struct HostMemory {
  static constexpr std::align_val_t kAlignment{128};  // the alignment of a Scratch's pieces

  static void* allocate(std::size_t bytes) { return ::operator new(bytes, kAlignment); }
  static void release(void* p, std::size_t /*bytes*/) { ::operator delete(p, kAlignment); }
  static void requireMayGrow() {}
  static constexpr bool keepsReleased() { return false; }
  static constexpr bool kIsLazy = true;  ///< pages that are never touched take no memory

  static void lend(void* p, [[maybe_unused]] std::size_t bytes) {
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
  }
  static void retire(void* p, [[maybe_unused]] std::size_t bytes) {
#if defined(GPULBVH_CHECKED)
    std::memset(p, 0xDB, bytes);  // as an index, these bytes are far beyond the end of any array
#endif
    ASAN_POISON_MEMORY_REGION(p, bytes);
  }
};

template <class T>
using HostBuffer = GrowBuffer<T, HostMemory>;

}  // namespace lbvh

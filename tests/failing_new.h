// SPDX-License-Identifier: Zlib
// Replaces this program's operator new by one that fails when it is told to. Included by one file
// of a program.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include "portable.h"

namespace failing_new {

/// Counts down with each allocation of this thread; the one that finds 0, and all after it, fail.
inline thread_local long allocationsLeft = -1;  // negative: no limit
inline thread_local bool hasFailed = false;

inline void* allocate(std::size_t size, std::size_t alignment) {
  if (allocationsLeft == 0) {
    hasFailed = true;
    throw std::bad_alloc();
  }
  if (allocationsLeft > 0) --allocationsLeft;
  void* p = lbvh::test::allocateAligned(size, alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

/// Calls f() with a limited number of allocations. Returns whether one failed. Lets exceptions of f
/// through.
template <class F>
bool callWith(long allocations, const F& f) {
  struct Limit {
    explicit Limit(long left) { allocationsLeft = left, hasFailed = false; }
    ~Limit() { allocationsLeft = -1; }
  } const limit(allocations);
  f();
  return hasFailed;
}

}  // namespace failing_new

// All forms that are used. Under ASan a form that is missing here would be the sanitizer's.
void* operator new(std::size_t size) {
  return failing_new::allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t a) {
  return failing_new::allocate(size, static_cast<std::size_t>(a));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, std::align_val_t a) { return operator new(size, a); }
void operator delete(void* p) noexcept { lbvh::test::freeAligned(p); }
void operator delete(void* p, std::size_t) noexcept { lbvh::test::freeAligned(p); }
void operator delete(void* p, std::align_val_t) noexcept { lbvh::test::freeAligned(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  lbvh::test::freeAligned(p);
}
void operator delete(void* p, const std::nothrow_t&) noexcept { lbvh::test::freeAligned(p); }
void operator delete[](void* p) noexcept { lbvh::test::freeAligned(p); }
void operator delete[](void* p, std::size_t) noexcept { lbvh::test::freeAligned(p); }
void operator delete[](void* p, std::align_val_t) noexcept { lbvh::test::freeAligned(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  lbvh::test::freeAligned(p);
}

// SPDX-License-Identifier: Zlib
#include "failing_new.h"

#include <cstdlib>
#include <new>

#include "portable.h"

constinit thread_local long failing_new::allocationsLeft = -1;
constinit thread_local bool failing_new::hasFailed = false;

namespace {

void* allocate(std::size_t size, std::size_t alignment) {
  if (failing_new::allocationsLeft == 0) {
    failing_new::hasFailed = true;
    throw std::bad_alloc();
  }
  if (failing_new::allocationsLeft > 0) --failing_new::allocationsLeft;
  void* p = lbvh::test::allocateAligned(size, alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

// All forms of operator new that are used. With ASan, the sanitizer would supply any form that is
// missing here.
void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t a) {
  return allocate(size, static_cast<std::size_t>(a));
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

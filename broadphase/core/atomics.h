// SPDX-License-Identifier: Zlib
// Defines atomic operations on plain memory, because host and device code spell them differently.
#pragma once

#include <atomic>
#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// Exchanges *p with `value`. The thread that receives `value` from a later exchange on the same
/// address sees all writes that were made before this call.
GPULBVH_HD inline std::uint32_t exchangeAndPublish(std::uint32_t* p, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  // One instruction is enough. Fences around atomicExch would be sequentially consistent, which is
  // more than needed.
  std::uint32_t old;
  asm volatile("atom.acq_rel.gpu.exch.b32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(p), "r"(value)
               : "memory");
  return old;
#elif defined(__cpp_lib_atomic_ref)
  return std::atomic_ref(*p).exchange(value, std::memory_order_acq_rel);
#else  // libc++ before LLVM 19
  return __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL);
#endif
}

/// Adds to *p, without ordering other memory. @return the previous value
template <class T>
GPULBVH_HD T fetchAdd(T* p, T value) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 4)
    return atomicAdd(p, value);
  else  // atomicAdd wants unsigned long long, and std::uint64_t can be another type
    return atomicAdd(reinterpret_cast<unsigned long long*>(p), value);
#elif defined(__cpp_lib_atomic_ref)
  return std::atomic_ref(*p).fetch_add(value, std::memory_order_relaxed);
#else
  return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
#endif
}

/// Sets bits of *p, without ordering other memory.
GPULBVH_HD inline void setBits(std::uint32_t* p, std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  atomicOr(p, bits);
#elif defined(__cpp_lib_atomic_ref)
  std::atomic_ref(*p).fetch_or(bits, std::memory_order_relaxed);
#else
  __atomic_fetch_or(p, bits, __ATOMIC_RELAXED);
#endif
}

}  // namespace lbvh

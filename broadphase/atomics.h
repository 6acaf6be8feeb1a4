// What stages need of a processor, and what host and device spell differently: an atomic exchange
// that publishes earlier writes. No memory management, no launches.
#pragma once

#include <atomic>
#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// Exchanges *p with `value`. The thread that receives `value` from a later exchange on the same
/// address sees all writes that were made before this one.
LBVH_HD inline std::uint32_t exchangeAndPublish(std::uint32_t* p, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  // One instruction. Fences around atomicExch would be sequentially consistent, which is more.
  std::uint32_t old;
  asm volatile("atom.acq_rel.gpu.exch.b32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(p), "r"(value)
               : "memory");
  return old;
#else
  return std::atomic_ref<std::uint32_t>(*p).exchange(value, std::memory_order_acq_rel);
#endif
}

}  // namespace lbvh

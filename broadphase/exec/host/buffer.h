// The host's memory for GrowBuffer, aligned to a cache line.
#pragma once

#include <new>

#include "broadphase/exec/buffer.h"

namespace lbvh {

struct HostMemory {
  static constexpr std::align_val_t kAlignment{64};

  static void* allocate(std::size_t bytes) { return ::operator new(bytes, kAlignment); }
  static void release(void* p) { ::operator delete(p, kAlignment); }
};

template <class T>
using HostBuffer = GrowBuffer<T, HostMemory>;

}  // namespace lbvh

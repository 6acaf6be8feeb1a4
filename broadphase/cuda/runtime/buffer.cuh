// SPDX-License-Identifier: Zlib
// Buffers on the device and in pinned memory.
#pragma once

#include "broadphase/core/buffer.h"
#include "broadphase/cuda/runtime/memory.cuh"

namespace lbvh {

template <class T>
using DeviceBuffer = GrowBuffer<T, DeviceMemory>;
template <class T>
using PinnedBuffer = GrowBuffer<T, PinnedMemory>;

}  // namespace lbvh

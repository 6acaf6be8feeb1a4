// SPDX-License-Identifier: Zlib
// Buffers on the device and in pinned memory.
#pragma once

#include "broadphase/exec/buffer.h"
#include "broadphase/exec/cuda/memory.cuh"

namespace lbvh {

template <class T>
using DeviceBuffer = GrowBuffer<T, DeviceMemory>;
template <class T>
using PinnedBuffer = GrowBuffer<T, PinnedMemory>;

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// Allocates and frees a CudaSpace's memory. It avoids cudaFree and cudaFreeHost while the space is
// in use, because they make the host wait for the whole device. Such a wait would stall the
// program's own work and invalidate its captures.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "broadphase/core/buffer.h"
#include "broadphase/cuda/runtime/check.cuh"
#include "broadphase/cuda/runtime/threads.cuh"
#include "broadphase/options.h"

namespace lbvh {

enum class MemoryKind {
  device,
  pinned,  ///< page-locked and mapped host memory, which kernels may write
};

/// Thrown if memory would have to grow while a stream is captured.
struct GrowthInCapture : std::length_error {
  GrowthInCapture()
      : std::length_error(
            "memory would have to grow while a stream is captured: reserve() before the capture") {}
};

/// The memory of one space. With memory pools or a DeviceAllocator, device memory is allocated and
/// freed in the order of the space's stream. Other device memory, and pinned memory, is freed by
/// the destructor.
class CudaMemory {
 public:
  CudaMemory(cudaStream_t stream, bool hasPools, const DeviceAllocator& allocator = {})
      : stream_(stream), hasPools_(hasPools), allocator_(allocator) {}

  /// The caller must make sure that no work uses the memory any more.
  ~CudaMemory() {
    const RelaxedCapture relaxed;
    for (const Block& block : waiting_) free(block);
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  void useStream(cudaStream_t stream) { stream_ = stream; }

  /// Keeps all addresses valid until the destructor runs, because graphs may contain them.
  void keepAll() { keepsAll_ = true; }

  bool keepsReleased(MemoryKind kind) const {
    const bool isOrdered = hasPools_ || allocator_.release != nullptr;
    return kind == MemoryKind::pinned || !isOrdered || keepsAll_;
  }

  void* allocate(MemoryKind kind, std::size_t bytes) {
    waiting_.reserve(waiting_.size() + blocks_ + 1);  // so that release() does not allocate
    void* p = nullptr;
    if (kind == MemoryKind::pinned)
      cudaCheck(cudaHostAlloc(&p, bytes, cudaHostAllocMapped));
    else if (allocator_.allocate != nullptr)
      p = allocatedByCaller(bytes);
    else if (hasPools_)
      cudaCheck(cudaMallocAsync(&p, bytes, stream_));
    else
      cudaCheck(cudaMalloc(&p, bytes));
    ++blocks_;
    ++epoch_;
    held(kind) += bytes;
    return p;
  }

  void release(MemoryKind kind, void* p, std::size_t bytes) {
    --blocks_;
    ++epoch_;
    const Block block{p, bytes, kind};
    if (keepsReleased(kind) || !free(block)) waiting_.push_back(block);
  }

  /// Increases with each allocation and release. No address changes while the epoch stays the same.
  std::uint64_t epoch() const { return epoch_; }

  void requireMayGrow() const {
    if (bans_ > 0) throw GrowthInCapture();
  }

  /// While an instance exists, requireMayGrow() throws.
  class Ban {
   public:
    explicit Ban(CudaMemory& memory) : memory_(memory) { ++memory_.bans_; }
    ~Ban() { --memory_.bans_; }
    Ban(const Ban&) = delete;
    Ban& operator=(const Ban&) = delete;

   private:
    CudaMemory& memory_;
  };

  /// The size of all memory, including blocks that wait to be freed.
  std::size_t bytes() const { return deviceBytes_ + pinnedBytes_; }
  std::size_t pinnedBytes() const { return pinnedBytes_; }

 private:
  struct Block {
    void* p;
    std::size_t bytes;
    MemoryKind kind;
  };

  std::size_t& held(MemoryKind kind) {
    return kind == MemoryKind::pinned ? pinnedBytes_ : deviceBytes_;
  }

  void* allocatedByCaller(std::size_t bytes) const {
    void* p = allocator_.allocate(bytes, stream_, allocator_.user);
    if (p == nullptr)
      throw SpaceError(
          "DeviceOptions::allocator returned null for " + std::to_string(bytes) + " bytes", false);
    return p;
  }

  bool free(const Block& block) {
    if (block.kind == MemoryKind::device && allocator_.release != nullptr) {
      allocator_.release(block.p, block.bytes, stream_, allocator_.user);
      held(block.kind) -= block.bytes;
      return true;
    }
    const cudaError_t error = block.kind == MemoryKind::pinned ? cudaFreeHost(block.p)
                              : hasPools_                      ? cudaFreeAsync(block.p, stream_)
                                                               : cudaFree(block.p);
    if (error != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    held(block.kind) -= block.bytes;
    return true;
  }

  cudaStream_t stream_;
  const bool hasPools_;
  const DeviceAllocator allocator_;
  bool keepsAll_ = false;
  int bans_ = 0;
  std::size_t blocks_ = 0;  ///< number of blocks in use
  std::uint64_t epoch_ = 1;
  std::vector<Block> waiting_;  ///< blocks to be freed
  std::size_t deviceBytes_ = 0, pinnedBytes_ = 0;
};

/// The memory policy for GrowBuffer and Scratch. Without a CudaMemory, as in tools and tests, it
/// calls CUDA directly.
template <MemoryKind kKind>
struct MemoryOf {
  CudaMemory* memory = nullptr;

  void* allocate(std::size_t bytes) const {
    if (memory != nullptr) return memory->allocate(kKind, bytes);
    void* p = nullptr;
    if constexpr (kKind == MemoryKind::pinned)
      cudaCheck(cudaHostAlloc(&p, bytes, cudaHostAllocMapped));
    else
      cudaCheck(cudaMalloc(&p, bytes));
    return p;
  }
  void release(void* p, std::size_t bytes) const {
    if (memory != nullptr)
      memory->release(kKind, p, bytes);
    else if constexpr (kKind == MemoryKind::pinned)
      cudaFreeHost(p);
    else
      cudaFree(p);
  }
  void requireMayGrow() const {
    if (memory != nullptr) memory->requireMayGrow();
  }
  bool keepsReleased() const { return memory != nullptr && memory->keepsReleased(kKind); }

  // Unlike the host's functions, these do nothing, because queued kernels may still use the memory.
  static void lend(void*, std::size_t) {}
  static void retire(void*, std::size_t) {}
};

using DeviceMemory = MemoryOf<MemoryKind::device>;
using PinnedMemory = MemoryOf<MemoryKind::pinned>;

template <class T>
using DeviceBuffer = GrowBuffer<T, DeviceMemory>;
template <class T>
using PinnedBuffer = GrowBuffer<T, PinnedMemory>;

}  // namespace lbvh

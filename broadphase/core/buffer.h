// SPDX-License-Identifier: Zlib
// Defines a move-only buffer of uninitialised memory that only grows. A policy allocates the
// memory. The buffer is not a container: growth discards the elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "broadphase/types.h"

namespace lbvh {

/// @tparam Memory a small copyable policy. allocate(bytes) may throw; release(pointer, bytes) must
///   not. requireMayGrow() throws while allocation is forbidden. keepsReleased() is true if
///   released memory is not freed at once. A policy has kIsLazy if untouched pages take no memory.
template <class T, class Memory>
class GrowBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit GrowBuffer(Memory memory = {}) : memory_(memory) {}
  ~GrowBuffer() { release(); }
  GrowBuffer(GrowBuffer&& other) noexcept
      : memory_(other.memory_),
        data_(std::exchange(other.data_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  GrowBuffer& operator=(GrowBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  /// Returns n elements with undefined contents. Growth adds an eighth and at least 128 bytes, so
  /// that a slowly growing scene rarely allocates. On the host, if a buffer already has memory,
  /// growth adds a third, because untouched pages take no memory there.
  View<T> ensure(std::size_t n) {
    if (n > capacity_) grow(n);
    return {data_, n};
  }

  T* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  std::size_t bytes() const { return capacity_ * sizeof(T); }

 private:
  void grow(std::size_t n) {
    memory_.requireMayGrow();
    std::size_t grown = n + n / 8 + std::max<std::size_t>(16, 128 / sizeof(T));
    // New memory costs a page fault for each page, so a buffer that grows again gets more at once.
    if constexpr (requires { Memory::kIsLazy; })
      if (capacity_ > 0) grown = std::max(grown, n + n / 3);
    // With doubling, the memory that waits to be freed is never more than the memory in use.
    if (memory_.keepsReleased()) grown = std::max(grown, 2 * capacity_);
    constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max() / sizeof(T);
    if (grown < n || grown > kMax) throw std::bad_alloc();  // possible on 32-bit systems
    release();  // first, so that old and new memory are never held together
    data_ = static_cast<T*>(memory_.allocate(grown * sizeof(T)));
    capacity_ = grown;
  }

  void release() {
    if (data_ != nullptr) memory_.release(data_, bytes());
    data_ = nullptr;
    capacity_ = 0;
  }

  [[no_unique_address]] Memory memory_;
  T* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace lbvh

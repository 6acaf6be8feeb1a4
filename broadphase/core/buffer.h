// SPDX-License-Identifier: Zlib
// Storage that only grows, uninitialised and move-only, in whatever memory the policy gives. Not a
// container: no elements are kept when it grows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "broadphase/types.h"

namespace lbvh {

/// @tparam Memory small and copyable, with allocate(bytes), which throws, and release(pointer,
///   bytes), which does not; requireMayGrow(), which throws where nothing may be allocated now; and
///   keepsReleased(): whether what is released is freed only in the end
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

  /// Room for n elements, contents undefined. Growth adds an eighth and 128 bytes, so that a slowly
  /// growing scene seldom allocates. The system gives no memory to host pages that are never
  /// touched.
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
    // By doubling, what waits to be freed is never more than what is in use.
    if (memory_.keepsReleased()) grown = std::max(grown, 2 * capacity_);
    constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / sizeof(T);
    if (grown < n || grown > kMost) throw std::bad_alloc();  // on systems of 32 bits
    release();  // first, so that old and new are never held together
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

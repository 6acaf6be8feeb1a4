// Storage that only grows, uninitialised and move-only, in whatever memory the policy gives. Not a
// container: no elements are kept when it grows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "broadphase/types.h"

namespace lbvh {

/// @tparam Memory static allocate(bytes), which throws, and release(pointer), which does not
template <class T, class Memory>
class GrowBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// Room for n elements, contents undefined. Growth adds an eighth and 128 bytes, so that a slowly
  /// growing scene seldom allocates. The system gives no memory to host pages that are never
  /// touched.
  View<T> ensure(std::size_t n) {
    if (n > capacity_) {
      const std::size_t grown = n + n / 8 + std::max<std::size_t>(16, 128 / sizeof(T));
      data_.reset();  // first, so that old and new are never held together
      capacity_ = 0;
      data_.reset(static_cast<T*>(Memory::allocate(grown * sizeof(T))));
      capacity_ = grown;
    }
    return {data_.get(), n};
  }

  T* data() const { return data_.get(); }
  std::size_t capacity() const { return capacity_; }
  std::size_t bytes() const { return capacity_ * sizeof(T); }

 private:
  struct Release {
    void operator()(T* p) const { Memory::release(p); }
  };
  std::unique_ptr<T, Release> data_;
  std::size_t capacity_ = 0;
};

}  // namespace lbvh

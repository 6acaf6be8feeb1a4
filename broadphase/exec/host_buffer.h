// Grow-only, uninitialised, move-only storage on the host. Not a container: no elements are kept
// when it grows.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

#include "broadphase/types.h"

namespace lbvh {

template <class T>
class HostBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// Room for n elements, contents undefined. Growth adds an eighth, so that a slowly growing
  /// scene seldom allocates; the system gives no memory to pages that are never touched.
  View<T> ensure(std::size_t n) {
    if (n > capacity_) {
      const std::size_t grown = n + n / 8 + 16;
      data_.reset();  // first, so that old and new are never held together
      capacity_ = 0;
      data_.reset(static_cast<T*>(::operator new (grown * sizeof(T), std::align_val_t{64})));
      capacity_ = grown;
    }
    return {data_.get(), n};
  }

  T* data() const { return data_.get(); }
  std::size_t capacity() const { return capacity_; }
  std::size_t bytes() const { return capacity_ * sizeof(T); }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t capacity_ = 0;
};

}  // namespace lbvh

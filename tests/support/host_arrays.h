// SPDX-License-Identifier: Zlib
// Arrays in host memory, for the checks that run on the host and on the GPU
// (device_scene_asking.h).
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

struct CUstream_st;

namespace lbvh::test {

/// Each array is allocated without spare capacity, so that AddressSanitizer detects accesses beyond
/// its end.
class HostArrays {
 public:
  static constexpr bool kNeverCuts = true;

  template <class T>
  T* put(const std::vector<T>& list) {
    if (list.empty()) return nullptr;
    auto kept = std::make_shared<std::vector<T>>(list);
    T* const there = kept->data();
    lists_.push_back(std::move(kept));
    return there;
  }
  template <class T>
  std::vector<std::remove_const_t<T>> get(T* there, std::size_t size) const {
    return {there, there + size};
  }
  void clear() { lists_.clear(); }
  CUstream_st* stream() const { return nullptr; }
  void wait() const {}

 private:
  std::vector<std::shared_ptr<void>> lists_;
};

}  // namespace lbvh::test

// For engines that keep their boxes on the GPU: device pointers in, sorted pairs on the device out,
// all on the caller's stream. The host neither waits nor learns anything.
// No delta and no fallback; for those see pair_finder.h. C++17, needs no CUDA header.
#pragma once

#include <cstdint>
#include <memory>

#include "broadphase/types.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace lbvh {

/// Finds all overlapping pairs of boxes on the GPU: the same ones in the same order as PairFinder.
/// Used by one thread at a time and on one stream, or on several that wait for each other.
class DevicePairFinder {
 public:
  /// @param leastCapacity pairs that fit from the start; 0: eight a box
  /// @throws std::runtime_error if there is no GPU (whyUnavailable(Backend::cuda) says why)
  explicit DevicePairFinder(std::size_t leastCapacity = 0);
  ~DevicePairFinder();
  DevicePairFinder(DevicePairFinder&&) noexcept;
  DevicePairFinder& operator=(DevicePairFinder&&) noexcept;

  /// Asks `stream` to find the pairs among `boxes` (at most 2^30; with `filters` only those that
  /// `shouldCollide()` accepts), which it reads when its turn comes. Returns at once; only when
  /// memory has to grow does the host wait. The capacity follows the counts of the calls that are
  /// over when this one begins: after a list that was not complete, synchronise and call again.
  /// @throws std::invalid_argument, std::length_error as PairFinder::update
  /// @throws std::runtime_error if a CUDA call fails
  DevicePairs find(View<const Aabb> boxes, View<const Filter> filters, CUstream_st* stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
/// @file
/// For engines that keep their boxes on the GPU: device pointers in, sorted pairs on the device
/// out, all on the caller's stream, which may be captured. The host neither waits nor learns
/// anything. No delta and no fallback; for those see pair_finder.h. C++17, needs no CUDA header.
#pragma once

#include <cstdint>
#include <memory>

#include "broadphase/export.h"
#include "broadphase/options.h"
#include "broadphase/types.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace lbvh {

/// What a DevicePairFinder is made with.
struct DeviceOptions {
  /// Pairs that fit from the start; 0: eight a box.
  std::size_t leastCapacity = 0;

  /// The GPU, by CUDA's number. -1: the calling thread's current one when the finder is made.
  int device = -1;

  /// A search stops when it has found more. Then `*count` exceeds it, and says no more than that:
  /// so that a scene in which everything overlaps cannot keep the device for seconds.
  std::uint64_t maxPairs = std::uint64_t{1} << 28;

  /// Where boxes and pairs lie. With Backend::host all pointers are into the host's memory, streams
  /// are null, and find() returns when it is done: for programs that are tested without a GPU. The
  /// pairs are the same. Backend::automatic is an error, for nobody could tell where they lie.
  Backend backend = Backend::cuda;

  /// On the host; 0: all cores. Not negative.
  int threads = 0;
};

/// Finds all overlapping pairs of boxes on the GPU, or with the same calls on the host: the same
/// ones in the same order as PairFinder. Used by one thread at a time, on one stream or on several
/// that wait for each other. It may be any thread, whatever its current device is; that, its
/// capture mode and its last error stay as they are.
class GPULBVH_API DevicePairFinder {
 public:
  /// @throws std::runtime_error if the GPU cannot be had; of the current device
  ///   whyUnavailable(Backend::cuda) says why
  /// @throws std::length_error if `leastCapacity` is more than 2^31 - 1
  /// @throws std::invalid_argument on Backend::automatic, or if `threads` is negative
  explicit DevicePairFinder(const DeviceOptions& options);
  /// The same, with the other options as they are by default.
  explicit DevicePairFinder(std::size_t leastCapacity = 0);

  /// Waits for the last find() outside a capture. Its pairs must not be read any more, and graphs
  /// with a find() in them must not run: they use the finder's memory.
  ~DevicePairFinder();
  /// What was moved from may only be assigned to or destroyed.
  DevicePairFinder(DevicePairFinder&&) noexcept;
  /// As the constructor; what was there before goes as by the destructor.
  DevicePairFinder& operator=(DevicePairFinder&&) noexcept;

  /// Makes room for searches in captured streams: among up to `boxes` boxes, for `pairs` pairs (0:
  /// eight a box), which are the `capacity` of each. Waits for the last find(), and for a search
  /// among empty boxes, so that all code is loaded, too. It is a search like others: nothing may
  /// read the pairs of the last one any more, and no graph with a find() in it may run meanwhile.
  /// @throws std::length_error on more than 2^30 boxes or 2^31 - 1 pairs
  /// @throws std::runtime_error if a CUDA call fails
  void reserve(std::size_t boxes, std::size_t pairs);

  /// Asks `stream` to find the pairs among `boxes` (at most 2^30; with `filters` only those that
  /// `shouldCollide()` accepts), which it reads when its turn comes. Returns at once. The capacity
  /// follows the counts of the calls that are over when this one begins: after a list that was not
  /// complete, synchronise and call again.
  ///
  /// The stream may be captured. The graph can then be launched again and again: each launch reads
  /// the boxes that are there at its time, and writes to where the returned view points. Its
  /// capacity is that of the last reserve(). A graph takes its turn as a find() does.
  ///
  /// On the host the list is always complete, unless there are more than `maxPairs`. Then it is
  /// empty, with a capacity of 0.
  /// @throws std::invalid_argument, std::length_error as PairFinder::update
  /// @throws std::invalid_argument on the host, if there is a stream
  /// @throws std::bad_alloc on the host; the pairs of the last search are gone
  /// @throws std::length_error while `stream` is captured, if reserve() made no room for so many
  ///   boxes; the capture goes on
  /// @throws std::runtime_error if a CUDA call fails, or if an error is pending on this thread
  ///   (cudaPeekAtLastError) and `stream` is cudaStreamPerThread
  DevicePairs find(View<const Aabb> boxes, View<const Filter> filters, CUstream_st* stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lbvh

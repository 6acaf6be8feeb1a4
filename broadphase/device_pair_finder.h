// SPDX-License-Identifier: Zlib
/// @file
/// For engines that keep their boxes on the GPU: the finder reads boxes in device memory, and
/// writes pairs to device memory. All work is on the caller's stream, which may be captured. The
/// host does not wait and receives no results. The same calls work on host memory. docs/device.md
/// is the guide. C++17, needs no CUDA header.
#pragma once

#include <cstdint>
#include <memory>

#include "device_query.h"
#include "device_scene.h"
#include "export.h"
#include "options.h"
#include "types.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace lbvh {

/// The result of find() in version 0.2: the sorted pairs, in the finder's memory.
struct DevicePairs {
  const Pair* data = nullptr;            ///< the first min(*count, capacity) pairs are valid
  const std::uint64_t* count = nullptr;  ///< in the same memory: the number of pairs found
  std::size_t capacity = 0;              ///< if *count exceeds it, the list is truncated
};

/// Finds all overlapping pairs of boxes on the GPU or, with the same calls, on the host. For a
/// single world, it finds the same pairs in the same order as PairFinder. After a search the finder
/// also answers queries of rays and boxes.
///
/// Only one thread at a time may use an instance, on one stream or on several streams that wait for
/// each other. The thread may have any current device. Its current device, capture mode and last
/// error are preserved.
class GPULBVH_API DevicePairFinder {
 public:
  /// @throws std::runtime_error if the GPU is not available, or has found wrong pairs for a
  ///   PairFinder of this process; for the current device whyUnavailable(Backend::cuda) gives the
  ///   reason
  /// @throws std::length_error if `initialPairCapacity` is more than 2^31 - 1
  /// @throws std::invalid_argument if `threads` is negative, or `allocator` has only one of its
  ///   functions
  explicit DevicePairFinder(const DeviceOptions& options = {});

  /// Waits for all calls outside of captures. After that, lists in the finder's memory must not be
  /// read, and graphs that contain a find() must not run.
  ~DevicePairFinder();
  /// A moved-from finder may only be assigned to or destroyed.
  DevicePairFinder(DevicePairFinder&&) noexcept;
  /// Destroys this finder's state, then takes over the other finder's.
  DevicePairFinder& operator=(DevicePairFinder&&) noexcept;

  /// Queues a search on `stream` and returns at once. The search reads the scene when it runs.
  /// Lists in the finder's memory are sized from the counts of searches that have completed. After
  /// a truncated list, synchronise and call find() again. On the host these lists are never
  /// truncated.
  ///
  /// The stream may be captured, and the graph launched many times. Each launch reads the current
  /// contents of the scene's arrays and writes to the returned views. For views in the finder's
  /// memory, reserve() has set the capacity. Each launch counts as a search: queries and changes
  /// refer to the search that ran last.
  /// @throws std::invalid_argument if an array is missing, misaligned, too small, or not in the
  ///   finder's memory space
  /// @throws std::invalid_argument if there are too many worlds, or if `changes` is set and the
  ///   layout is not PairLayout::sorted
  /// @throws std::invalid_argument on the host, if `stream` is not null
  /// @throws std::length_error on more than 2^30 boxes
  /// @throws std::length_error during a capture, if reserve() reserved too little (the capture
  ///   continues, without this search)
  /// @throws std::length_error with `changes`, if a search with `changes` was captured and this one
  ///   needs more capacity
  /// @throws std::bad_alloc on the host; the lists of the last search are then lost
  /// @throws std::runtime_error if a CUDA call fails
  /// @throws std::runtime_error during a capture, if the last search failed and neither reserve()
  ///   nor a call outside of captures has succeeded since
  /// @throws std::runtime_error if `stream` is cudaStreamPerThread and an error is pending on this
  ///   thread (cudaPeekAtLastError)
  DeviceLists find(const DeviceScene& scene, const DeviceRequest& request, CUstream_st* stream);

  /// Allocates memory for captured searches like this one: with the same numbers of boxes and
  /// worlds, and the same arrays and lists. Each list of the finder gets a capacity of `pairs`
  /// pairs (0: eight per box). No array is read.
  ///
  /// The call waits for the last search, then runs searches without valid boxes. Afterwards the
  /// lists of the last search must not be read. During the call, no graph that contains a search
  /// may run.
  /// @throws std::invalid_argument, std::length_error as find() does
  /// @throws std::length_error on more than 2^31 - 1 pairs
  /// @throws std::runtime_error if a CUDA call fails
  void reserve(const DeviceScene& scene, const DeviceRequest& request, std::size_t pairs);

  /// Queues a query on `stream` for the first box that each ray hits, as RayTest defines it.
  /// @param hits in the finder's memory space, with one element for each ray
  /// @throws as find() does
  void closestHits(const RayBatch& rays, RayHit* hits, CUstream_st* stream);
  /// Queues a query on `stream` that writes 1 for each ray that hits a box, and 0 for each ray that
  /// hits none.
  /// @throws as find() does
  void anyHits(const RayBatch& rays, std::uint8_t* hits, CUstream_st* stream);
  /// Queues a query on `stream` for all boxes that each ray hits, as found by BoxTree::rayTest().
  /// @param list memory for the list; null: the finder's memory, which grows like the memory of the
  ///   pair lists
  /// @throws as find() does
  DeviceHits allHits(const RayBatch& rays, View<std::uint32_t> list, CUstream_st* stream);
  /// Queues a query on `stream` for all boxes that overlap each of `boxes`, as found by
  /// BoxTree::aabbTest().
  /// @throws as find() does
  DeviceHits allHits(const BoxBatch& boxes, View<std::uint32_t> list, CUstream_st* stream);
  /// Allocates memory for queries in captured streams. Call it after reserve() for the searches.
  /// @param queries maximum number of queries in a call
  /// @param hits maximum number of hits of all queries in a call; 0: eight per query
  /// @throws as reserve() does
  void reserveQueries(std::size_t queries, std::size_t hits);

  // Deprecated names of version 0.2, to be removed in 0.4.

  /// Sets DeviceOptions::initialPairCapacity, and leaves the other options at their defaults.
  [[deprecated("use DeviceOptions::initialPairCapacity")]] explicit DevicePairFinder(
      std::size_t initialPairCapacity);
  /// Calls find() with DeviceScene::of(boxes, filters) and sorted pairs.
  /// @throws as find() does; std::invalid_argument if the number of filters is neither 0 nor the
  ///   number of boxes
  [[deprecated("use find() with a DeviceScene")]] DevicePairs find(View<const Aabb> boxes,
                                                                   View<const Filter> filters,
                                                                   CUstream_st* stream);
  /// Allocates memory like the other reserve(), for the deprecated find() above.
  [[deprecated("use reserve() with a DeviceScene")]] void reserve(std::size_t boxes,
                                                                  std::size_t pairs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lbvh

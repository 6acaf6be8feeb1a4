// SPDX-License-Identifier: Zlib
/// @file
/// For engines that keep their boxes on the GPU: device pointers in, pairs on the device out, all
/// on the caller's stream, which may be captured. The host neither waits nor learns anything. The
/// same calls work on the host's memory. docs/device.md is the guide. C++17, needs no CUDA header.
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

/// Finds all overlapping pairs of boxes on the GPU, or with the same calls on the host: those of
/// one world are the same ones in the same order as PairFinder's. Then answers rays and boxes.
///
/// Used by one thread at a time, on one stream or on several that wait for each other. It may be
/// any thread, whatever its current device is; that, its capture mode and its last error stay as
/// they are.
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

  /// Asks `stream` for a search, which reads the scene when its turn comes, and returns at once.
  /// Of lists in the finder's memory the room follows the counts of the calls that are over when
  /// this one begins: after one that was cut, synchronise and call again. On the host they are
  /// never cut.
  ///
  /// The stream may be captured. The graph can then be launched again and again: each launch reads
  /// what the scene's arrays hold at its time, and writes to where the returned views point. The
  /// room is what was reserved for such searches. A graph takes its turn as a find() does.
  /// @throws std::invalid_argument if an array is missing, misaligned, too small, or not in the
  ///   finder's space; if there are too many worlds; if `changes` are wanted and the form is not
  ///   PairForm::sorted; on the host, if there is a stream
  /// @throws std::length_error on more than 2^30 boxes; while `stream` is captured, if reserve()
  ///   made no room: the capture goes on; with `changes`, if some have been captured and this one
  ///   needs more room than they have
  /// @throws std::bad_alloc on the host; the lists of the last search are gone
  /// @throws std::runtime_error if a CUDA call fails, or if an error is pending on this thread
  ///   (cudaPeekAtLastError) and `stream` is cudaStreamPerThread
  DeviceLists find(const DeviceScene& scene, const DeviceRequest& request, CUstream_st* stream);

  /// Makes room for searches like this one in captured streams: with as many boxes and worlds, the
  /// same arrays and lists, for `pairs` pairs (0: eight a box) in each list of the finder's. No
  /// array is read. Waits for the last search, and for one among empty boxes, so that all code is
  /// loaded, too. It is a search like others: nothing may read the lists of the last one any more,
  /// and no graph with a search in it may run meanwhile.
  /// @throws std::invalid_argument, std::length_error as find()
  /// @throws std::length_error on more than 2^31 - 1 pairs
  /// @throws std::runtime_error if a CUDA call fails
  void reserve(const DeviceScene& scene, const DeviceRequest& request, std::size_t pairs);

  /// The pairs of packed boxes, sorted, in the finder's memory. With `filters` (empty: all accept
  /// each other) only those that `shouldCollide()` accepts.
  /// @throws as above; std::invalid_argument if there are filters, but not one for each box
  DevicePairs find(View<const Aabb> boxes, View<const Filter> filters, CUstream_st* stream);
  /// Makes room for them.
  void reserve(std::size_t boxes, std::size_t pairs);

  /// Asks `stream` for the first box that each ray meets, as RayTest defines it.
  /// @param hits in the finder's space, room for one a ray
  /// @throws as find()
  void closestHits(const RayBatch& rays, RayHit* hits, CUstream_st* stream);
  /// Asks `stream` whether each ray meets a box: 1 if so, else 0.
  /// @throws as find()
  void anyHits(const RayBatch& rays, std::uint8_t* hits, CUstream_st* stream);
  /// Asks `stream` for all boxes that each ray meets: what rayTestBatch() finds.
  /// @param room for the list; null: the finder's memory, which grows like that of pairs
  /// @throws as find()
  DeviceHits allHits(const RayBatch& rays, View<std::uint32_t> room, CUstream_st* stream);
  /// Asks `stream` for all boxes that overlap each of these: what aabbTestBatch() finds.
  DeviceHits allHits(const BoxBatch& boxes, View<std::uint32_t> room, CUstream_st* stream);
  /// Makes room for queries in captured streams, after the reserve() of their searches: for so many
  /// queries in a call, and hits of all of them (0: eight a query).
  /// @throws as reserve()
  void reserveQueries(std::size_t queries, std::size_t hits);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lbvh

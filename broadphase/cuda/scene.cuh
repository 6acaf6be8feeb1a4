// SPDX-License-Identifier: Zlib
// DevicePairFinder's calls on an NVIDIA GPU, on the caller's stream, which may be captured. The
// caller's thread keeps its device, its last error and its capture mode.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "broadphase/core/device_pipeline.h"
#include "broadphase/cuda/queries.cuh"
#include "broadphase/cuda/runtime/array_places.cuh"
#include "broadphase/cuda/step.h"

namespace lbvh {

/// On the current device, on a thread without a pending error.
class StreamSearch : DeviceQueries {
 public:
  using DeviceQueries::forgetLast;

  explicit StreamSearch(const DeviceOptions& options)
      : DeviceQueries(options), leastCapacity_(options.leastCapacity) {
    cudaCheck(cudaEventCreateWithFlags(&isOver_, cudaEventDisableTiming));
  }
  ~StreamSearch() {
    cudaEventSynchronize(isOver_);  // its memory is freed next
    cudaEventDestroy(isOver_);
    space_.useOwnStream();  // the caller's may be gone
  }
  StreamSearch(const StreamSearch&) = delete;
  StreamSearch& operator=(const StreamSearch&) = delete;

  DeviceLists find(const DeviceScene& scene, const DeviceRequest& request, cudaStream_t stream) {
    return on(
        stream,
        [&] {
          const AfreshAfterFailure guard{*this};
          adapt();
          plan_.begin(scene.boxes, scene.boxes, 0);
          plan_.pairs = std::max(plan_.pairs, leastCapacity_);
          const DeviceLists lists = search(scene, request);
          space_.forEach(1, Report{header(), reported_.ensure(2).data});
          wasAsked_ = true;
          return lists;
        },
        [&] { return findInCapture(scene, request); });
  }

  /// Searches among as many boxes with nothing in them, with codes of both lengths, and once for
  /// each way to sort them: then all memory is there, and all code is loaded.
  void reserve(const DeviceScene& scene, const DeviceRequest& request, std::size_t pairs) {
    reservedPairs_ = std::max(reservedPairs_, pairs);
    leastCapacity_ = std::max(leastCapacity_, pairs);
    onOwnStream([&] {
      for (const std::size_t most : {scene.boxes, kMostMerged, kLeastMerged - 1})
        for (const int bits : {10, 21})
          searchFor(bits, reservedPairs_, emptied(scene, request, std::min(scene.boxes, most)),
                    withoutWritten(request));
    });
    reservedBoxes_ = std::max(reservedBoxes_, scene.boxes);
  }

  void closestHits(const RayBatch& rays, RayHit* hits, cudaStream_t stream) {
    const auto ask = [&] { closest(rays, hits); };
    on(stream, ask, ask);
  }
  void anyHits(const RayBatch& rays, std::uint8_t* hits, cudaStream_t stream) {
    const auto ask = [&] { any(rays, hits); };
    on(stream, ask, ask);
  }
  template <class Queries>
  DeviceHits allHits(const Queries& queries, View<std::uint32_t> room, cudaStream_t stream) {
    return on(
        stream,
        [&] {
          adapt();
          hits_ = std::max({hits_, reservedHits_, roomFor(8 * queries.size())});
          const DeviceHits found = all(queries, room, hits_);
          space_.forEach(1, Report{queryHeader(), reported_.ensure(2).data + 1});
          wereHitsAsked_ = true;
          return found;
        },
        [&] { return all(queries, room, reservedHits_); });
  }

  /// Like reserve().
  void reserveQueries(std::size_t queries, std::size_t hits) {
    reservedHits_ = std::max(reservedHits_, hits);
    onOwnStream([&] {
      const View<Ray> rays = noRays_.ensure(std::max<std::size_t>(queries, 1));
      const View<NoQuery> one = noQuery_.ensure(1);
      space_.fill(rays, 0xFF);
      space_.fill(one, 0xFF);
      closest({{rays.data, 1}}, &one.data->hit);
      any({{rays.data, 1}}, &one.data->isHit);
      all(RayQueries{{{rays.data, queries}}}, {}, reservedHits_);
      all(BoxQueries{{{&one.data->box, 1}}}, {}, reservedHits_);
    });
  }

 private:
  /// In the stream behind what was asked of it, also behind half a search: until then our memory
  /// is in use.
  struct Mark {
    cudaEvent_t event;
    cudaStream_t stream;
    ~Mark() {
      if (cudaEventRecord(event, stream) != cudaSuccess) cudaStreamSynchronize(stream);
    }
  };

  /// What a graph may hold depends on nothing that earlier calls found, and grows nothing.
  template <class Ask, class AskInCapture>
  auto on(cudaStream_t stream, const Ask& ask, const AskInCapture& askInCapture)
      -> decltype(ask()) {
    space_.useStream(stream);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaCheck(cudaStreamIsCapturing(stream, &capture));
    if (capture == cudaStreamCaptureStatusNone) {
      const Mark mark{isOver_, stream};
      startAfreshIfBroken();
      return ask();
    }
    space_.allMemory().keepAll();
    const CudaMemory::Ban ban(space_.allMemory());
    return askInCapture();
  }

  /// Where a search throws that has begun, parts of it may run. If even this fails, the next call
  /// does it.
  struct AfreshAfterFailure {
    StreamSearch& search;
    ~AfreshAfterFailure() {
      try {
        search.startAfreshIfBroken();
      } catch (...) {
      }
    }
  };

  template <class F>
  void onOwnStream(const F& f) {
    cudaCheck(cudaEventSynchronize(isOver_));
    space_.useOwnStream();
    struct Drain {  // also after an exception: the next search may be on another stream
      CudaSpace& space;
      ~Drain() { space.isLost(); }
    } const drain{space_};
    f();
    reported_.ensure(2);
    space_.wait();
  }

  /// Rooms follow the counts of calls that are over.
  void adapt() {
    if (!isOver()) return;
    if (std::exchange(wasAsked_, false)) plan_.adaptTo(reported_.data()[0]);
    if (std::exchange(wereHitsAsked_, false))
      hits_ = std::max(hits_, roomFor(reported_.data()[1].pairs / 8 * 9 + 9));
  }
  std::size_t roomFor(std::uint64_t hits) const {
    return static_cast<std::size_t>(std::min<std::uint64_t>(hits, limit_));
  }

  DeviceLists findInCapture(const DeviceScene& scene, const DeviceRequest& request) {
    if (scene.boxes > reservedBoxes_)
      throw std::length_error("DevicePairFinder: a stream is captured, and there is room for " +
                              std::to_string(reservedBoxes_) + " boxes, not " +
                              std::to_string(scene.boxes) + ": reserve() before the capture");
    const std::size_t room = roomInCapture(request, reservedPairs_);
    const DeviceLists lists = searchFor(scene.boxes > (1u << 20) ? 14 : 10, room, scene, request);
    if (request.changes) fixKept();
    return lists;
  }

  /// Whatever the plan has now.
  DeviceLists searchFor(int bits, std::size_t pairs, const DeviceScene& scene,
                        const DeviceRequest& request) {
    struct Restore {
      StepPlan& plan;
      const StepPlan before;
      ~Restore() { plan = before; }
    } const restore{plan_, plan_};
    plan_.bits = bits;
    plan_.pairs = pairs;
    return search(scene, request);
  }

  /// A scene like this one, but nobody reads its arrays.
  DeviceScene emptied(DeviceScene scene, const DeviceRequest& request, std::size_t boxes) {
    if (isPlain(scene, request)) {
      const View<Aabb> nowhere = nowhere_.ensure(boxes);
      space_.fill(nowhere, 0xFF);
      return DeviceScene::of(nowhere);
    }
    scene.boxes = boxes;
    scene.count = none_.data();
    scene.excluded = {};
    return scene;
  }
  /// What would be written although nothing is found goes to our memory.
  static DeviceRequest withoutWritten(DeviceRequest request) {
    request.offsets = request.byWorld = {};
    return request;
  }

  /// What a reservation asks besides rays, and where the answers go.
  struct NoQuery {
    Aabb box;
    RayHit hit;
    std::uint8_t isHit;
  };

  bool isOver() const {
    const cudaError_t state = cudaEventQuery(isOver_);
    if (state != cudaSuccess) cudaGetLastError();
    return state == cudaSuccess;
  }

  std::size_t leastCapacity_;
  std::size_t reservedBoxes_ = 0, reservedPairs_ = 0;
  std::size_t hits_ = 0, reservedHits_ = 0;
  PinnedBuffer<StepHeader> reported_{space_.hostMemory()};  ///< of a search, and of queries
  Buffer<Aabb> nowhere_{space_.memory()};                   ///< boxes for a reservation
  Buffer<Ray> noRays_{space_.memory()};                     ///< rays for a reservation
  Buffer<NoQuery> noQuery_{space_.memory()};
  cudaEvent_t isOver_ = nullptr;
  bool wasAsked_ = false, wereHitsAsked_ = false;
};

/// The same from any thread.
class StreamPipeline final : public DevicePipeline {
 public:
  StreamPipeline(int device, const DeviceOptions& options) : device_(device) {
    run(nullptr, [&] { search_.emplace(options); });
  }
  ~StreamPipeline() override {
    try {
      run(nullptr, [&] { search_.reset(); });
    } catch (...) {
      // The device cannot be had any more.
    }
  }

  DeviceLists find(const DeviceScene& scene, const DeviceRequest& request,
                   CUstream_st* stream) override {
    try {
      return answered(stream, [&] {
        places_.require(scene, request);
        return search_->find(scene, request, stream);
      });
    } catch (const std::logic_error&) {
      throw;  // a request that was refused has not searched
    } catch (...) {
      search_->forgetLast();
      throw;
    }
  }
  void reserve(const DeviceScene& scene, const DeviceRequest& request, std::size_t pairs) override {
    run(nullptr, [&] { search_->reserve(scene, request, pairs); });
  }

  void closestHits(const RayBatch& rays, RayHit* hits, CUstream_st* stream) override {
    run(stream, [&] {
      places_.require(rays.rays.data, rays.worlds, hits);
      search_->closestHits(rays, hits, stream);
    });
  }
  void anyHits(const RayBatch& rays, std::uint8_t* hits, CUstream_st* stream) override {
    run(stream, [&] {
      places_.require(rays.rays.data, rays.worlds, hits);
      search_->anyHits(rays, hits, stream);
    });
  }
  DeviceHits allHits(const RayBatch& rays, View<std::uint32_t> room, CUstream_st* stream) override {
    return answered(stream, [&] {
      places_.require(rays.rays.data, rays.worlds, room.data);
      return search_->allHits(RayQueries{rays}, room, stream);
    });
  }
  DeviceHits allHits(const BoxBatch& boxes, View<std::uint32_t> room,
                     CUstream_st* stream) override {
    return answered(stream, [&] {
      places_.require(boxes.boxes.data, boxes.worlds, room.data);
      return search_->allHits(BoxQueries{boxes}, room, stream);
    });
  }
  void reserveQueries(std::size_t queries, std::size_t hits) override {
    run(nullptr, [&] { search_->reserveQueries(queries, hits); });
  }

 private:
  template <class F>
  void run(cudaStream_t stream, const F& f) const {
    withoutPendingError(stream, [&] {
      const CurrentDevice device(device_);
      const RelaxedCapture relaxed;
      f();
    });
  }
  template <class F>
  auto answered(cudaStream_t stream, const F& f) const -> decltype(f()) {
    decltype(f()) answer;
    run(stream, [&] { answer = f(); });
    return answer;
  }

  const int device_;
  ArrayPlaces places_{device_};
  std::optional<StreamSearch> search_;
};

}  // namespace lbvh

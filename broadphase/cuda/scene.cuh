// SPDX-License-Identifier: Zlib
// Runs DevicePairFinder's calls on an NVIDIA GPU, on the caller's stream, which may be captured.
// The calls preserve the current device, the last error and the capture mode of the caller's
// thread.
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
#include "broadphase/cuda/scene_search.cuh"
#include "broadphase/cuda/step_plan.h"

namespace lbvh {

/// A search and its queries. Its device must be the current one, and the calling thread must have
/// no pending CUDA error.
class StreamSearch {
 public:
  explicit StreamSearch(const DeviceOptions& options)
      : limit_(options.maxPairs),
        search_(options),
        queries_(search_.buffers(), search_.searched(), limit_),
        initialPairCapacity_(options.initialPairCapacity) {
    plan_.mostPairs = limit_;
    plan_.order.mayKeep = false;
    cudaCheck(cudaEventCreateWithFlags(&isOver_, cudaEventDisableTiming));
  }
  ~StreamSearch() {
    cudaEventSynchronize(isOver_);  // the last search may still use memory that is freed next
    cudaEventDestroy(isOver_);
    space_.useOwnStream();  // the caller's stream may no longer exist
  }
  StreamSearch(const StreamSearch&) = delete;
  StreamSearch& operator=(const StreamSearch&) = delete;

  /// Marks the last search as lost. Must be called if that search threw, because the caller has
  /// none of its pairs.
  void forgetLast() { search_.forgetLast(); }

  DeviceLists find(const DeviceScene& scene, const DeviceRequest& request, cudaStream_t stream) {
    return on(
        stream,
        [&] {
          const AfreshAfterFailure guard{search_};
          adapt();
          plan_.begin(scene.boxCapacity, scene.boxCapacity, 0);
          plan_.pairs = std::max(plan_.pairs, initialPairCapacity_);
          const DeviceLists lists =
              search_.search(scene, request, {plan_.bits, plan_.pairs}, reported_.ensure(2).data());
          wasAsked_ = true;
          return lists;
        },
        [&] { return findInCapture(scene, request); });
  }

  /// Allocates all memory by running searches without valid boxes, with short and with long Morton
  /// codes, and with each kind of sort.
  void reserve(const DeviceScene& scene, const DeviceRequest& request, std::size_t pairs) {
    reservedPairs_ = std::max(reservedPairs_, pairs);
    initialPairCapacity_ = std::max(initialPairCapacity_, pairs);
    onOwnStream([&] {
      for (const std::size_t most : {scene.boxCapacity, kMaxMerged, kMinMerged - 1})
        for (const int bits : {10, 21})
          search_.search(emptied(scene, request, std::min(scene.boxCapacity, most)),
                         withoutWritten(request), {bits, reservedPairs_});
    });
    reservedBoxes_ = std::max(reservedBoxes_, scene.boxCapacity);
  }

  void closestHits(const RayBatch& rays, RayHit* hits, cudaStream_t stream) {
    const auto ask = [&] { queries_.closest(rays, hits); };
    on(stream, ask, ask);
  }
  void anyHits(const RayBatch& rays, std::uint8_t* hits, cudaStream_t stream) {
    const auto ask = [&] { queries_.any(rays, hits); };
    on(stream, ask, ask);
  }
  template <class Queries>
  DeviceHits allHits(const Queries& queries, View<std::uint32_t> list, cudaStream_t stream) {
    return on(
        stream,
        [&] {
          adapt();
          hits_ = std::max({hits_, reservedHits_, capacityFor(8 * queries.size())});
          const DeviceHits found = queries_.all(queries, list, hits_);
          space_.forEach(Report::kWords, Report{queries_.header(), reported_.ensure(2).data() + 1});
          wereHitsAsked_ = true;
          return found;
        },
        [&] {
          return space_.rehearseAndRun([&] { return queries_.all(queries, list, reservedHits_); });
        });
  }

  /// Allocates memory as reserve() does, by running queries.
  void reserveQueries(std::size_t queries, std::size_t hits) {
    reservedHits_ = std::max(reservedHits_, hits);
    onOwnStream([&] {
      const View<Ray> rays = noRays_.ensure(std::max<std::size_t>(queries, 1));
      const View<NoQuery> one = noQuery_.ensure(1);
      space_.fill(rays, 0xFF);
      space_.fill(one, 0xFF);
      queries_.closest({{rays.data(), 1}}, &one.data()->hit);
      queries_.any({{rays.data(), 1}}, &one.data()->isHit);
      queries_.all(RayQueries{{{rays.data(), queries}}}, {}, reservedHits_);
      queries_.all(BoxQueries{{{&one.data()->box, 1}}}, {}, reservedHits_);
    });
  }

 private:
  /// The destructor records an event on the stream after our work, even if a search is incomplete.
  /// The event tells when our memory is no longer in use.
  struct Mark {
    cudaEvent_t event;
    cudaStream_t stream;
    ~Mark() {
      if (cudaEventRecord(event, stream) != cudaSuccess) cudaStreamSynchronize(stream);
    }
  };

  /// Calls askInCapture() if the stream is captured, else ask(). In a capture, the work must not
  /// depend on results of earlier calls, and must not allocate.
  /// @throws std::runtime_error in a capture, if the last search failed
  template <class Ask, class AskInCapture>
  auto on(cudaStream_t stream, const Ask& ask, const AskInCapture& askInCapture)
      -> decltype(ask()) {
    space_.useStream(stream);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaCheck(cudaStreamIsCapturing(stream, &capture));
    if (capture == cudaStreamCaptureStatusNone) {
      const Mark mark{isOver_, stream};
      search_.startAfreshIfBroken();
      return ask();
    }
    // A graph must not clear the state, because each launch would clear it again.
    if (search_.isBroken())
      throw std::runtime_error(
          "DevicePairFinder: the stream is captured, and the last search failed: reserve() before "
          "the capture");
    space_.allMemory().keepAll();
    const CudaMemory::Ban ban(space_.allMemory());
    return askInCapture();
  }

  /// Clears the state if a search throws after it has begun, because parts of the search may still
  /// run. If clearing fails, the next call clears the state.
  struct AfreshAfterFailure {
    DeviceSearch& search;
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
    // Waits after an exception, too, because the next search may be on another stream.
    struct Drain {
      CudaSpace& space;
      ~Drain() { space.isLost(); }
    } const drain{space_};
    search_.startAfreshIfBroken();
    f();
    reported_.ensure(2);
    space_.wait();
  }

  /// Adapts the capacities to the counts of completed calls.
  void adapt() {
    if (!isOver()) return;
    if (std::exchange(wasAsked_, false)) plan_.adaptTo(reported_.data()[0]);
    if (std::exchange(wereHitsAsked_, false))
      hits_ = std::max(hits_, capacityFor(reported_.data()[1].pairs / 8 * 9 + 9));
  }
  std::size_t capacityFor(std::uint64_t hits) const {
    return static_cast<std::size_t>(std::min<std::uint64_t>(hits, limit_));
  }

  DeviceLists findInCapture(const DeviceScene& scene, const DeviceRequest& request) {
    if (scene.boxCapacity > reservedBoxes_)
      throw std::length_error(
          "DevicePairFinder: the stream is captured, and memory is reserved for " +
          std::to_string(reservedBoxes_) + " boxes, not " + std::to_string(scene.boxCapacity) +
          ": reserve() before the capture");
    const SearchPlan plan{scene.boxCapacity > (1u << 20) ? 14 : 10,
                          search_.capacityInCapture(request, reservedPairs_)};
    const DeviceLists lists =
        space_.rehearseAndRun([&] { return search_.search(scene, request, plan); });
    if (request.changes) search_.fixKept();
    return lists;
  }

  /// A scene with the layout of `scene` and no valid boxes. The caller's arrays are not read.
  DeviceScene emptied(DeviceScene scene, const DeviceRequest& request, std::size_t boxes) {
    if (DeviceSearch::isPlain(scene, request)) {
      const View<Aabb> nowhere = nowhere_.ensure(boxes);
      space_.fill(nowhere, 0xFF);
      return DeviceScene::of(nowhere);
    }
    scene.boxCapacity = boxes;
    const View<std::uint32_t> none = none_.ensure(1);
    space_.fill(none, 0);
    scene.boxCount = none.data();
    scene.excluded = {};
    return scene;
  }
  /// The same request, but with our memory for the lists that a search writes even if there are no
  /// pairs.
  static DeviceRequest withoutWritten(DeviceRequest request) {
    request.offsets = request.byWorld = {};
    return request;
  }

  /// The box query of a reservation, and memory for the results of its ray queries.
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

  const std::uint64_t limit_;
  DeviceSearch search_;
  DeviceQueries queries_;
  CudaSpace& space_ = search_.buffers().space;
  StepPlan plan_;
  std::size_t initialPairCapacity_;
  std::size_t reservedBoxes_ = 0, reservedPairs_ = 0;
  std::size_t hits_ = 0, reservedHits_ = 0;
  PinnedBuffer<StepHeader> reported_{space_.hostMemory()};  ///< headers of a search and of queries
  // The following buffers are used by reservations only.
  DeviceBuffer<Aabb> nowhere_{space_.memory()};
  DeviceBuffer<std::uint32_t> none_{space_.memory()};  ///< a box count of 0
  DeviceBuffer<Ray> noRays_{space_.memory()};
  DeviceBuffer<NoQuery> noQuery_{space_.memory()};
  cudaEvent_t isOver_ = nullptr;
  bool wasAsked_ = false, wereHitsAsked_ = false;
};

/// Makes a StreamSearch usable from any thread, with any current device. Checks where the caller's
/// arrays are.
class CudaDevicePipeline final : public DevicePipeline {
 public:
  CudaDevicePipeline(int device, const DeviceOptions& options)
      : device_(device), places_(device, options.validatesArrays) {
    run(nullptr, [&] { search_.emplace(options); });
  }
  ~CudaDevicePipeline() override {
    try {
      run(nullptr, [&] { search_.reset(); });
    } catch (...) {
      // The device is no longer available.
    }
  }

  DeviceLists find(const DeviceScene& scene, const DeviceRequest& request,
                   CUstream_st* stream) override {
    try {
      return answered(stream, [&] {
        requirePlaces(scene, request);
        return search_->find(scene, request, stream);
      });
    } catch (const std::logic_error&) {
      throw;  // a rejected request has queued nothing
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
      places_.require(rays.rays.data(), rays.worlds, hits);
      search_->closestHits(rays, hits, stream);
    });
  }
  void anyHits(const RayBatch& rays, std::uint8_t* hits, CUstream_st* stream) override {
    run(stream, [&] {
      places_.require(rays.rays.data(), rays.worlds, hits);
      search_->anyHits(rays, hits, stream);
    });
  }
  DeviceHits allHits(const RayBatch& rays, View<std::uint32_t> list, CUstream_st* stream) override {
    return answered(stream, [&] {
      places_.require(rays.rays.data(), rays.worlds, list.data());
      return search_->allHits(RayQueries{rays}, list, stream);
    });
  }
  DeviceHits allHits(const BoxBatch& boxes, View<std::uint32_t> list,
                     CUstream_st* stream) override {
    return answered(stream, [&] {
      places_.require(boxes.boxes.data(), boxes.worlds, list.data());
      return search_->allHits(BoxQueries{boxes}, list, stream);
    });
  }
  void reserveQueries(std::size_t queries, std::size_t hits) override {
    run(nullptr, [&] { search_->reserveQueries(queries, hits); });
  }

 private:
  void requirePlaces(const DeviceScene& scene, const DeviceRequest& request) const {
    places_.require(scene.boxCount, scene.min.data, scene.max.data, scene.margins,
                    scene.displacements.data, scene.filters, scene.bodies, scene.movable,
                    scene.worlds, scene.excluded.data());
    places_.require(request.pairs.data(), request.neighbours.data(), request.offsets.data(),
                    request.added.data(), request.removed.data(), request.byWorld.data());
  }

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
  ArrayPlaces places_;
  std::optional<StreamSearch> search_;
};

}  // namespace lbvh

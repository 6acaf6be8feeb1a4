// SPDX-License-Identifier: Zlib
// Stages 1 to 6 for boxes that are on the device, on the caller's stream, which may be captured.
// The caller's thread keeps its device, its last error and its capture mode.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "broadphase/pipelines/cuda.h"
#include "broadphase/pipelines/cuda_stages.cuh"
#include "broadphase/pipelines/limits.h"

namespace lbvh {

/// On the current device, on a thread without a pending error.
class DeviceSearch : CudaStages {
 public:
  DeviceSearch(std::size_t leastCapacity, std::uint64_t maxPairs)
      : CudaStages(CudaSpaceOptions{}),
        leastCapacity_(requireCountable(leastCapacity)),
        limit_(limitOf(maxPairs)) {
    plan_.mostPairs = limit_;
    plan_.order.mayKeep = false;
    cudaCheck(cudaEventCreateWithFlags(&isOver_, cudaEventDisableTiming));
  }
  ~DeviceSearch() {
    cudaEventSynchronize(isOver_);  // its memory is freed next
    cudaEventDestroy(isOver_);
    space_.useOwnStream();  // the caller's may be gone
  }
  DeviceSearch(const DeviceSearch&) = delete;
  DeviceSearch& operator=(const DeviceSearch&) = delete;

  DevicePairs find(View<const Aabb> boxes, View<const Filter> filters, cudaStream_t stream) {
    space_.useStream(stream);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaCheck(cudaStreamIsCapturing(stream, &capture));
    if (capture != cudaStreamCaptureStatusNone) return findInCapture(boxes, filters);
    if (wasAsked_ && isOver()) plan_.adaptTo(report());
    wasAsked_ = false;  // if a call fails
    plan_.begin(boxes.size, boxes.size, 0);
    plan_.pairs = std::max(plan_.pairs, leastCapacity_);
    const Mark mark{isOver_, stream};
    const DevicePairs pairs = search(boxes, filters);
    space_.forEach(1, Report{header(), report_.ensure(1).data});
    wasAsked_ = true;
    return pairs;
  }

  /// Searches among as many boxes with nothing in them, with codes of both lengths, and once
  /// for each way to sort them: then all memory is there, and all code is loaded.
  void reserve(std::size_t boxes, std::size_t pairs) {
    const std::size_t room = requireCountable(pairs > 0 ? pairs : 8 * boxes);
    cudaCheck(cudaEventSynchronize(isOver_));
    space_.useOwnStream();
    struct Drain {  // also after an exception: the next search may be on another stream
      CudaSpace& space;
      ~Drain() { space.isLost(); }
    } const drain{space_};
    const View<Aabb> there = nowhere_.ensure(boxes);
    space_.fill(there, 0xFF);
    for (const std::size_t most : {boxes, kMostMerged, kLeastMerged - 1})
      for (const int bits : {10, 21})
        searchFor(bits, std::max(room, reservedPairs_), {there.data, std::min(boxes, most)}, {});
    report_.ensure(1);
    space_.wait();
    reservedBoxes_ = std::max(reservedBoxes_, boxes);
    reservedPairs_ = std::max(reservedPairs_, room);
    leastCapacity_ = std::max(leastCapacity_, room);
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

  /// Nothing here depends on what earlier searches found, and nothing is reported: the graph may be
  /// launched at any time, and any number of times.
  DevicePairs findInCapture(View<const Aabb> boxes, View<const Filter> filters) {
    if (boxes.size > reservedBoxes_)
      throw std::length_error("DevicePairFinder: a stream is captured, and there is room for " +
                              std::to_string(reservedBoxes_) + " boxes, not " +
                              std::to_string(boxes.size) + ": reserve() before the capture");
    space_.allMemory().keepAll();
    const CudaMemory::Ban ban(space_.allMemory());
    return searchFor(boxes.size > (1u << 20) ? 14 : 10, reservedPairs_, boxes, filters);
  }

  /// Whatever the plan says.
  DevicePairs searchFor(int bits, std::size_t pairs, View<const Aabb> boxes,
                        View<const Filter> filters) {
    struct Restore {
      StepPlan& plan;
      const StepPlan before;
      ~Restore() { plan = before; }
    } const restore{plan_, plan_};
    plan_.bits = bits;
    plan_.pairs = pairs;
    return search(boxes, filters);
  }

  DevicePairs search(View<const Aabb> boxes, View<const Filter> filters) {
    StepStats unused;
    const LeafBlocks leaves = packBoxes(boxes, nullptr, boxes.size, unused);
    const View<Pair> found = findPairs({boxes, filters, {}, limit_}, leaves, unused);
    scatter(found, boxes.size, boxes.size, unused);
    ListComparison lists{};
    lists.fresh = listsIn(1 - current_, boxes.size);
    lists.seconds = seconds();
    lists.sortedPairs = found.data;
    lists.header = header();
    compareLists(lists);
    return {found.data, &header()->pairs, found.size};
  }

  bool isOver() const {
    const cudaError_t state = cudaEventQuery(isOver_);
    if (state != cudaSuccess) cudaGetLastError();
    return state == cudaSuccess;
  }

  const StepHeader& report() const { return *report_.data(); }

  std::size_t leastCapacity_;
  const std::uint64_t limit_;
  std::size_t reservedBoxes_ = 0, reservedPairs_ = 0;
  PinnedBuffer<StepHeader> report_{space_.hostMemory()};
  Buffer<Aabb> nowhere_{space_.memory()};  ///< boxes for a reservation
  cudaEvent_t isOver_ = nullptr;
  bool wasAsked_ = false;
};

/// The same from any thread.
class StreamPipeline final : public DevicePipeline {
 public:
  StreamPipeline(int device, std::size_t leastCapacity, std::uint64_t maxPairs) : device_(device) {
    run(nullptr, [&] { search_.emplace(leastCapacity, maxPairs); });
  }
  ~StreamPipeline() override {
    try {
      run(nullptr, [&] { search_.reset(); });
    } catch (...) {
      // The device cannot be had any more.
    }
  }

  DevicePairs find(View<const Aabb> boxes, View<const Filter> filters,
                   CUstream_st* stream) override {
    DevicePairs pairs;
    run(stream, [&] { pairs = search_->find(boxes, filters, stream); });
    return pairs;
  }
  void reserve(std::size_t boxes, std::size_t pairs) override {
    run(nullptr, [&] { search_->reserve(boxes, pairs); });
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

  const int device_;
  std::optional<DeviceSearch> search_;
};

}  // namespace lbvh

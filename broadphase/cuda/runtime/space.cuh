// SPDX-License-Identifier: Zlib
// An NVIDIA GPU as an execution space: one stream, CUB for sorts. Nothing waits but wait(); every
// call is checked.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "broadphase/core/space_error.h"
#include "broadphase/cuda/runtime/buffer.cuh"
#include "broadphase/cuda/runtime/check.cuh"
#include "broadphase/cuda/runtime/graphs.cuh"
#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/cuda/runtime/memory.cuh"
#include "broadphase/cuda/runtime/merge_sort.cuh"
#include "broadphase/cuda/runtime/threads.cuh"
#include "broadphase/cuda/runtime/upload.cuh"
#include "broadphase/types.h"

namespace lbvh {

struct CudaSpaceOptions {
  int device = -1;           ///< from now on this thread's current one; -1: what it is
  bool graphs = true;        ///< replay() records; off: it just runs
  bool timesStages = false;  ///< off, `timed` only names the stages in tools: an event costs a
                             ///< microsecond
  DeviceAllocator allocator{};
};

class CudaSpace {
 public:
  /// CUB's counts and ours have 32 bits; the last blocks of a kernel must not wrap around.
  static constexpr std::size_t kMostElements = 0xFFFF0000;
  /// @throws std::length_error before a count is cut
  static std::uint32_t count(std::size_t n) {
    if (n > kMostElements) throw std::length_error("more elements than a GPU's kernels can count");
    return static_cast<std::uint32_t>(n);
  }

  explicit CudaSpace(const CudaSpaceOptions& options = {})
      : device_(useDevice(options.device)),
        ownStream_(makeStream()),
        stream_(ownStream_.get()),
        memory_(stream_, hasPools(device_), options.allocator),
        recordsGraphs_(options.graphs),
        timesStages_(options.timesStages) {}
  ~CudaSpace() {
    const RelaxedCapture relaxed;
    cudaStreamSynchronize(ownStream_.get());  // before its memory goes
  }
  CudaSpace(const CudaSpace&) = delete;
  CudaSpace& operator=(const CudaSpace&) = delete;

  DeviceMemory memory() { return {&memory_}; }
  PinnedMemory hostMemory() { return {&memory_}; }
  bool timesStages() const { return timesStages_; }
  CudaMemory& allMemory() { return memory_; }
  const CudaMemory& allMemory() const { return memory_; }

  /// From now on all work goes to the caller's stream.
  void useStream(cudaStream_t stream) {
    stream_ = stream;
    memory_.useStream(stream);
  }
  void useOwnStream() { useStream(ownStream_.get()); }

  /// After an error: until what was begun is over. @return whether the error is sticky, so that
  /// every later call will fail as well, as after a kernel that faulted
  bool isLost() {
    if (cudaStreamSynchronize(ownStream_.get()) == cudaSuccess) return false;
    cudaGetLastError();
    return true;
  }

  template <class Body>
  void forEach(std::size_t n, const Body& body) {
    if (n == 0) return;
    const cudaLaunchConfig_t config = launchFor(n);
    cudaCheck(cudaLaunchKernelEx(&config, forEachKernel<Body>, body, count(n)));
  }

  template <class Arguments>
  void launch(std::size_t blocks, unsigned threads, void (*kernel)(Arguments),
              const Arguments& arguments) {
    if (blocks == 0) return;
    const cudaLaunchConfig_t config = launchOf(blocks, threads);
    cudaCheck(cudaLaunchKernelEx(&config, kernel, arguments));
  }

  /// Sorts by `bits` bits of the keys from bit `shift` on, stable, from one pair of arrays to
  /// another. The first may be overwritten.
  template <class Key>
  void sortInto(View<Key> keys, View<std::uint32_t> values, View<Key> sortedKeys,
                View<std::uint32_t> sortedValues, int shift, int bits) {
    callCub([&](void* scratch, std::size_t& bytes, cudaStream_t stream) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data, sortedKeys.data,
                                             values.data, sortedValues.data, count(keys.size),
                                             shift, shift + bits, stream);
    });
  }

  /// The same in place; see CudaBlocks::merges.
  template <class Key>
  void mergeSort(View<Key> keys, View<std::uint32_t> values) requires kCubMerges {
    callCub([&](void* scratch, std::size_t& bytes, cudaStream_t stream) {
      return mergeSortPairs(scratch, bytes, keys.data, values.data, count(keys.size), Less{},
                            stream);
    });
  }

  /// CUB's two calls: how much scratch memory it needs, then the work.
  /// @param call call(scratch, bytes, stream)
  template <class Call>
  void callCub(const Call& call) {
    std::size_t bytes = 0;
    checkCub([&] { return call(nullptr, bytes, stream_); });
    void* scratch = temporary_.ensure(bytes + 1).data;
    checkCub([&] { return call(scratch, bytes, stream_); });
  }

  template <class T>
  View<const T> upload(View<const T> host, UploadBuffer<T>& buffer,
                       View<const std::uint64_t> changed = {}) {
    return buffer.upload(host, changed, stream_,
                         [this](std::size_t n, const auto& body) { forEach(n, body); });
  }

  /// Drops what was begun before an error, and copies while the caller waits. Either side may be
  /// ordinary memory of the host, which the driver copies in pieces of its own.
  template <class T>
  void abandonAndCopy(View<const T> from, T* to) {
    useEvents(ownEvents_);
    copy(from, to);
  }
  template <class T>
  void copy(View<const T> from, T* to) {
    if (from.empty()) return;
    cudaCheck(cudaMemcpyAsync(to, from.data, from.size * sizeof(T), cudaMemcpyDefault, stream_));
    cudaCheck(cudaStreamSynchronize(stream_));
  }

  template <class T>
  void fill(View<T> view, int byte) {
    if (view.empty()) return;
    cudaCheck(cudaMemsetAsync(view.data, byte, view.size * sizeof(T), stream_));
  }

  void wait() {
    cudaCheck(cudaStreamSynchronize(stream_));
    if (events_->isOpen()) return;  // a stage that waits before its end
    events_->read();
    useEvents(ownEvents_);
  }

  /// The first time f runs, the second time it is recorded; from then on the recording runs, until
  /// any memory of the space moves. Where f cannot be recorded, it runs.
  /// @param key all that f depends on besides that memory
  template <class Key, class Result, class F>
  Result replay(GraphRecordings<Key, Result>& recordings, const Key& key, const F& f) {
    useEvents(ownEvents_);
    if (!recordsGraphs_ || refusals_ == kMostRefusals) return f();
    auto* known = recordings.find(key, memory_.epoch());
    if (known == nullptr) {
      const Result result = f();
      recordings.add(key, memory_.epoch());
      return result;
    }
    if (known->exec == nullptr && !record(*known, f)) {
      useEvents(ownEvents_);
      return f();
    }
    events_ = &known->events;
    const NvtxRange range("step");
    cudaCheck(cudaGraphLaunch(known->exec.get(), stream_));
    return known->result;
  }

  /// Names what the host asks for while it lives.
  struct NvtxRange {
    explicit NvtxRange(const char* name) { nvtxRangePushA(name); }
    ~NvtxRange() { nvtxRangePop(); }
    NvtxRange(const NvtxRange&) = delete;
    NvtxRange& operator=(const NvtxRange&) = delete;
  };

  /// A range in the profiler, and if the stages are timed two events on the stream.
  class Range {
   public:
    Range(const char* name, StageEvents* events, double* ms, cudaStream_t stream, unsigned flags)
        : name_(name), events_(events), stream_(stream), flags_(flags) {
      if (events_ != nullptr) end_ = events_->begin(*ms, stream, flags);
    }
    ~Range() {
      if (events_ != nullptr) events_->end(end_, stream_, flags_);
    }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

   private:
    NvtxRange name_;
    StageEvents* events_;
    cudaEvent_t end_ = nullptr;
    cudaStream_t stream_;
    unsigned flags_;
  };

  /// @param ms null: nobody asks
  Range timed(const char* name, double* ms) {
    const unsigned flags =
        events_ == &ownEvents_ ? cudaEventRecordDefault : cudaEventRecordExternal;
    return Range(name, timesStages_ && ms != nullptr ? events_ : nullptr, ms, stream_, flags);
  }

 private:
  void useEvents(StageEvents& events) {
    events_ = &events;
    events.reset();
  }

  /// @return false if it was refused: another thread did what a capture forbids, or memory would
  ///   have to grow
  template <class Recording, class F>
  bool record(Recording& recording, const F& f) {
    try {
      useEvents(recording.events);
      const CudaMemory::Ban ban(memory_);
      Capture capture(stream_);
      recording.result = f();
      recording.exec = capture.finish();
      refusals_ = 0;
      return true;
    } catch (const CudaError& error) {
      if (!error.isOfCapture()) throw;
    } catch (const GrowthInCapture&) {
    }
    ++refusals_;
    return false;
  }

  cudaLaunchConfig_t launchFor(std::size_t n) const {
    return launchOf((count(n) + kThreads - 1) / kThreads, kThreads);
  }
  cudaLaunchConfig_t launchOf(std::size_t blocks, unsigned threads) const {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(count(blocks));
    config.blockDim = dim3(threads);
    config.stream = stream_;
    return config;
  }

  /// CUB returns most errors. It throws those it meets when it asks for a device for the first
  /// time, and every later call to it on that device then waits for ever. So after that nobody
  /// calls it there: the one fact that all instances in a process share.
  template <class Call>
  void checkCub(const Call& call) const {
    std::atomic<bool>& isStuck = cubIsStuck_[static_cast<std::size_t>(device_) % kMostDevices];
    if (isStuck) throw SpaceError("CUB could not look at the device", true);
    try {
      cudaCheckCall(call(), "CUB");
    } catch (const SpaceError&) {
      throw;
    } catch (const std::runtime_error& error) {
      isStuck = true;
      throw SpaceError(error.what(), true);
    }
  }

  static int useDevice(int device) {
    if (device >= 0) cudaCheck(cudaSetDevice(device));
    cudaCheck(cudaGetDevice(&device));
    return device;
  }
  static bool hasPools(int device) {
    int has = 0;
    cudaCheck(cudaDeviceGetAttribute(&has, cudaDevAttrMemoryPoolsSupported, device));
    return has != 0;
  }

  struct DestroyStream {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };
  using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
  static Stream makeStream() {
    cudaStream_t stream = nullptr;
    cudaCheck(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return Stream(stream);
  }

  static constexpr std::size_t kMostDevices = 128;  // as CUB's
  static inline std::array<std::atomic<bool>, kMostDevices> cubIsStuck_{};
  static constexpr int kMostRefusals = 3;  // in a row; then nothing is recorded any more

  const int device_;
  const Stream ownStream_;
  cudaStream_t stream_;
  CudaMemory memory_;
  DeviceBuffer<unsigned char> temporary_{memory()};  ///< CUB's
  const bool recordsGraphs_;
  int refusals_ = 0;
  const bool timesStages_;
  StageEvents ownEvents_;              ///< of launches that are not recorded
  StageEvents* events_ = &ownEvents_;  ///< of what was launched last
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// An NVIDIA GPU as an execution space: one stream, and CUB for sorts. Only wait(), copy() and
// isLost() wait for the device. Every call is checked.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "broadphase/core/space_error.h"
#include "broadphase/cuda/runtime/check.cuh"
#include "broadphase/cuda/runtime/graphs.cuh"
#include "broadphase/cuda/runtime/kernel_list.cuh"
#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/cuda/runtime/memory.cuh"
#include "broadphase/cuda/runtime/merge_sort.cuh"
#include "broadphase/cuda/runtime/radix_sort.cuh"
#include "broadphase/cuda/runtime/threads.cuh"
#include "broadphase/cuda/runtime/upload.cuh"
#include "broadphase/types.h"

namespace lbvh {

struct CudaSpaceOptions {
  int device = -1;     ///< made the thread's current device; -1: the current device stays
  bool graphs = true;  ///< replay() records graphs; false: it only runs the launches
  /// False: timed() only names the stages in profilers, because recording an event costs a
  /// microsecond.
  bool timesStages = false;
  DeviceAllocator allocator{};
};

class CudaSpace {
 public:
  /// Counts have 32 bits, in CUB and here. The limit is lower, because indices in the last thread
  /// blocks of a kernel must not wrap around.
  static constexpr std::size_t kMaxElements = 0xFFFF0000;
  /// @throws std::length_error if n is more than kMaxElements
  static std::uint32_t count(std::size_t n) {
    if (n > kMaxElements)
      throw std::length_error(std::to_string(n) + " elements, but a GPU's kernels count at most " +
                              std::to_string(kMaxElements));
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
    cudaStreamSynchronize(ownStream_.get());  // the members below free memory that its work uses
  }
  CudaSpace(const CudaSpace&) = delete;
  CudaSpace& operator=(const CudaSpace&) = delete;

  DeviceMemory memory() { return {&memory_}; }
  PinnedMemory hostMemory() { return {&memory_}; }
  bool timesStages() const { return timesStages_; }
  CudaMemory& allMemory() { return memory_; }
  const CudaMemory& allMemory() const { return memory_; }

  /// From this call on, all work goes to the caller's stream.
  void useStream(cudaStream_t stream) {
    stream_ = stream;
    memory_.useStream(stream);
  }
  void useOwnStream() { useStream(ownStream_.get()); }

  /// Waits after an error until running work has ended.
  /// @return whether the error is sticky: every later call fails, too, as after a fault in a kernel
  bool isLost() {
    if (cudaStreamSynchronize(ownStream_.get()) == cudaSuccess) return false;
    cudaGetLastError();
    return true;
  }

  /// Loads all kernels that a space launches, so that no step and no capture uses one for the first
  /// time. Also lets CUB query the device.
  void loadKernels() {
    KernelList::load();
    if constexpr (kNamesRadixKernels) {
      std::size_t bytes = 0;
      std::uint32_t* const none = nullptr;
      checkCub(
          [&] { return radixSortPairs(nullptr, bytes, none, none, none, none, 1, 0, 1, stream_); });
    } else {
      for (const std::size_t n : {1, 10000}) loadSorts(n);
      wait();
    }
  }

  template <class Body>
  void forEach(std::size_t n, const Body& body) {
    KernelList::add<forEachKernel<Body>>();
    if (n == 0) return;
    const cudaLaunchConfig_t config = launchFor(n);
    cudaCheck(cudaLaunchKernelEx(&config, forEachKernel<Body>, body, count(n)));
  }

  template <auto kKernel, class Arguments>
  void launch(std::size_t blocks, unsigned threads, const Arguments& arguments) {
    KernelList::add<kKernel>();
    if (blocks == 0) return;
    const cudaLaunchConfig_t config = launchOf(blocks, threads);
    cudaCheck(cudaLaunchKernelEx(&config, kKernel, arguments));
  }

  /// Sorts by bits [shift, shift + bits) of the keys, stable, from one pair of arrays to another.
  /// The input may be overwritten.
  template <class Key>
  void sortInto(View<Key> keys, View<std::uint32_t> values, View<Key> sortedKeys,
                View<std::uint32_t> sortedValues, int shift, int bits) {
    callCub([&](void* scratch, std::size_t& bytes, cudaStream_t stream) {
      return radixSortPairs(scratch, bytes, keys.data, sortedKeys.data, values.data,
                            sortedValues.data, count(keys.size), shift, shift + bits, stream);
    });
  }

  /// Sorts by whole keys in place, stable. For when to use it see sortsByMerging().
  template <class Key>
  void mergeSort(View<Key> keys, View<std::uint32_t> values) requires kCubMerges {
    callCub([&](void* scratch, std::size_t& bytes, cudaStream_t stream) {
      return mergeSortPairs(scratch, bytes, keys.data, values.data, count(keys.size), Less{},
                            stream);
    });
  }

  /// Calls CUB twice: first it returns how much scratch memory it needs, then it does the work.
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
                       View<const std::uint64_t> changed = {}, ChangedSet* sent = nullptr) {
    return buffer.upload(host, changed, sent, stream_,
                         [this](std::size_t n, const auto& body) { forEach(n, body); });
  }

  /// Drops the stage times of a step that failed, and then does what copy() does.
  template <class T>
  void abandonAndCopy(View<const T> from, T* to) {
    useEvents(ownEvents_);
    copy(from, to);
  }
  /// Copies, and waits. Source or destination may be ordinary host memory, which the driver copies
  /// in pieces.
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
    if (events_->isOpen()) return;  // called within a stage, before its end
    events_->read();
    useEvents(ownEvents_);
  }

  /// The first call runs f, the second one records it, and later calls launch the recording. If any
  /// memory of the space has moved, the next call is like a first one. If f cannot be recorded, it
  /// is run.
  /// @param key all that f depends on, except that memory
  template <class Key, class Result, class F>
  Result replay(GraphRecordings<Key, Result>& recordings, const Key& key, const F& f) {
    useEvents(ownEvents_);
    if (!recordsGraphs_ || refusals_ == kMaxRefusals) return f();
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

  /// During its lifetime, profilers show the work that the host queues under this name.
  struct NvtxRange {
    explicit NvtxRange(const char* name) { nvtxRangePushA(name); }
    ~NvtxRange() { nvtxRangePop(); }
    NvtxRange(const NvtxRange&) = delete;
    NvtxRange& operator=(const NvtxRange&) = delete;
  };

  /// A range in the profiler and, if the stages are timed, two events on the stream.
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

  /// @param ms null: the stage is not timed
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

  /// @return false if f was not recorded, because another thread broke the capture or because
  ///   memory would have to grow
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

  /// Loads CUB's kernels for n keys by sorting.
  void loadSorts(std::size_t n) {
    DeviceBuffer<std::uint64_t> room{memory()};
    room.ensure(4 * n);
    fill(View<std::uint64_t>{room.data(), 4 * n}, 0);
    const auto part = [&](int k, auto type) {
      return View<decltype(type)>{reinterpret_cast<decltype(type)*>(room.data() + k * n), n};
    };
    const auto sort = [&](auto key) {
      const auto keys = part(0, key);
      const View<std::uint32_t> values = part(2, std::uint32_t{});
      sortInto(keys, values, part(1, key), part(3, std::uint32_t{}), 0, 8 * sizeof key);
      if constexpr (kCubMerges) mergeSort(keys, values);
    };
    sort(std::uint32_t{});
    sort(std::uint64_t{});
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

  /// CUB returns most errors. But if its first query of a device fails, it throws, and every later
  /// call to it on that device waits for ever. So after such an exception no instance in the
  /// process calls CUB for that device any more.
  template <class Call>
  void checkCub(const Call& call) const {
    std::atomic<bool>& isStuck = cubIsStuck_[static_cast<std::size_t>(device_) % kMaxDevices];
    if (isStuck) throw SpaceError("CUB could not query the device", true);
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

  static constexpr std::size_t kMaxDevices = 128;  // CUB's maximum
  static inline std::array<std::atomic<bool>, kMaxDevices> cubIsStuck_{};
  // After this many refusals in a row nothing is recorded any more.
  static constexpr int kMaxRefusals = 3;

  const int device_;
  const Stream ownStream_;
  cudaStream_t stream_;
  CudaMemory memory_;
  DeviceBuffer<unsigned char> temporary_{memory()};  ///< scratch memory of CUB
  const bool recordsGraphs_;
  int refusals_ = 0;
  const bool timesStages_;
  StageEvents ownEvents_;              ///< events of launches that are not recorded
  StageEvents* events_ = &ownEvents_;  ///< events of the last launches
};

}  // namespace lbvh

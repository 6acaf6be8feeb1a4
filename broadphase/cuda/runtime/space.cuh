// SPDX-License-Identifier: Zlib
// An NVIDIA GPU as an execution space, with one stream and CUB's sorts. After loadKernels(), only
// wait(), copy(), abandonAndCopy() and isLost() wait for the device. CUDA itself may also wait when
// memory grows.
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
  int device = -1;     ///< becomes the thread's current device; -1: no change
  bool graphs = true;  ///< replay() records graphs; false: it only runs the launches
  /// False: timed() only names the stages in profilers, because recording an event costs a
  /// microsecond.
  bool timesStages = false;
  DeviceAllocator allocator{};
};

class CudaSpace {
 public:
  /// Counts have 32 bits, in CUB and here. The limit is below 2^32, because indices in the last
  /// thread block of a kernel must not wrap around.
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
    cudaStreamSynchronize(ownStream_.get());  // then the members may free memory that its work used
  }
  CudaSpace(const CudaSpace&) = delete;
  CudaSpace& operator=(const CudaSpace&) = delete;

  DeviceMemory memory() { return {&memory_}; }
  PinnedMemory hostMemory() { return {&memory_}; }
  bool timesStages() const { return timesStages_; }
  CudaMemory& allMemory() { return memory_; }
  const CudaMemory& allMemory() const { return memory_; }

  /// Queues all later work on the caller's stream.
  void useStream(cudaStream_t stream) {
    stream_ = stream;
    memory_.useStream(stream);
  }
  void useOwnStream() { useStream(ownStream_.get()); }

  /// Waits until the work on the space's own stream has ended. Call it after an error.
  /// @return whether the error is sticky: after a sticky error, such as a fault in a kernel, every
  ///   later call fails
  bool isLost() {
    if (cudaStreamSynchronize(ownStream_.get()) == cudaSuccess) return false;
    cudaGetLastError();
    return true;
  }

  /// Loads all kernels that a space launches, so that none is loaded during a step or a capture.
  /// Also lets CUB query the device.
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
    start(forEachKernel<Body>, (std::size_t{count(n)} + kThreads - 1) / kThreads, kThreads, body,
          count(n));
  }

  template <auto kKernel, class Arguments>
  void launch(std::size_t blocks, unsigned threads, const Arguments& arguments) {
    KernelList::add<kKernel>();
    start(kKernel, blocks, threads, arguments);
  }

  /// A stable sort by bits [shift, shift + bits) of the keys, from one pair of arrays to another.
  /// The input may be overwritten.
  template <class Key>
  void sortInto(View<Key> keys, View<std::uint32_t> values, View<Key> sortedKeys,
                View<std::uint32_t> sortedValues, int shift, int bits) {
    callCub([&](void* scratch, std::size_t& bytes, cudaStream_t stream) {
      return radixSortPairs(scratch, bytes, keys.data(), sortedKeys.data(), values.data(),
                            sortedValues.data(), count(keys.size()), shift, shift + bits, stream);
    });
  }

  /// A stable sort by whole keys, in place. sortsByMerging() tells when to use it.
  template <class Key>
  void mergeSort(View<Key> keys, View<std::uint32_t> values) requires kCubMerges {
    callCub([&](void* scratch, std::size_t& bytes, cudaStream_t stream) {
      return mergeSortPairs(scratch, bytes, keys.data(), values.data(), count(keys.size()), Less{},
                            stream);
    });
  }

  /// Calls CUB twice: first for the size of its scratch memory, then for the work.
  /// Must not be called while a graph is built, because CUB launches its kernels itself.
  /// @param call call(scratch, bytes, stream)
  template <class Call>
  void callCub(const Call& call) {
    if (builder_ != nullptr) throw std::logic_error("a graph cannot contain calls to CUB");
    std::size_t bytes = 0;
    checkCub([&] { return call(nullptr, bytes, stream_); });
    void* scratch = temporary_.ensure(bytes + 1).data();
    if (isRehearsing_) return;
    checkCub([&] { return call(scratch, bytes, stream_); });
  }

  /// See UploadBuffer::upload().
  template <class T, class Tasks>
  View<const T> upload(View<const T> host, UploadBuffer<T>& buffer,
                       View<const std::uint64_t> changed, SparseBits* sent, Tasks& tasks) {
    return buffer.upload(host, changed, sent, tasks, stream_,
                         [this](std::size_t n, const auto& body) { forEach(n, body); });
  }
  template <class T>
  View<const T> upload(View<const T> host, UploadBuffer<T>& buffer,
                       View<const std::uint64_t> changed = {}) {
    CallingThread alone;
    return upload(host, buffer, changed, nullptr, alone);
  }

  /// Drops the stage times of a step that failed, and then calls copy().
  template <class T>
  void abandonAndCopy(View<const T> from, T* to) {
    useEvents(ownEvents_);
    copy(from, to);
  }
  /// Copies, and waits for the copy. Source or destination may be ordinary host memory, which the
  /// driver copies in pieces.
  template <class T>
  void copy(View<const T> from, T* to) {
    if (from.empty()) return;
    cudaCheck(
        cudaMemcpyAsync(to, from.data(), from.size() * sizeof(T), cudaMemcpyDefault, stream_));
    cudaCheck(cudaStreamSynchronize(stream_));
  }

  template <class T>
  void fill(View<T> view, int byte) {
    if (view.empty() || isRehearsing_) return;
    const std::size_t bytes = view.size() * sizeof(T);
    if (builder_ != nullptr) return builder_->addFill(view.data(), byte, bytes);
    cudaCheck(cudaMemsetAsync(view.data(), byte, bytes, stream_));
  }

  void wait() {
    cudaCheck(cudaStreamSynchronize(stream_));
    if (events_->isOpen()) return;  // called within a stage, before its end
    events_->read();
    useEvents(ownEvents_);
  }

  /// Runs f without recording a graph.
  template <class F>
  auto run(const F& f) {
    useEvents(ownEvents_);
    return f();
  }

  /// Runs f twice. The first run queues nothing. So if it throws because memory would have to grow,
  /// no work of f has been queued.
  template <class F>
  auto rehearseAndRun(const F& f) {
    {
      struct Ended {
        bool& isRehearsing;
        ~Ended() { isRehearsing = false; }
      } const ended{isRehearsing_};
      isRehearsing_ = true;
      f();
    }
    return f();
  }
  bool isRehearsing() const { return isRehearsing_; }

  /// The first call with a key runs f. The second call builds a graph of f's launches, and launches
  /// it. Later calls launch the same graph. If any memory of the space has moved, the next call
  /// counts as the first. If memory would have to grow while the graph is built, f runs without a
  /// graph. f must not call CUB.
  /// @param key everything on which f depends, except the memory of the space
  template <class Key, class Result, class F>
  Result replay(GraphRecordings<Key, Result>& recordings, const Key& key, const F& f) {
    if (!recordsGraphs_) return run(f);
    auto* known = recordings.find(key, memory_.epoch());
    if (known == nullptr) {
      const Result result = run(f);
      recordings.add(key, memory_.epoch());
      return result;
    }
    if (known->exec == nullptr && !record(*known, f)) return run(f);
    events_ = &known->events;
    const NvtxRange range("step");
    cudaCheck(cudaGraphLaunch(known->exec.get(), stream_));
    return known->result;
  }

  /// A named range in profilers, for the work that the host queues during the object's lifetime.
  struct NvtxRange {
    explicit NvtxRange(const char* name) { nvtxRangePushA(name); }
    ~NvtxRange() { nvtxRangePop(); }
    NvtxRange(const NvtxRange&) = delete;
    NvtxRange& operator=(const NvtxRange&) = delete;
  };

  /// A range in the profiler and, if the stages are timed, two events on the stream.
  class Range {
   public:
    Range(const char* name, CudaSpace& space, double* ms) : name_(name), space_(space) {
      if (!space.timesStages_ || ms == nullptr) return;
      stage_ = space.events_->begin(*ms);
      space.recordEvent(stage_.begin);
    }
    ~Range() {
      if (stage_.end == nullptr) return;
      space_.recordEvent(stage_.end);
      space_.events_->end();
    }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

   private:
    NvtxRange name_;
    CudaSpace& space_;
    StageEvents::Stage stage_{};
  };

  /// @param ms null: the stage is not timed
  Range timed(const char* name, double* ms) { return Range(name, *this, ms); }

 private:
  void useEvents(StageEvents& events) {
    events_ = &events;
    events.reset();
  }

  /// Launches a kernel, or adds it to the graph that is being built.
  template <class... Arguments>
  void start(void (*kernel)(Arguments...), std::size_t blocks, unsigned threads,
             Arguments... arguments) {
    if (blocks == 0 || isRehearsing_) return;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(count(blocks));
    config.blockDim = dim3(threads);
    config.stream = stream_;
    void* addresses[] = {&arguments...};
    const auto* const code = reinterpret_cast<const void*>(kernel);
    if (builder_ != nullptr) return builder_->addKernel(code, config, addresses);
    cudaCheck(cudaLaunchKernelExC(&config, code, addresses));
  }

  /// If this fails, the next wait or the end of the recording reports the error.
  void recordEvent(cudaEvent_t event) noexcept {
    if (builder_ != nullptr) return builder_->addEvent(event);
    cudaEventRecord(event, stream_);
  }

  /// @return false if f was not recorded because memory would have to grow
  template <class Recording, class F>
  bool record(Recording& recording, const F& f) {
    struct Ended {
      GraphBuilder*& builder;
      ~Ended() { builder = nullptr; }
    };
    useEvents(recording.events);
    const CudaMemory::Ban ban(memory_);
    GraphBuilder builder;
    try {
      builder_ = &builder;
      const Ended ended{builder_};
      recording.result = f();
    } catch (const GrowthInCapture&) {
      return false;
    }
    recording.exec = builder.finish();
    return true;
  }

  /// Loads the kernels that CUB uses for n keys, by sorting n keys.
  void loadSorts(std::size_t n) {
    DeviceBuffer<std::uint64_t> buffer{memory()};
    buffer.ensure(4 * n);
    fill(View<std::uint64_t>{buffer.data(), 4 * n}, 0);
    const auto part = [&](int k, auto type) {
      return View<decltype(type)>{reinterpret_cast<decltype(type)*>(buffer.data() + k * n), n};
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

  /// CUB returns most errors. But if its first query of a device fails, CUB throws, and every later
  /// call to CUB on that device hangs. So after such an exception, no CudaSpace in the process
  /// calls CUB for that device.
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

  const int device_;
  const Stream ownStream_;
  cudaStream_t stream_;
  CudaMemory memory_;
  DeviceBuffer<unsigned char> temporary_{memory()};  ///< scratch memory of CUB
  const bool recordsGraphs_;
  GraphBuilder* builder_ = nullptr;  ///< the graph that is being built; null: none
  bool isRehearsing_ = false;        ///< work is not queued
  const bool timesStages_;
  StageEvents ownEvents_;              ///< events of launches that are not recorded
  StageEvents* events_ = &ownEvents_;  ///< events of the most recent launches
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// The part of cuda_stress that searches with DevicePairFinder. Its pairs stay on the device and are
// compared there bit by bit. Also has the kernel of the memory hog.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "broadphase/cuda/runtime/memory.cuh"
#include "broadphase/device_pair_finder.h"
#include "broadphase/pair_finder.h"
#include "cuda_stress.h"
#include "device_boxes.cuh"
#include "support.h"

namespace lbvh::stress {
namespace {

using test::Boxes;
using test::view;

__global__ void countDifferences(const std::uint32_t* a, const std::uint32_t* b, std::size_t n,
                                 unsigned long long* different) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
    if (a[i] != b[i]) atomicAdd(different, 1ull);
}

__global__ void flipBit(std::uint32_t* word) { *word ^= 1u << 7; }

__global__ void move(uint4* memory, std::size_t n) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    uint4 word = memory[i];
    ++word.x;
    memory[i] = word;
  }
}

class Stream {
 public:
  Stream() { cudaCheck(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Compares arrays on the device, on a stream that waits for no other stream.
class Comparison {
 public:
  Comparison() { different_.ensure(1); }

  template <class T>
  unsigned long long words(View<const T> a, View<const T> b) {
    static_assert(sizeof(T) % 4 == 0);
    const std::size_t n = a.size() * sizeof(T) / 4;
    if (a.size() != b.size()) return n + 1;
    if (n == 0) return 0;
    cudaCheck(cudaMemsetAsync(different_.data(), 0, sizeof(unsigned long long), stream_));
    const auto blocks = static_cast<unsigned>(std::min<std::size_t>((n + 255) / 256, 4096));
    countDifferences<<<blocks, 256, 0, stream_>>>(reinterpret_cast<const std::uint32_t*>(a.data()),
                                                  reinterpret_cast<const std::uint32_t*>(b.data()),
                                                  n, different_.data());
    cudaCheck(cudaGetLastError());
    unsigned long long different = 0;
    cudaCheck(cudaMemcpyAsync(&different, different_.data(), sizeof different,
                              cudaMemcpyDeviceToHost, stream_));
    cudaCheck(cudaStreamSynchronize(stream_));
    return different;
  }

  /// Flips one bit in the middle of an array.
  template <class T>
  void spoil(View<const T> results) {
    if (results.empty()) throw std::logic_error("nothing to spoil: there are 0 results");
    auto* word =
        reinterpret_cast<std::uint32_t*>(const_cast<T*>(results.data() + results.size() / 2));
    flipBit<<<1, 1, 0, stream_>>>(word);
    cudaCheck(cudaStreamSynchronize(stream_));
  }

 private:
  Stream stream_;
  DeviceBuffer<unsigned long long> different_;
};

template <class T>
View<const T> upload(View<const T> host, DeviceBuffer<T>& buffer) {
  const View<T> device = buffer.ensure(host.size());
  test::toDevice(device.data(), host.data(), host.size());
  return device;
}

std::string describe(const char* set, std::size_t boxes, unsigned long long words) {
  return std::string(set) + ", " + std::to_string(boxes) + " boxes: " + std::to_string(words) +
         " words differ";
}

std::string inWords(long passes) {
  return "the memory hog went " + std::to_string(passes) + " times through its memory";
}

/// A box set on the device, and the host's pairs.
struct DeviceCase {
  Boxes boxes;
  DeviceBuffer<Aabb> there;
  DeviceBuffer<Pair> pairs;
  View<const Pair> wanted;
};

std::unique_ptr<DeviceCase> deviceCase(std::size_t n, bool stretched, PairFinder& host,
                                       test::Random& random) {
  auto one = std::make_unique<DeviceCase>();
  one->boxes = uniformBoxes(n, stretched, random);
  host.update(view(one->boxes));
  one->wanted = upload(host.pairs(), one->pairs);
  upload(view(one->boxes), one->there);
  return one;
}

bool isInterpreted() { return dlsym(RTLD_DEFAULT, "ptxvm_control") != nullptr; }

}  // namespace

MemoryHog::MemoryHog(std::size_t bytes)
    : bytes_(bytes / sizeof(uint4) * sizeof(uint4)), thread_([this] { run(); }) {}

MemoryHog::~MemoryHog() {
  isOver_ = true;
  if (thread_.joinable()) thread_.join();
}

long MemoryHog::stop() {
  isOver_ = true;
  thread_.join();
  if (!error_.empty()) throw SpaceError("the memory hog: " + error_, false);
  return passes_;
}

void MemoryHog::run() {
  try {
    const Stream stream;
    DeviceBuffer<uint4> memory;
    const std::size_t n = bytes_ / sizeof(uint4);
    cudaCheck(cudaMemsetAsync(memory.ensure(n).data(), 0, bytes_, stream));
    do {
      // Several launches are queued, so that there is no gap. They have few blocks, so that other
      // kernels also run.
      for (int i = 0; i < 4; ++i) {
        move<<<static_cast<unsigned>(std::min<std::size_t>((n + 255) / 256, 264)), 256, 0,
               stream>>>(memory.data(), n);
        cudaCheck(cudaGetLastError());
      }
      cudaCheck(cudaStreamSynchronize(stream));
      passes_ += 4;
      // All calls of the interpreter take one lock. Without a pause the hog would get this lock
      // again and again, and a search might take a minute.
      if (isInterpreted()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (!isOver_);
  } catch (const std::exception& error) {
    error_ = error.what();
  }
}

bool synchroniseDevice() {
  if (cudaDeviceSynchronize() == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

Outcome stressDeviceFinders(const Load& load) {
  test::Random random(102);
  Options options;
  options.backend = Backend::host;
  PairFinder host(options);
  std::vector<std::unique_ptr<DeviceCase>> cases;
  for (const std::size_t n : load.sizes)
    for (const bool stretched : {false, true})
      cases.push_back(deviceCase(n, stretched, host, random));
  Comparison comparison;
  const Stream stream;
  std::size_t most = 0;
  for (const auto& one : cases) most = std::max(most, one->wanted.size());
  DeviceOptions deviceOptions;
  deviceOptions.initialPairCapacity = most;
  DevicePairFinder gpu(deviceOptions);
  MemoryHog hog(64 * load.sizes.back());
  Rounds rounds(load);
  bool spoil = false;
  // Each set is searched twice in a row, because only the second search begins with codes of the
  // right length.
  for (std::size_t round = 0; rounds.next(spoil); ++round) {
    const DeviceCase& one = *cases[round / 2 % cases.size()];
    const View<const Aabb> boxes{one.there.data(), one.boxes.size()};
    const DeviceLists found = gpu.find(DeviceScene::of(boxes), {}, stream);
    std::uint64_t count = 0;
    cudaCheck(cudaMemcpyAsync(&count, &found.report->pairs, sizeof count, cudaMemcpyDeviceToHost,
                              stream));
    cudaCheck(cudaStreamSynchronize(stream));
    const View<const Pair> pairs{found.pairs.data(),
                                 std::min<std::size_t>(count, found.pairs.size())};
    if (spoil) comparison.spoil(pairs);
    const unsigned long long words = comparison.words(pairs, one.wanted);
    if (words > 0) rounds.differs(describe("uniform", one.boxes.size(), words));
  }
  return rounds.outcome(inWords(hog.stop()));
}

}  // namespace lbvh::stress

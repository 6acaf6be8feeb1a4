// SPDX-License-Identifier: Zlib
// Measures memory rates for gpu_micro: device memory, host memory that kernels write, and copies
// over the bus.
#include <cstring>
#include <stdexcept>

#include "broadphase/cuda/runtime/memory.cuh"
#include "gpu_micro.h"
#include "gpu_micro_model.h"
#include "gpu_micro_time.cuh"

namespace micro {
namespace {

constexpr unsigned kThreads = 256;

template <class T>
__global__ void copyWords(const T* from, T* to, std::size_t n) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) to[i] = from[i];
}

/// Writes each word once. With stride 1, adjacent threads write adjacent words. A large odd stride
/// scatters the words. n must be a power of two.
template <class T>
__global__ void writeWords(T* to, std::size_t n, std::size_t stride, T value) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) to[i * stride & (n - 1)] = value;
}

unsigned blocks(std::size_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

double gigabytesASecond(std::size_t bytes, double us) {
  return static_cast<double>(bytes) / 1e3 / us;
}

/// The rate, in GB/s, at which a kernel writes words into the host's memory.
template <class T>
double rateOfMappedWrites(Stopwatch& watch, lbvh::PinnedBuffer<unsigned char>& host,
                          std::size_t bytes, std::size_t stride) {
  T* const words = reinterpret_cast<T*>(host.data());
  const std::size_t n = bytes / sizeof(T);
  std::memset(host.data(), 0, bytes);
  T value;
  std::memset(&value, 0x5A, sizeof value);
  const double us = watch.onStream(
      [&] { writeWords<<<blocks(n), kThreads, 0, watch.stream()>>>(words, n, stride, value); });
  for (std::size_t i = 0; i < bytes; ++i)
    if (host.data()[i] != 0x5A)
      throw std::runtime_error("mapped memory: byte " + std::to_string(i) + " was not written");
  return gigabytesASecond(bytes, us);
}

void measureDeviceMemory(Stopwatch& watch, std::size_t bytes, Rows& rows) {
  lbvh::DeviceBuffer<uint4> from, to;
  const std::size_t n = bytes / sizeof(uint4);
  fillNow(from.ensure(n).data(), 1, bytes);
  to.ensure(n);
  const double us = watch.onStream(
      [&] { copyWords<<<blocks(n), kThreads, 0, watch.stream()>>>(from.data(), to.data(), n); });
  rows.push_back({"device memory, a copy by a kernel, read and written bytes", 2 * bytes, "GB/s",
                  gigabytesASecond(2 * bytes, us), assumed::deviceMemory()});
}

void measureMappedMemory(Stopwatch& watch, std::size_t bytes, Rows& rows) {
  lbvh::PinnedBuffer<unsigned char> host;
  host.ensure(bytes);
  constexpr std::size_t kAnywhere = 0x9E3779B1;
  const double whole = assumed::mappedMemory(1, 1);
  rows.push_back({"mapped host memory, adjacent words of 4 bytes written", bytes, "GB/s",
                  rateOfMappedWrites<std::uint32_t>(watch, host, bytes, 1), whole});
  rows.push_back({"mapped host memory, adjacent words of 8 bytes written", bytes, "GB/s",
                  rateOfMappedWrites<std::uint64_t>(watch, host, bytes, 1), whole});
  rows.push_back({"mapped host memory, adjacent words of 16 bytes written", bytes, "GB/s",
                  rateOfMappedWrites<uint4>(watch, host, bytes, 1), whole});
  rows.push_back({"mapped host memory, scattered words of 8 bytes written", bytes, "GB/s",
                  rateOfMappedWrites<std::uint64_t>(watch, host, bytes, kAnywhere),
                  assumed::mappedMemory(8, 32)});
  rows.push_back({"mapped host memory, scattered words of 16 bytes written", bytes, "GB/s",
                  rateOfMappedWrites<uint4>(watch, host, bytes, kAnywhere),
                  assumed::mappedMemory(16, 32)});
}

void measureCopies(Stopwatch& watch, std::size_t most, Rows& rows) {
  lbvh::PinnedBuffer<unsigned char> host;
  lbvh::DeviceBuffer<unsigned char> device;
  std::memset(host.ensure(most).data(), 1, most);
  device.ensure(most);
  constexpr int kInRow = 4;
  for (std::size_t bytes = 4096; bytes <= most; bytes *= 16) {
    const auto rate = [&](void* to, const void* from, cudaMemcpyKind kind) {
      const double us = watch.onStream([&] {
        for (int i = 0; i < kInRow; ++i)
          cudaCheck(cudaMemcpyAsync(to, from, bytes, kind, watch.stream()));
      });
      return gigabytesASecond(kInRow * bytes, us);
    };
    rows.push_back({"pinned host memory, copied to the device", bytes, "GB/s",
                    rate(device.data(), host.data(), cudaMemcpyHostToDevice),
                    assumed::copy(bytes)});
    rows.push_back({"pinned host memory, copied from the device", bytes, "GB/s",
                    rate(host.data(), device.data(), cudaMemcpyDeviceToHost),
                    assumed::copy(bytes)});
  }
}

}  // namespace

void measureMemory(bool isTiny, Rows& rows) {
  Stopwatch watch;
  measureDeviceMemory(watch, isTiny ? std::size_t{1} << 16 : std::size_t{1} << 30, rows);
  measureMappedMemory(watch, isTiny ? std::size_t{1} << 14 : std::size_t{1} << 26, rows);
  measureCopies(watch, isTiny ? std::size_t{1} << 16 : std::size_t{1} << 28, rows);
}

}  // namespace micro

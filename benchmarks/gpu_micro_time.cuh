// SPDX-License-Identifier: Zlib
// Measures times for gpu_micro with events on a stream or with the host's clock. Each time is the
// median of several runs.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "broadphase/cuda/runtime/check.cuh"

namespace micro {

/// Fills memory and waits until that is done. cudaMemset may return earlier, and the stopwatch's
/// stream does not wait for it.
inline void fillNow(void* there, int value, std::size_t bytes) {
  cudaCheck(cudaMemset(there, value, bytes));
  cudaCheck(cudaStreamSynchronize(cudaStreamLegacy));
}

class Stopwatch {
 public:
  static constexpr int kRuns = 9;

  Stopwatch() {
    cudaCheck(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    cudaCheck(cudaEventCreate(&begin_));
    cudaCheck(cudaEventCreate(&end_));
  }
  ~Stopwatch() {
    cudaEventDestroy(end_);
    cudaEventDestroy(begin_);
    cudaStreamDestroy(stream_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  cudaStream_t stream() const { return stream_; }

  /// The time on the GPU, in microseconds, of the work that `launch` queues. A first run, which is
  /// not measured, warms up.
  template <class F>
  double onStream(const F& launch) {
    return median([&] {
      cudaCheck(cudaEventRecord(begin_, stream_));
      launch();
      cudaCheck(cudaGetLastError());
      cudaCheck(cudaEventRecord(end_, stream_));
      cudaCheck(cudaEventSynchronize(end_));
      float ms = 0;
      cudaCheck(cudaEventElapsedTime(&ms, begin_, end_));
      return 1e3 * static_cast<double>(ms);
    });
  }

  /// Microseconds that the host spends in `work`. The GPU finishes this work before the next run.
  template <class F>
  double onHost(const F& work) {
    return median([&] {
      const auto begin = std::chrono::steady_clock::now();
      work();
      const std::chrono::duration<double, std::micro> passed =
          std::chrono::steady_clock::now() - begin;
      cudaCheck(cudaStreamSynchronize(stream_));
      return passed.count();
    });
  }

 private:
  template <class F>
  static double median(const F& run) {
    run();
    std::vector<double> times;
    for (int i = 0; i < kRuns; ++i) times.push_back(run());
    std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
    return times[kRuns / 2];
  }

  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace micro

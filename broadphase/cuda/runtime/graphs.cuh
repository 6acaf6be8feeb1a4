// SPDX-License-Identifier: Zlib
// Records launches as CUDA graphs, finds them by a key, and launches them again. Independent of
// stages. Two steps with the same key must have the same launches if no memory has moved.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "broadphase/cuda/runtime/check.cuh"

namespace lbvh {

/// Two events for each stage, and the address to which its milliseconds are added.
class StageEvents {
 public:
  StageEvents() = default;
  ~StageEvents() {
    for (const Stage& stage : stages_) {
      cudaEventDestroy(stage.begin);
      cudaEventDestroy(stage.end);
    }
  }
  StageEvents(StageEvents&& other) noexcept
      : stages_(std::exchange(other.stages_, {})),
        inUse_(std::exchange(other.inUse_, 0)),
        open_(std::exchange(other.open_, 0)) {}
  StageEvents& operator=(StageEvents&& other) noexcept {
    std::swap(stages_, other.stages_);
    std::swap(inUse_, other.inUse_);
    std::swap(open_, other.open_);
    return *this;
  }

  /// Records the first event of a stage, and returns the event for its end.
  cudaEvent_t begin(double& ms, cudaStream_t stream, unsigned flags) {
    if (inUse_ == stages_.size()) add();
    Stage& stage = stages_[inUse_];
    stage.ms = &ms;
    cudaCheck(cudaEventRecordWithFlags(stage.begin, stream, flags));
    ++inUse_;
    ++open_;
    return stage.end;
  }

  void end(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    --open_;
    cudaEventRecordWithFlags(event, stream, flags);  // the next wait returns an error of this call
  }

  /// Whether a stage has begun and not ended. Then its time cannot be read yet.
  bool isOpen() const { return open_ > 0; }

  /// Adds the times of all stages since the last reset(). The stages must have ended.
  void read() const {
    for (std::size_t i = 0; i < inUse_; ++i) {
      float ms = 0;
      cudaCheck(cudaEventElapsedTime(&ms, stages_[i].begin, stages_[i].end));
      *stages_[i].ms += static_cast<double>(ms);
    }
  }

  void reset() { inUse_ = 0; }

 private:
  struct Stage {
    cudaEvent_t begin, end;
    double* ms;
  };

  void add() {
    stages_.reserve(stages_.size() + 1);
    Stage stage{};
    cudaCheck(cudaEventCreate(&stage.begin));
    if (const cudaError_t error = cudaEventCreate(&stage.end); error != cudaSuccess) {
      cudaEventDestroy(stage.begin);
      cudaCheckCall(error, "cudaEventCreate");
    }
    stages_.push_back(stage);
  }

  std::vector<Stage> stages_;  ///< kept from step to step
  std::size_t inUse_ = 0;
  int open_ = 0;
};

struct DestroyGraphExec {
  void operator()(cudaGraphExec_t exec) const { cudaGraphExecDestroy(exec); }
};
using GraphExec = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraphExec>;

/// During its lifetime the stream records its work instead of running it. If any thread
/// synchronises the device meanwhile, both that call and the recording fail.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    cudaCheck(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (stream_ == nullptr) return;
    cudaGraph_t graph = nullptr;  // the graph of a failed recording, only to be destroyed
    if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  GraphExec finish() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaCheck(cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph));
    const cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    cudaCheckCall(error, "cudaGraphInstantiate");
    return GraphExec(exec);
  }

 private:
  cudaStream_t stream_;
};

/// The last few sequences of launches. A sequence is recorded when it runs for the second time. In
/// most scenes memory grows in the first steps, so their launches do not repeat. A first run may
/// also allocate.
/// @tparam Key all that distinguishes sequences, except addresses of the space's memory; these do
///   not change while its epoch does not
template <class Key, class Result>
class GraphRecordings {
  static_assert(std::is_trivially_copyable_v<Result>);

 public:
  struct Recording {
    Key key{};
    std::uint64_t epoch = 0;  ///< epoch of the memory; 0: nothing is recorded
    Result result{};
    GraphExec exec;
    StageEvents events;
  };

  Recording* find(const Key& key, std::uint64_t epoch) {
    for (Recording& recording : recordings_)
      if (recording.key == key && recording.epoch == epoch) return &recording;
    return nullptr;
  }

  /// Replaces the oldest recording.
  void add(const Key& key, std::uint64_t epoch) {
    recordings_[next_] = Recording{};
    recordings_[next_].key = key;
    recordings_[next_].epoch = epoch;
    next_ = (next_ + 1) % recordings_.size();
  }

 private:
  // A step that searches for all boxes is of one of eight kinds: it writes one of two lists of
  // pairs, sorts the boxes or keeps their order, and has removed objects or none. The other entries
  // are for steps that search for few boxes.
  std::array<Recording, 16> recordings_;
  std::size_t next_ = 0;
};

}  // namespace lbvh

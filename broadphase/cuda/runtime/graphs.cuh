// SPDX-License-Identifier: Zlib
// Records launches as CUDA graphs, finds the graphs by a key, and launches them again. This code
// does not depend on the stages. Two steps with the same key must make the same launches if no
// memory has moved.
//
// A graph is built node by node, because a stream capture would disturb the program. During a
// capture, CUDA refuses cudaDeviceSynchronize in every thread, and with driver 580 that call
// sometimes crashed.
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

/// Two events for each stage, and the address to which the stage's milliseconds are added.
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

  /// The events of a stage. The caller must record them before and after the stage's launches.
  struct Stage {
    cudaEvent_t begin, end;
    double* ms;
  };

  /// Begins a stage. The caller must call end() after it.
  Stage begin(double& ms) {
    if (inUse_ == stages_.size()) add();
    Stage& stage = stages_[inUse_++];
    stage.ms = &ms;
    ++open_;
    return stage;
  }
  void end() { --open_; }

  /// Whether a stage has begun but not ended. Its time cannot be read yet.
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

  std::vector<Stage> stages_;  ///< reused by later steps
  std::size_t inUse_ = 0;
  int open_ = 0;
};

struct DestroyGraphExec {
  void operator()(cudaGraphExec_t exec) const { cudaGraphExecDestroy(exec); }
};
using GraphExec = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraphExec>;

/// Builds a graph whose nodes run one after the other. finish() throws the first error.
class GraphBuilder {
 public:
  GraphBuilder() { cudaCheck(cudaGraphCreate(&graph_, 0)); }
  ~GraphBuilder() { cudaGraphDestroy(graph_); }
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  /// @param arguments addresses of the kernel's arguments, which are copied
  void addKernel(const void* kernel, const cudaLaunchConfig_t& config, void** arguments) noexcept {
    cudaKernelNodeParams node{};
    node.func = const_cast<void*>(kernel);
    node.gridDim = config.gridDim;
    node.blockDim = config.blockDim;
    node.kernelParams = arguments;
    add(cudaGraphAddKernelNode, &node);
  }
  void addFill(void* at, int byte, std::size_t bytes) noexcept {
    cudaMemsetParams node{};
    node.dst = at;
    node.value = static_cast<unsigned char>(byte);
    node.elementSize = 1;
    node.width = bytes;
    node.height = 1;
    add(cudaGraphAddMemsetNode, &node);
  }
  void addEvent(cudaEvent_t event) noexcept { add(cudaGraphAddEventRecordNode, event); }

  GraphExec finish() {
    cudaCheckCall(error_, "adding a node to a graph");
    cudaGraphExec_t exec = nullptr;
    cudaCheck(cudaGraphInstantiate(&exec, graph_, 0));
    return GraphExec(exec);
  }

 private:
  template <class Add, class Parameters>
  void add(const Add& addNode, const Parameters& parameters) noexcept {
    if (error_ != cudaSuccess) return;
    cudaGraphNode_t node = nullptr;
    error_ = addNode(&node, graph_, &last_, last_ != nullptr ? 1 : 0, parameters);
    last_ = node;
  }

  cudaGraph_t graph_ = nullptr;
  cudaGraphNode_t last_ = nullptr;
  cudaError_t error_ = cudaSuccess;
};

/// The most recent sequences of launches. A sequence is recorded only when it runs for the second
/// time. In most scenes memory grows in the first steps, so their launches do not repeat. A first
/// run may also allocate.
/// @tparam Key everything that distinguishes sequences, except addresses of the space's memory,
///   which change only with its epoch
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
  // Steps that search for the pairs of all boxes need four entries, because they write one of two
  // lists of pairs, with or without removed objects. The other entries are for steps that search
  // for the pairs of few boxes.
  std::array<Recording, 16> recordings_;
  std::size_t next_ = 0;
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// Measures launches for gpu_micro: single kernels, kernels in graphs, and the time that the host
// waits.
#include <array>

#include "broadphase/cuda/runtime/memory.cuh"
#include "gpu_micro.h"
#include "gpu_micro_model.h"
#include "gpu_micro_time.cuh"

namespace micro {
namespace {

__global__ void doNothing() {}

class Graph {
 public:
  template <class F>
  Graph(cudaStream_t stream, std::size_t nodes, const F& launch) {
    cudaGraph_t graph = nullptr;
    cudaCheck(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (std::size_t i = 0; i < nodes; ++i) launch();
    cudaCheck(cudaStreamEndCapture(stream, &graph));
    const cudaError_t error = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    cudaCheck(error);
  }
  ~Graph() { cudaGraphExecDestroy(exec_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(cudaStream_t stream) const { cudaCheck(cudaGraphLaunch(exec_, stream)); }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

struct GraphTimes {
  double onStream, onHost;
};

template <class F>
GraphTimes timesOfGraph(Stopwatch& watch, std::size_t nodes, const F& launch) {
  const Graph graph(watch.stream(), nodes, launch);
  return {watch.onStream([&] { graph.launch(watch.stream()); }),
          watch.onHost([&] { graph.launch(watch.stream()); })};
}

/// Measures graphs of several sizes, and the cost of a node: the difference of the times of two
/// graphs, divided by the difference of their numbers of nodes.
template <class F>
void measureGraphs(Stopwatch& watch, const std::string& kind, bool isTiny, const F& launch,
                   Rows& rows) {
  constexpr std::array<std::size_t, 5> kNodes{1, 8, 32, 128, 512};
  std::array<double, kNodes.size()> us{};
  const std::size_t graphs = isTiny ? 3 : kNodes.size();
  for (std::size_t i = 0; i < graphs; ++i) {
    const GraphTimes times = timesOfGraph(watch, kNodes[i], launch);
    us[i] = times.onStream;
    rows.push_back({"graph of " + kind + " nodes, the whole graph on the stream", kNodes[i], "us",
                    us[i], static_cast<double>(kNodes[i]) * assumed::nodeOfGraph()});
    rows.push_back({"graph of " + kind + " nodes, the host in cudaGraphLaunch", kNodes[i], "us",
                    times.onHost, 0});
  }
  const std::size_t last = graphs - 1;
  rows.push_back({"graph of " + kind + " nodes, each further node on the stream", 0, "us",
                  (us[last] - us[1]) / static_cast<double>(kNodes[last] - kNodes[1]),
                  assumed::nodeOfGraph()});
}

}  // namespace

void measureLaunches(bool isTiny, Rows& rows) {
  Stopwatch watch;
  const std::size_t launches = isTiny ? 10 : 1000;
  const cudaStream_t stream = watch.stream();
  const auto inRow = [&](const auto& launch) {
    for (std::size_t i = 0; i < launches; ++i) launch();
  };
  const auto each = [&](double us) { return us / static_cast<double>(launches); };
  const auto kernel = [&] { doNothing<<<1, 32, 0, stream>>>(); };
  rows.push_back({"empty kernels in a stream, each on the stream", launches, "us",
                  each(watch.onStream([&] { inRow(kernel); })), assumed::kernelAlone()});
  rows.push_back({"empty kernels in a stream, each on the host", launches, "us",
                  each(watch.onHost([&] { inRow(kernel); })), 0});
  rows.push_back({"an empty kernel, the host launches it and waits", 0, "us", watch.onHost([&] {
                    kernel();
                    cudaCheck(cudaStreamSynchronize(stream));
                  }),
                  0});
  cudaEvent_t event = nullptr;
  cudaCheck(cudaEventCreate(&event));
  rows.push_back(
      {"event records in a stream, each on the stream", launches, "us",
       each(watch.onStream([&] { inRow([&] { cudaCheck(cudaEventRecord(event, stream)); }); })),
       0});
  cudaEventDestroy(event);

  lbvh::DeviceBuffer<unsigned char> memory;
  constexpr std::size_t kBytes = 4096;
  memory.ensure(kBytes);
  const auto fill = [&] { cudaCheck(cudaMemsetAsync(memory.data(), 0, kBytes, stream)); };
  measureGraphs(watch, "kernel", isTiny, kernel, rows);
  measureGraphs(watch, "memset", isTiny, fill, rows);
}

}  // namespace micro

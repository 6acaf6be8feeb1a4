// SPDX-License-Identifier: Zlib
#include "broadphase/choose/choose.h"

#include <string>
#include <utility>

#include "broadphase/choose/shrinking.h"
#include "broadphase/core/old_names.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/step.h"

#if defined(GPULBVH_CUDA)
#include <thread>

#include "broadphase/choose/adaptive.h"
#include "broadphase/choose/worker.h"
#include "broadphase/cuda/step.h"
#endif

namespace lbvh {

namespace {

std::unique_ptr<Pipeline> makeHost(const Options& options, const SimdKernels& kernels) {
  const bool isBinary = options.hierarchy == Hierarchy::binary;
  return std::make_unique<ShrinkingPipeline>(
      [isBinary, threads = options.threads, timesStages = options.stageTimes, &kernels] {
        return isBinary ? makeHostTreePipeline(threads, kernels)
                        : makeHostPipeline(threads, kernels, timesStages);
      });
}

}  // namespace

#if defined(GPULBVH_CUDA)

namespace {

NamedPipeline makeGpu(const Options& options) {
  NamedPipeline made{makeCudaPipeline(options), cudaDeviceName(options.device)};
  Worker::awaitAtExit();  // so that jobs end before CUDA's own exit handlers run
  return made;
}

std::unique_ptr<Pipeline> withGpu(std::unique_ptr<Pipeline> host, Options options,
                                  const SimdKernels& kernels) {
  if (options.device < 0) options.device = currentCudaDevice();
  const auto makeTrial = [options, &kernels] {
    return NamedPipeline{makeHost(options, kernels), "host"};
  };
  const bool isAsked = options.backend == Backend::cuda;
  std::unique_ptr<SpaceChooser> chooser;
  if (isAsked)
    chooser = std::make_unique<AlwaysGpu>();
  else
    chooser = std::make_unique<FasterSpace>();
  auto both = std::make_unique<AdaptivePipeline>(
      std::move(host), makeTrial, [options] { return makeGpu(options); }, std::move(chooser));
  if (isAsked) both->awaitGpu();
  return both;
}

}  // namespace

std::string whyUnavailable(Backend backend, int device) {
  if (backend != Backend::cuda) return {};
  if (gpuWasWrong) return "no cuda: the GPU has found wrong pairs in this process";
  if (device < 0) device = currentCudaDevice();
  std::string why;  // set on another thread: CUDA's last error and current device are per thread
  std::thread([&] { why = whyNoCuda(device); }).join();
  return why;
}

#else

namespace {

std::string knownWhyNoCuda() { return "no cuda: built without it"; }

std::unique_ptr<Pipeline> withGpu(std::unique_ptr<Pipeline> host, const Options&,
                                  const SimdKernels&) {
  return host;
}

}  // namespace

std::string whyUnavailable(Backend backend, int) {
  return backend == Backend::cuda ? knownWhyNoCuda() : std::string();
}

#endif

std::string whyUnavailable(InstructionSet instructions) {
  const char* const name = nameOf(instructions);
  if (name == nullptr || simdKernels(name) != nullptr) return {};
  return std::string("this build or this processor does not have the instruction set ") + name;
}

std::unique_ptr<Pipeline> choosePipeline(const Options& requested, Stats& stats) {
  Options options = requested;
  options.threads = HostTasks::threadsFor(std::max(requested.threads, 0));
  const char* const named = oldInstructions(options);
  const SimdKernels& kernels = named != nullptr ? *simdKernels(named) : simdKernels();
  stats.threads = options.threads;
  stats.instructions = kernels.name;
  stats.hierarchy = options.hierarchy;
  stats.backend = "host";
  stats.reason = options.backend == Backend::host ? "requested" : knownWhyNoCuda();
  if (options.backend != Backend::host) stats.spaceReason = SpaceReason::unavailable;
  auto host = makeHost(options, kernels);
  const bool mayChoose = options.backend == Backend::automatic && stats.reason.empty();
  return mayChoose || options.backend == Backend::cuda ? withGpu(std::move(host), options, kernels)
                                                       : std::move(host);
}

}  // namespace lbvh

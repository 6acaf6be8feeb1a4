// SPDX-License-Identifier: Zlib
#include "broadphase/choose/choose.h"

#include <string>
#include <utility>

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

#if defined(GPULBVH_CUDA)

namespace {

NamedPipeline makeGpu(const Options& options) {
  NamedPipeline made{makeCudaPipeline(options), cudaDeviceName(options.device)};
  Worker::awaitAtExit();  // before what CUDA has registered meanwhile
  return made;
}

std::unique_ptr<Pipeline> withGpu(std::unique_ptr<Pipeline> host, Options options,
                                  const SimdKernels& kernels) {
  if (options.device < 0) options.device = currentCudaDevice();
  const auto makeHost = [threads = options.threads, &kernels] {
    return NamedPipeline{makeHostPipeline(threads, kernels), "host"};
  };
  const bool isAsked = options.backend == Backend::cuda;
  std::unique_ptr<SpaceChooser> chooser;
  if (isAsked)
    chooser = std::make_unique<AlwaysGpu>();
  else
    chooser = std::make_unique<FasterSpace>();
  auto both = std::make_unique<AdaptivePipeline>(
      std::move(host), makeHost, [options] { return makeGpu(options); }, std::move(chooser));
  if (isAsked) both->awaitGpu();
  return both;
}

}  // namespace

std::string whyUnavailable(Backend backend) {
  if (backend != Backend::cuda) return {};
  const int device = currentCudaDevice();
  std::string why;  // asked on a thread of its own: CUDA keeps errors by thread
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

std::string whyUnavailable(Backend backend) {
  return backend == Backend::cuda ? knownWhyNoCuda() : std::string();
}

#endif

std::string whyUnavailable(InstructionSet instructions) {
  if (simdKernels(instructions) != nullptr) return {};
  return "this processor does not have the instructions that were asked for";
}

std::unique_ptr<Pipeline> choosePipeline(const Options& asked, Stats& stats) {
  Options options = asked;
  options.threads = HostTasks::threadsFor(std::max(asked.threads, 0));
  const SimdKernels& kernels = *simdKernels(options.instructions);
  stats.threads = options.threads;
  stats.instructions = kernels.name;
  stats.backend = "host";
  stats.reason = options.backend == Backend::host ? "asked for" : knownWhyNoCuda();
  auto host = makeHostPipeline(options.threads, kernels, options.stageTimes);
  const bool mayChoose = options.backend == Backend::automatic && stats.reason.empty();
  return mayChoose || options.backend == Backend::cuda ? withGpu(std::move(host), options, kernels)
                                                       : std::move(host);
}

}  // namespace lbvh

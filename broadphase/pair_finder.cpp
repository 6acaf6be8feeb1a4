#include "broadphase/pair_finder.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <vector>

#include "broadphase/exec/host/stage_timer.h"
#include "broadphase/exec/host/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/pipelines/host.h"
#include "broadphase/pipelines/limits.h"

#if defined(GPULBVH_CUDA)
#include <mutex>
#include <thread>

#include "broadphase/exec/space.h"
#include "broadphase/pipelines/adaptive.h"
#include "broadphase/pipelines/cuda.h"
#endif

namespace lbvh {

#if defined(GPULBVH_CUDA)
namespace {

/// What whyNoCuda() has said last, in this process. A machine without a GPU gets none: once that is
/// known, no finder starts a thread to look again.
class NoCuda {
 public:
  std::string ask() {
    const std::string why = whyNoCuda();
    const std::lock_guard<std::mutex> lock(mutex_);
    return known_ = why;
  }
  std::string known() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return known_;
  }

 private:
  std::mutex mutex_;
  std::string known_;
};
NoCuda noCuda;

}  // namespace
#endif

std::string whyUnavailable(Backend backend) {
  if (backend != Backend::cuda) return {};
#if defined(GPULBVH_CUDA)
  std::string why;  // asked on a thread of its own: CUDA keeps errors by thread
  std::thread([&] { why = noCuda.ask(); }).join();
  return why;
#else
  return "no cuda: built without it";
#endif
}

std::string whyUnavailable(InstructionSet instructions) {
  if (simdKernels(instructions) != nullptr) return {};
  return "this processor does not have the instructions that were asked for";
}

struct PairFinder::Impl {
  Options options;
  std::unique_ptr<Pipeline> pipeline;
  std::vector<std::uint8_t> removedObjects;  // by box of the last update
  bool anyRemoved = false;
  bool hasDelta = false;  // false after an update that failed
  bool hasTree = false;
  bool isPacked = false;  // likewise
  Stats stats;

  void choosePipeline();
  std::unique_ptr<Pipeline> withGpu(std::unique_ptr<Pipeline> host, int threads,
                                    const SimdKernels& kernels) const;
  void tellSpace();
};

void PairFinder::Impl::choosePipeline() {
  const int threads = options.threads > 0 ? options.threads : HostTasks::machineThreads();
  const SimdKernels& kernels = *simdKernels(options.instructions);
  stats.threads = threads;
  stats.instructions = kernels.name;
  stats.backend = "host";
  stats.reason = "asked for";
  pipeline = makeHostPipeline(threads, kernels);
  if (options.backend == Backend::host) return;
#if defined(GPULBVH_CUDA)
  stats.reason = noCuda.known();
  if (!stats.reason.empty() && options.backend == Backend::automatic) return;
  pipeline = withGpu(std::move(pipeline), threads, kernels);
  tellSpace();
#else
  stats.reason = whyUnavailable(Backend::cuda);
#endif
}

#if defined(GPULBVH_CUDA)
std::unique_ptr<Pipeline> PairFinder::Impl::withGpu(std::unique_ptr<Pipeline> host, int threads,
                                                    const SimdKernels& kernels) const {
  const auto makeHost = [threads, &kernels] {
    return NamedPipeline{makeHostPipeline(threads, kernels), "host"};
  };
  const auto makeGpu = [options = options] {
    if (const std::string why = noCuda.ask(); !why.empty()) throw SpaceError(why, true);
    return NamedPipeline{makeCudaPipeline(options.stageTimes), cudaDeviceName()};
  };
  const bool isAsked = options.backend == Backend::cuda;
  std::unique_ptr<SpaceChooser> chooser;
  if (isAsked)
    chooser = std::make_unique<AlwaysGpu>();
  else
    chooser = std::make_unique<FasterSpace>();
  auto both =
      std::make_unique<AdaptivePipeline>(std::move(host), makeHost, makeGpu, std::move(chooser));
  if (isAsked) both->awaitGpu();
  return both;
}
#endif

/// Where the last step ran, and why. Without memory the figures stay as they were.
void PairFinder::Impl::tellSpace() {
  const SpaceInfo* info = pipeline->info();
  if (info == nullptr) return;
  try {
    stats.backend = info->backend;
    stats.reason = info->reason;
    stats.hostMedianMs = info->hostMedianMs;
    stats.gpuMedianMs = info->gpuMedianMs;
    stats.switches = info->switches;
  } catch (const std::bad_alloc&) {
  }
}

PairFinder::PairFinder(const Options& options) : impl_(std::make_unique<Impl>()) {
  if (options.threads < 0) throw std::invalid_argument("Options::threads is negative");
  for (const std::string& why :
       {whyUnavailable(options.backend), whyUnavailable(options.instructions)})
    if (!why.empty()) throw std::runtime_error(why);
  impl_->options = options;
  impl_->choosePipeline();
}

PairFinder::~PairFinder() = default;
PairFinder::PairFinder(PairFinder&&) noexcept = default;
PairFinder& PairFinder::operator=(PairFinder&&) noexcept = default;

void PairFinder::update(View<const Aabb> boxes, View<const Filter> filters,
                        View<const std::uint64_t> changed) {
  impl_->hasDelta = impl_->hasTree = impl_->isPacked = false;
  requireFitting(boxes, filters);
  if (changed.data != nullptr && 64 * changed.size < boxes.size)
    throw std::invalid_argument("a bit for each box, or none");
  Impl& impl = *impl_;
  impl.removedObjects.reserve(boxes.size);  // before the step, because nothing may fail after it
  StepStats& stats = impl.stats;
  stats = StepStats{};
  stats.searched = boxes.size;  // where the pipeline does not say otherwise
  {
    StageTimer timer(stats.totalMs);
    const View<const std::uint8_t> removedObjects{impl.removedObjects.data(),
                                                  impl.anyRemoved ? impl.removedObjects.size() : 0};
    impl.pipeline->step({boxes, filters, removedObjects, impl.options.maxPairs, changed}, stats);
  }
  if (impl.anyRemoved)
    std::fill(impl.removedObjects.begin(), impl.removedObjects.end(), std::uint8_t{0});
  impl.removedObjects.resize(boxes.size, 0);
  impl.anyRemoved = false;
  impl.hasDelta = impl.isPacked = true;
  stats.objects = boxes.size;
  stats.memoryBytes = impl.pipeline->memoryBytes() + impl.removedObjects.capacity();
  impl.tellSpace();
}

void PairFinder::updateUnchanged() noexcept {
  impl_->hasDelta = false;
  const StepStats last = impl_->stats;
  StepStats& stats = impl_->stats;
  stats = StepStats{};
  stats.objects = last.objects;
  stats.pairs = last.pairs;
  stats.oversizedBoxes = last.oversizedBoxes;
  stats.nanBoxes = last.nanBoxes;
  stats.capacity = last.capacity;
  stats.memoryBytes = last.memoryBytes;
  stats.mortonBits = last.mortonBits;
}

void PairFinder::removeObject(std::uint32_t index) noexcept {
  Impl& impl = *impl_;
  if (index >= impl.removedObjects.size()) return;  // it had no pairs
  impl.removedObjects[index] = 1;
  impl.anyRemoved = true;
}

void PairFinder::buildTree(View<const Aabb> boxes) {
  requireFitting(boxes, {});
  impl_->hasTree = false;
  StepStats unused;
  impl_->pipeline->buildTree(boxes, unused);
  impl_->hasTree = true;
}

View<const Pair> PairFinder::pairs() const { return impl_->pipeline->pairs(); }
View<const Pair> PairFinder::added() const {
  return impl_->hasDelta ? impl_->pipeline->added() : View<const Pair>{};
}
View<const Pair> PairFinder::removed() const {
  return impl_->hasDelta ? impl_->pipeline->removed() : View<const Pair>{};
}
Tree PairFinder::tree() const { return impl_->hasTree ? impl_->pipeline->tree() : Tree{}; }
PackedScene PairFinder::packed() const {
  return impl_->isPacked ? impl_->pipeline->packed() : PackedScene{};
}
const Stats& PairFinder::stats() const { return impl_->stats; }

}  // namespace lbvh

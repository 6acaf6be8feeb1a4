// SPDX-License-Identifier: Zlib
#include "broadphase/pair_finder.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <vector>

#include "broadphase/choose/choose.h"
#include "broadphase/core/limits.h"
#include "broadphase/host/parallel/stage_timer.h"

namespace lbvh {

struct PairFinder::Impl {
  Options options;
  std::unique_ptr<Pipeline> pipeline;
  std::vector<std::uint8_t> removedObjects;  // by box of the last update
  bool anyRemoved = false;
  bool hasDelta = false;  // false after an update that failed
  bool hasTree = false;
  bool isPacked = false;  // likewise
  Stats stats;

  void tellSpace();
};

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
  impl_->pipeline = choosePipeline(options, impl_->stats);
  impl_->tellSpace();
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
  if (impl_->isPacked) impl_->pipeline->rest();
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
  impl_->pipeline->buildTree(boxes);
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

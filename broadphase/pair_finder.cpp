// SPDX-License-Identifier: Zlib
#include "broadphase/pair_finder.h"

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "broadphase/choose/choose.h"
#include "broadphase/core/compiler.h"
#include "broadphase/core/limits.h"
#include "broadphase/core/old_names.h"
#include "broadphase/core/sparse_bits.h"
#include "broadphase/host/old_tree.h"
#include "broadphase/host/parallel/stage_timer.h"

namespace lbvh {

struct GPULBVH_HIDDEN PairFinder::Impl {
  Options options;
  std::unique_ptr<Pipeline> pipeline;
  std::vector<std::uint8_t> removedObjects;  // one flag for each box of the last update
  SparseBits removed;                        // the boxes whose flag is set
  SparseBits changed;
  bool hasDelta = false;  // false after an update that failed, and after updateUnchanged()
  bool isPacked = false;  // false after an update that failed
  std::optional<OldTree> tree;
  Stats stats;

  template <class Announced>
  void update(View<const Aabb> boxes, View<const Filter> filters, const Announced* announced);
  void prepare(std::size_t boxes);
  template <class Announced>
  void collectChanges(std::size_t boxes, const Announced& announced);
  void forgetRemoved(std::size_t boxes);
  void forgetResults();
  void tellSpace();
};

/// Reserves the memory that is needed after a step, when nothing may fail.
void PairFinder::Impl::prepare(std::size_t boxes) {
  if (8 * removedObjects.size() < removedObjects.capacity()) removedObjects.shrink_to_fit();
  removedObjects.reserve(boxes);
  removed.reserve(boxes);
}

/// Lists the boxes that the caller reports as changed, new boxes, and boxes with another object.
template <class Announced>
void PairFinder::Impl::collectChanges(std::size_t boxes, const Announced& announced) {
  changed.begin(boxes);
  changed.addAll(announced);
  changed.addRange(removedObjects.size(), boxes);
  removed.forEach([&](std::uint32_t i) {
    if (i < boxes) changed.add(i);
  });
}

void PairFinder::Impl::forgetRemoved(std::size_t boxes) {
  removed.forEach([&](std::uint32_t i) { removedObjects[i] = 0; });
  removed.begin(boxes);
  removedObjects.resize(boxes, 0);
}

void PairFinder::Impl::forgetResults() {
  hasDelta = isPacked = false;
  tree.reset();
}

/// Writes to `stats` where the last step ran, and why. If memory runs out, some members stay
/// unchanged.
void PairFinder::Impl::tellSpace() {
  const SpaceInfo* info = pipeline->info();
  if (info == nullptr) return;
  try {
    stats.backend = info->backend;
    stats.reason = info->reason;
    stats.spaceReason = info->spaceReason;
    stats.hostMeanMs = info->hostMeanMs;
    stats.gpuMeanMs = info->gpuMeanMs;
    copyToOldNames(stats);
    stats.switches = info->switches;
  } catch (const std::bad_alloc&) {
  }
}

PairFinder::PairFinder(const Options& given) : impl_(std::make_unique<Impl>()) {
  const Options options = withoutOldNames(given);
  if (options.threads < 0)
    throw std::invalid_argument("Options::threads is " + std::to_string(options.threads) +
                                ", but must be 0 or more");
  for (const std::string& why :
       {whyUnavailable(options.backend, options.device), whyNotOldInstructions(options)})
    if (!why.empty()) throw std::runtime_error(why);
  impl_->options = options;
  impl_->pipeline = choosePipeline(options, impl_->stats);
  impl_->tellSpace();
}

PairFinder::~PairFinder() = default;
PairFinder::PairFinder(PairFinder&&) noexcept = default;
PairFinder& PairFinder::operator=(PairFinder&&) noexcept = default;

/// @param announced the boxes that the caller reports as changed; null: unknown
template <class Announced>
void PairFinder::Impl::update(View<const Aabb> boxes, View<const Filter> filters,
                              const Announced* announced) {
  prepare(boxes.size());
  static_cast<StepStats&>(stats) = StepStats{};
  stats.searched = boxes.size();  // unless the pipeline sets another number
  {
    StageTimer timer(stats.totalMs);
    StepInput input{boxes, filters, {}, options.maxPairs};
    if (!removed.isEmpty()) input.removedObjects = {removedObjects.data(), removedObjects.size()};
    if (announced != nullptr) {
      collectChanges(boxes.size(), *announced);
      input.changed = changed.words();
      input.changedWords = changed.used();
    }
    pipeline->step(input, stats);
  }
  forgetRemoved(boxes.size());
  hasDelta = isPacked = true;
  stats.objects = boxes.size();
  stats.memoryBytes = pipeline->memoryBytes() + removedObjects.capacity() + removed.memoryBytes() +
                      changed.memoryBytes();
  tellSpace();
}

void PairFinder::update(View<const Aabb> boxes, View<const Filter> filters,
                        View<const std::uint64_t> changed) {
  impl_->forgetResults();
  requireFitting(boxes, filters, changed);
  impl_->update(boxes, filters, changed.data() != nullptr ? &changed : nullptr);
}

void PairFinder::updateChanged(View<const Aabb> boxes, View<const Filter> filters,
                               const SparseBits& changed) {
  impl_->forgetResults();
  requireFitting(boxes, filters, changed.words());
  impl_->update(boxes, filters, &changed);
}

UpdateStatus PairFinder::tryUpdate(View<const Aabb> boxes, View<const Filter> filters,
                                   View<const std::uint64_t> changed) noexcept {
  try {
    update(boxes, filters, changed);
    return UpdateStatus::done;
  } catch (const std::invalid_argument&) {
    return UpdateStatus::invalidArguments;
  } catch (const std::length_error&) {
    return UpdateStatus::tooManyPairs;
  } catch (const std::bad_alloc&) {
    return UpdateStatus::outOfMemory;
  } catch (...) {
    return UpdateStatus::failed;
  }
}

void PairFinder::updateUnchanged() noexcept {
  impl_->hasDelta = false;
  if (impl_->isPacked) impl_->pipeline->rest();
  StepStats& stats = impl_->stats;
  stats.added = stats.removed = stats.searched = 0;
  for (const Stage& stage : kStages) stats.*stage.ms = 0;
  stats.totalMs = 0;
}

void PairFinder::replaceObject(std::uint32_t index) noexcept {
  Impl& impl = *impl_;
  if (index >= impl.removedObjects.size()) return;  // the box had no pairs
  impl.removedObjects[index] = 1;
  impl.removed.add(index);
}

View<const Pair> PairFinder::pairs() { return impl_->pipeline->pairs(); }
View<const Pair> PairFinder::added() const {
  return impl_->hasDelta ? impl_->pipeline->added() : View<const Pair>{};
}
View<const Pair> PairFinder::removed() const {
  return impl_->hasDelta ? impl_->pipeline->removed() : View<const Pair>{};
}
const Stats& PairFinder::stats() const { return impl_->stats; }

const PackedBoxes* PairFinder::packed() const {
  return impl_->isPacked ? impl_->pipeline->packed() : nullptr;
}

std::size_t PairFinder::losses() const {
  const SpaceInfo* const info = impl_->pipeline->info();
  return info != nullptr ? info->losses : 0;
}

void PairFinder::removeObject(std::uint32_t index) noexcept { replaceObject(index); }
View<const Pair> PairFinder::pairs() const { return impl_->pipeline->pairs(); }
void PairFinder::buildTree(View<const Aabb> boxes) {
  if (!impl_->tree) impl_->tree.emplace(HostTasks::threadsFor(impl_->options.threads));
  impl_->tree->build(boxes);
}
Tree PairFinder::tree() const { return impl_->tree ? impl_->tree->nodes() : Tree{}; }

}  // namespace lbvh

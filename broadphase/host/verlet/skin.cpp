// SPDX-License-Identifier: Zlib
#include "broadphase/host/verlet/skin.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "broadphase/core/changes.h"
#include "broadphase/core/morton.h"
#include "broadphase/core/prefetch.h"
#include "broadphase/host/simd/lanes.h"

namespace lbvh {
namespace {

constexpr std::size_t kGrain = 32;  // words of 64 boxes each
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

constexpr std::size_t kMostLeft = 2;  // half of the boxes
constexpr std::size_t kWatched = 128;
constexpr std::size_t kWatchSteps = 8;
constexpr std::size_t kFewMove = 8;                    // an eighth of the watched boxes
constexpr std::size_t kFewLeft = 12;                   // a twelfth of them in a step
constexpr int kPause = 16;                             // after watching in vain
constexpr int kShortestPause = 8, kLongestPause = 64;  // after it did not pay

#include "broadphase/host/verlet/grown_box.inl"

}  // namespace

Skin::Use Skin::useByEnvironment() {
  const char* const use = std::getenv("GPULBVH_SKIN");
  const auto is = [use](const char* name) { return use != nullptr && std::strcmp(use, name) == 0; };
  if (is("always")) return Use::always;
  if (is("never")) return Use::never;
  if (is("alternating")) return Use::alternating;
  return Use::automatic;
}

Skin::Skin(HostTasks& tasks) : tasks_(tasks), use_(useByEnvironment()) {}

Skin::Plan Skin::plan(const StepInput& input, bool isKnown, View<const Hub> hubs) {
  const bool wasOn = isOn_;
  isOn_ = isWanted(input);
  ++steps_;
  if (!isOn_) return Plan::plain;
  if (!wasOn) {
    if (!isReady_) grown_.clear();
    isReady_ = false;
    account_.open();
    steps_ = 0;
  }
  const bool hadFilters = hadFilters_;
  hadFilters_ = !input.filters.empty();
  const std::size_t n = input.boxes.size;
  if (!wasOn) return searchAll(input);
  if (isKnown && n >= grown_.size() && hadFilters == hadFilters_) {
    findLeft(input);
    if (areFewLeft(n, leaveHubs(input, hubs))) return Plan::left;
  }
  if (use_ != Use::automatic || account_.allowsAll()) return searchAll(input);
  turnOff();
  return Plan::plain;
}

bool Skin::areFewLeft(std::size_t boxes, std::size_t ofHubs) const {
  const std::size_t left = leftIds_.size();
  return kMostLeft * left <= boxes &&
         (use_ != Use::automatic || account_.allowsLeft(left, changes_, ofHubs));
}

bool Skin::isWanted(const StepInput& input) {
  switch (use_) {
    case Use::always:
      return true;
    case Use::never:
      return false;
    case Use::alternating:
      return steps_ % 5 < 3;
    case Use::automatic:
      break;
  }
  if (isOn_ && account_.isOverdrawn()) turnOff();
  if (isOn_) {
    if (steps_ == kLongestPause) pause_ = 0;
    return true;
  }
  if (pauseLeft_ == 0) return watch(input);
  --pauseLeft_;
  return false;
}

void Skin::turnOff() {
  isOn_ = isReady_ = false;
  watchSteps_ = 0;
  grown_ = std::vector<Aabb>();  // gives the memory back
  last_ = std::vector<Aabb>();
  filters_ = std::vector<Filter>();
  pauseLeft_ = pause_ = std::clamp(2 * pause_, kShortestPause, kLongestPause);
}

/// Grows a sample of the boxes, and looks how many leave. If few do, it remembers all boxes, so
/// that the next step knows which move, and whither.
/// @return whether that has happened
bool Skin::watch(const StepInput& input) {
  if (isReady_) return true;
  const std::size_t n = input.boxes.size, samples = std::min(n, std::min(kWatched, 16 + n / 8));
  const auto sample = [&](std::size_t k) {
    return input.boxes[static_cast<std::size_t>(scattered(k) * n >> 32)];
  };
  bool doFew = false;
  if (watchSteps_ == 0 || grown_.size() != samples) {
    watchSteps_ = 1;
    watchedLeft_ = 0;
    grown_.resize(samples);
    for (std::size_t k = 0; k < samples; ++k) grown_[k] = sample(k);
  } else {
    std::size_t left = 0;
    for (std::size_t k = 0; k < samples; ++k)
      if (isOutside(grown_[k], sample(k))) {
        ++left;
        grown_[k] = grownFrom(grown_[k], sample(k), k);
      }
    // At first all that move leave; then, because they got their skins together, few do.
    if (watchSteps_ == 1) doFew = kFewMove * left <= samples;
    if (watchSteps_ > kWatchSteps / 4) watchedLeft_ += left;
    if (++watchSteps_ == kWatchSteps) {
      doFew = kFewLeft * watchedLeft_ <= (kWatchSteps - kWatchSteps / 4 - 1) * samples;
      watchSteps_ = 0;
      if (!doFew) pauseLeft_ = kPause;
    }
  }
  if (doFew) grown_.assign(input.boxes.begin(), input.boxes.end());
  isReady_ = doFew;
  return false;
}

Skin::Plan Skin::searchAll(const StepInput& input) {
  growAll(input);
  return Plan::all;
}

void Skin::growAll(const StepInput& input) {
  const std::size_t n = input.boxes.size, known = std::min(n, grown_.size());
  grown_.resize(n);
  filters_.assign(input.filters.begin(), input.filters.end());
  const bool isTold = input.changed.data != nullptr;
  isLastKnown_ = !isTold;
  last_.resize(isTold ? 0 : n);
  tasks_.forRanges(n, kMaskBits * kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Aabb& box = input.boxes[i];
      if (!isTold) last_[i] = box;
      const bool rests = isTold && !hasBit(input.changed, i);
      if (i >= known || rests)
        grown_[i] = box;
      else if (isOutside(grown_[i], box) || isLoose(grown_[i], box))
        grown_[i] = grownFrom(grown_[i], box, i);
    }
  });
}

/// Also the boxes of other filters, other objects, and new ones.
void Skin::findLeft(const StepInput& input) {
  const std::size_t n = input.boxes.size, words = (n + kMaskBits - 1) / kMaskBits;
  known_ = grown_.size();
  grown_.resize(n, Aabb{{kNaN, kNaN, kNaN}, {kNaN, kNaN, kNaN}});
  filters_.resize(input.filters.size);
  const bool isTold = input.changed.data != nullptr;
  const bool compares = !isTold && isLastKnown_;
  isLastKnown_ = !isTold;
  last_.resize(isTold ? 0 : n);
  changed_.resize(words);
  left_.resize(words);
  tasks_.forRanges(words, kGrain, [&](std::size_t begin, std::size_t end) {
    for (; begin < end; begin += kGrain) {
      const std::size_t last = std::min(end, begin + kGrain);
      for (std::size_t word = begin; word < last; ++word) {
        const std::uint64_t changed = isTold ? input.changed[word] : whatDiffers(input, word);
        changed_[word] = isTold || compares ? changed : ~std::uint64_t{0};
      }
      findLeft(input, begin, last);
    }
  });
  leftIds_.clear();
  changes_ = 0;
  for (std::size_t word = 0; word < words; ++word) {
    changes_ += static_cast<std::size_t>(std::popcount(changed_[word]));
    forBits(left_[word], word * kMaskBits, [&](std::uint32_t i) { leftIds_.push_back(i); });
  }
}

/// A skin would be of no use to a hub that is searched for whenever it changes.
/// @return how many candidates those that have left had
std::size_t Skin::leaveHubs(const StepInput& input, View<const Hub> hubs) {
  std::size_t candidates = 0;
  for (const Hub& hub : hubs) {
    const Aabb& box = input.boxes[hub.id];
    const std::size_t word = hub.id / kMaskBits;
    const std::uint64_t bit = std::uint64_t{1} << hub.id % kMaskBits;
    if ((left_[word] & bit) == 0) {
      if (!differ(hub.box, box)) continue;
      changes_ += (changed_[word] & bit) == 0;
      changed_[word] |= bit;
      left_[word] |= bit;
      leftIds_.push_back(hub.id);
    }
    grown_[hub.id] = box;
    candidates += hub.candidates;
  }
  return candidates;
}

/// Of some words, in which changed_ is known but for new boxes. Grows anew those that have left.
void Skin::findLeft(const StepInput& input, std::size_t firstWord, std::size_t lastWord) {
  const auto forChanged = [&](std::size_t word, std::uint64_t but, const auto& visit) {
    const std::uint64_t known = bitsBelow(known_, word * kMaskBits);
    forBits(changed_[word] & known & ~but, word * kMaskBits, visit);
  };
  Classes change{};
  forPrefetched(
      input.boxes.size > kBoxesInCache, lastWord - firstWord,
      [&](std::size_t k) {
        const std::size_t word = firstWord + k;
        const std::uint64_t all = bitsBelow(input.boxes.size, word * kMaskBits);
        std::uint64_t left = whatIsNew(input, word) & all;
        forChanged(word, left, [&](std::uint32_t i) {
          left |= std::uint64_t{hasLeft(input, i)} << i % kMaskBits;
        });
        changed_[word] = (changed_[word] | left) & all;
        left_[word] = left;
        forBits(left, word * kMaskBits, [&](std::uint32_t i) { growLeft(input, i, change); });
      },
      [&](std::size_t k) {
        forChanged(firstWord + k, 0, [&](std::uint32_t i) {
          prefetchAll(input.boxes[i]);
          prefetchAll(grown_[i]);
        });
      });
  for (std::size_t k = 0; k < change.size(); ++k)
    if (change[k] != 0) classes_[k].fetch_add(change[k], std::memory_order_relaxed);
}

/// Of 64 boxes: new ones, and those of other objects.
std::uint64_t Skin::whatIsNew(const StepInput& input, std::size_t word) const {
  const std::size_t first = word * kMaskBits;
  std::uint64_t isNew = ~bitsBelow(known_, first);
  for (std::size_t i = first; i < std::min(first + kMaskBits, input.removedObjects.size); ++i)
    isNew |= std::uint64_t{input.removedObjects[i] != 0} << (i - first);
  return isNew;
}

/// Where the caller tells nothing: compares with the last step's boxes, and remembers these.
std::uint64_t Skin::whatDiffers(const StepInput& input, std::size_t word) {
  const std::size_t first = word * kMaskBits;
  const std::size_t count = std::min(kMaskBits, input.boxes.size - first);
  std::uint64_t changed = findChanged(&last_[first], &input.boxes[first], count);
  copyChanged(&last_[first], &input.boxes[first], count, changed);
  if (!input.filters.empty())
    changed |= findChanged(&filters_[first], &input.filters[first], count);
  return changed;
}

bool Skin::hasLeft(const StepInput& input, std::size_t i) const {
  return isOutside(grown_[i], input.boxes[i]) ||
         (!input.filters.empty() && differ(filters_[i], input.filters[i]));
}

void Skin::growLeft(const StepInput& input, std::uint32_t i, Classes& change) {
  const auto count = [&](const Aabb& box) -> std::size_t& {
    return change[static_cast<std::size_t>(classify(box))];
  };
  if (i < known_) --count(grown_[i]);
  ++count(input.boxes[i]);
  grown_[i] = grownFrom(grown_[i], input.boxes[i], i);
  if (!input.filters.empty()) filters_[i] = input.filters[i];
}

void Skin::endAll(const StepStats& stats, std::size_t found, const StepWork& work) {
  account_.chargeAll(grown_.size(), found, work);
  classes_[static_cast<int>(BoxClass::oversized)] = stats.oversizedBoxes;
  classes_[static_cast<int>(BoxClass::nan)] = stats.nanBoxes;
}

void Skin::endLeft(StepStats& stats, const StepWork& work) {
  account_.chargeLeft(leftIds_.size(), work);
  stats.oversizedBoxes = classes_[static_cast<int>(BoxClass::oversized)];
  stats.nanBoxes = classes_[static_cast<int>(BoxClass::nan)];
}

StepInput Skin::grown() const {
  return {{grown_.data(), grown_.size()}, {filters_.data(), filters_.size()}, {}, 0};
}

StepInput Skin::grown(const StepInput& input) const {
  return {{grown_.data(), grown_.size()}, input.filters, {}, input.maxPairs};
}

std::size_t Skin::memoryBytes() const {
  return (grown_.capacity() + last_.capacity()) * sizeof(Aabb) +
         filters_.capacity() * sizeof(Filter) +
         (changed_.capacity() + left_.capacity()) * sizeof(std::uint64_t) +
         leftIds_.capacity() * sizeof(std::uint32_t);
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
#include "broadphase/host/verlet/skin.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "broadphase/core/changes.h"
#include "broadphase/core/morton.h"
#include "broadphase/core/prefetch.h"
#include "broadphase/host/simd/lanes.h"

namespace lbvh {
namespace {

constexpr std::size_t kMarkGrain = 32;  // words of 64 boxes each
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

constexpr std::size_t kBoxesPerEscaped = 2;
constexpr std::size_t kWatched = 128;
constexpr std::size_t kWatchSteps = 8;
constexpr std::size_t kWatchedPerMoving = 8;
constexpr std::size_t kWatchedPerEscaped = 12;         // in one step
constexpr int kPause = 16;                             // steps, if too many watched boxes escaped
constexpr int kShortestPause = 8, kLongestPause = 64;  // steps, if the skin was not worth its cost

#include "broadphase/host/verlet/grown_box.inl"

}  // namespace

Skin::Skin(HostTasks& tasks, const Reaches& reaches)
    : tasks_(tasks), reaches_(reaches), use_(testHooks.skin) {}

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
  const std::size_t n = input.boxes.size();
  if (!wasOn) return searchAll(input);
  if (isKnown && n >= grown_.size() && hadFilters == hadFilters_) {
    findEscaped(input);
    if (areFewEscaped(n, leaveHubs(input, hubs))) return Plan::escaped;
  }
  if (use_ != Use::automatic || account_.allowsAll()) return searchAll(input);
  turnOff();
  return Plan::plain;
}

bool Skin::areFewEscaped(std::size_t boxes, std::size_t ofHubs) const {
  const std::size_t escaped = escapedIds_.size();
  return kBoxesPerEscaped * escaped <= boxes &&
         (use_ != Use::automatic || account_.allowsEscaped(escaped, changes_, ofHubs));
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
  if (pauseSteps_ == 0) return watch(input);
  --pauseSteps_;
  return false;
}

void Skin::turnOff() {
  isOn_ = isReady_ = false;
  watchSteps_ = 0;
  grown_ = std::vector<Aabb>();  // gives the memory back
  last_ = std::vector<Aabb>();
  filters_ = std::vector<Filter>();
  pauseSteps_ = pause_ = std::clamp(2 * pause_, kShortestPause, kLongestPause);
}

/// Grows a sample of the boxes, and counts how many of them escape. If few do, it copies all boxes,
/// so that the next step knows which boxes move and in which direction. That step turns the skin
/// on.
/// @return whether to turn the skin on; true if the previous step has made these copies, or if the
///   caller reports that few boxes have changed
bool Skin::watch(const StepInput& input) {
  if (isReady_ || doFewChange(input)) return true;
  const std::size_t n = input.boxes.size(), samples = std::min(n, std::min(kWatched, 16 + n / 8));
  const auto sample = [&](std::size_t k) {
    return input.boxes[static_cast<std::size_t>(scattered(k) * n >> 32)];
  };
  bool doFew = false;
  if (watchSteps_ == 0 || grown_.size() != samples) {
    watchSteps_ = 1;
    watchedEscapes_ = 0;
    grown_.resize(samples);
    for (std::size_t k = 0; k < samples; ++k) grown_[k] = sample(k);
  } else {
    std::size_t escaped = 0;
    for (std::size_t k = 0; k < samples; ++k)
      if (isOutside(grown_[k], sample(k))) {
        ++escaped;
        grown_[k] = grownFrom(grown_[k], sample(k), k);
      }
    // In the first step all boxes that move escape, because none has a skin. In the next steps few
    // boxes escape, because those that have moved have new skins.
    if (watchSteps_ == 1) doFew = kWatchedPerMoving * escaped <= samples;
    if (watchSteps_ > kWatchSteps / 4) watchedEscapes_ += escaped;
    if (++watchSteps_ == kWatchSteps) {
      doFew = kWatchedPerEscaped * watchedEscapes_ <= (kWatchSteps - kWatchSteps / 4 - 1) * samples;
      watchSteps_ = 0;
      if (!doFew) pauseSteps_ = kPause;
    }
  }
  if (doFew) grown_.assign(input.boxes.begin(), input.boxes.end());
  isReady_ = doFew;
  return false;
}

/// Visits the indices of the words (64 boxes each) that can contain changed boxes.
template <class Visit>
void Skin::forWords(const StepInput& input, const Visit& visit) {
  const std::size_t words = wordsFor(input.boxes.size());
  const bool areKnown = isAnnounced(input) && input.changedWords.data() != nullptr;
  for (std::size_t group = 0; group < wordsFor(words); ++group)
    forBits((areKnown ? input.changedWords[group] : ~std::uint64_t{0}) &
                bitsBelow(words, group * kMaskBits),
            group * kMaskBits, visit);
}

/// Whether the caller reports that few boxes have changed. False if the caller passes no `changed`
/// bits.
bool Skin::doFewChange(const StepInput& input) {
  if (!isAnnounced(input)) return false;
  std::size_t changed = 0;
  forWords(input, [&](std::uint32_t word) {
    const std::uint64_t all = bitsBelow(input.boxes.size(), word * kMaskBits);
    changed += static_cast<std::size_t>(std::popcount(input.changed[word] & all));
  });
  return kWatchedPerMoving * changed < input.boxes.size();
}

Skin::Plan Skin::searchAll(const StepInput& input) {
  growAll(input);
  return Plan::all;
}

void Skin::growAll(const StepInput& input) {
  const std::size_t n = input.boxes.size(), known = std::min(n, grown_.size());
  // If the caller reports few changed boxes, the skin is turned on while grown_ is still empty.
  // Then all boxes are new, and those that have changed are grown at once.
  const bool growsNew = grown_.empty();
  grown_.resize(n);
  filters_.assign(input.filters.begin(), input.filters.end());
  const bool isAnnounced = Skin::isAnnounced(input);
  isLastKnown_ = !isAnnounced;
  last_.resize(isAnnounced ? 0 : n);
  tasks_.forRanges(n, kMaskBits * kMarkGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Aabb& box = input.boxes[i];
      if (!isAnnounced) last_[i] = box;
      const bool rests = isAnnounced && !hasBit(input.changed, i);
      if (rests || (i >= known && !(growsNew && isAnnounced)))
        grown_[i] = box;
      else if (i >= known)
        grown_[i] = grownFrom(box, box, i);
      else if (isOutside(grown_[i], box) || isLoose(grown_[i], box))
        grown_[i] = grownFrom(grown_[i], box, i);
    }
  });
}

/// Lists the words (64 boxes each) that can contain changed boxes. Clears the results for the words
/// of the previous list.
void Skin::listWords(const StepInput& input) {
  const std::size_t words = wordsFor(input.boxes.size());
  for (const std::uint32_t word : words_) {
    if (word < beyond_.size()) beyond_[word] = 0;
    if (word < escaped_.size()) escaped_[word] = 0;
  }
  words_.clear();
  escaped_.resize(words);
  beyond_.resize(words);
  words_.reserve(words);
  forWords(input, [&](std::uint32_t word) { words_.push_back(word); });
}

/// Finds the boxes that have escaped, and grows them. New boxes, and boxes with another filter or
/// object than in the last step, are treated as escaped.
void Skin::findEscaped(const StepInput& input) {
  const std::size_t n = input.boxes.size();
  known_ = grown_.size();
  grown_.resize(n, Aabb{{kNaN, kNaN, kNaN}, {kNaN, kNaN, kNaN}});
  filters_.resize(input.filters.size());
  const bool isAnnounced = Skin::isAnnounced(input), compares = isLastKnown_;
  isLastKnown_ = !isAnnounced;
  last_.resize(isAnnounced ? 0 : n);
  differs_.resize(isAnnounced ? 0 : wordsFor(n));
  listWords(input);
  tasks_.forRanges(words_.size(), kMarkGrain, [&](std::size_t begin, std::size_t end) {
    for (; begin < end; begin += kMarkGrain) {
      const View<const std::uint32_t> some{words_.data() + begin,
                                           std::min(end - begin, kMarkGrain)};
      for (std::size_t k = 0; k < some.size() && !isAnnounced; ++k) {
        const std::uint64_t differs = whatDiffers(input, some[k]);
        differs_[some[k]] = compares ? differs : ~std::uint64_t{0};
      }
      findEscaped(input, some);
    }
  });
  escapedIds_.clear();
  changes_ = changesInAll_ = 0;
  for (const std::uint32_t word : words_) {
    const std::uint64_t all = changedBits(input)[word] & bitsBelow(n, word * kMaskBits);
    const auto count = [&](std::uint64_t bits) {
      return static_cast<std::size_t>(std::popcount(bits | escaped_[word]));
    };
    changes_ += count(beyond_[word]);
    changesInAll_ += count(all);
    forBits(escaped_[word], word * kMaskBits, [&](std::uint32_t i) { escapedIds_.push_back(i); });
  }
}

/// Marks each changed hub as escaped. Escaped hubs get no skin. A skin would be useless, because
/// hubs are searched for whenever they change.
/// @return the number of candidates of the escaped hubs
std::size_t Skin::leaveHubs(const StepInput& input, View<const Hub> hubs) {
  std::size_t candidates = 0;
  for (const Hub& hub : hubs) {
    const Aabb& box = input.boxes[hub.id];
    const std::size_t word = hub.id / kMaskBits;
    const std::uint64_t bit = std::uint64_t{1} << hub.id % kMaskBits;
    if ((escaped_[word] & bit) == 0) {
      if (!hasBit(changedBits(input), hub.id) || !differ(hub.box, box)) continue;
      changes_ += (beyond_[word] & bit) == 0;
      escaped_[word] |= bit;
      escapedIds_.push_back(hub.id);
    }
    grown_[hub.id] = box;
    candidates += hub.candidates;
  }
  return candidates;
}

/// Finds the escaped boxes in the given words, and grows them. changedBits() must be valid for
/// these words, except for new boxes.
void Skin::findEscaped(const StepInput& input, View<const std::uint32_t> words) {
  const auto forChanged = [&](std::size_t word, std::uint64_t but, const auto& visit) {
    const std::uint64_t known = bitsBelow(known_, word * kMaskBits);
    forBits(changedBits(input)[word] & known & ~but, word * kMaskBits, visit);
  };
  Classes change{};
  const View<const Reach> reaches = reaches_.get();
  forPrefetched(
      input.boxes.size() > kBoxesInCache, words.size(),
      [&](std::size_t k) {
        const std::size_t word = words[k];
        const std::uint64_t all = bitsBelow(input.boxes.size(), word * kMaskBits);
        std::uint64_t escaped = whatIsNew(input, word) & all, beyond = 0;
        forChanged(word, escaped, [&](std::uint32_t i) {
          const bool isOther = hasOtherFilter(input, i);
          if (!isOther && i < reaches.size() && isWithin(reaches[i], grown_[i], input.boxes[i]))
            return;
          const std::uint64_t bit = std::uint64_t{1} << i % kMaskBits;
          beyond |= bit;
          if (isOther || isOutside(grown_[i], input.boxes[i])) escaped |= bit;
        });
        escaped_[word] = escaped;
        beyond_[word] = beyond;
        forBits(escaped, word * kMaskBits, [&](std::uint32_t i) { growEscaped(input, i, change); });
      },
      [&](std::size_t k) {
        forChanged(words[k], 0, [&](std::uint32_t i) {
          prefetchObject(input.boxes[i]);
          prefetchObject(grown_[i]);
        });
      });
  for (std::size_t k = 0; k < change.size(); ++k)
    if (change[k] != 0) classes_[k].fetch_add(change[k], std::memory_order_relaxed);
}

/// A mask of the boxes in a word that are new, or that now belong to another object.
std::uint64_t Skin::whatIsNew(const StepInput& input, std::size_t word) const {
  const std::size_t first = word * kMaskBits;
  std::uint64_t isNew = ~bitsBelow(known_, first);
  for (std::size_t i = first; i < std::min(first + kMaskBits, input.removedObjects.size()); ++i)
    isNew |= std::uint64_t{input.removedObjects[i] != 0} << (i - first);
  return isNew;
}

/// A mask of the changed boxes, for callers that pass no `changed` bits. Compares the boxes and
/// filters with the copies from the previous step, and updates the copies of the boxes.
std::uint64_t Skin::whatDiffers(const StepInput& input, std::size_t word) {
  const std::size_t first = word * kMaskBits;
  const std::size_t count = std::min(kMaskBits, input.boxes.size() - first);
  std::uint64_t changed = findChanged(&last_[first], &input.boxes[first], count);
  copyChanged(&last_[first], &input.boxes[first], count, changed);
  if (!input.filters.empty())
    changed |= findChanged(&filters_[first], &input.filters[first], count);
  return changed;
}

void Skin::growEscaped(const StepInput& input, std::uint32_t i, Classes& change) {
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

void Skin::endEscaped(StepStats& stats, const StepWork& work) {
  account_.chargeEscaped(escapedIds_.size(), work);
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
         (differs_.capacity() + escaped_.capacity() + beyond_.capacity()) * sizeof(std::uint64_t) +
         (words_.capacity() + escapedIds_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace lbvh

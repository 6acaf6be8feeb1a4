// SPDX-License-Identifier: Zlib
#include "broadphase/choose/pair_mirror.h"

#include <algorithm>

namespace lbvh {
namespace {

constexpr std::uint32_t kMostRounds = 1024;  // so that they can be counted for ever

}  // namespace

void PairMirror::log(View<const Pair> added, View<const Pair> removed,
                     View<const std::uint8_t> removedObjects) {
  // So that the log cannot outgrow the list.
  if (round_ == kMostRounds || log_.size() > 1024 + pairs_.size()) pairs();
  const std::size_t needed = log_.size() + added.size + removed.size;
  if (needed > log_.capacity()) log_.reserve(std::max(needed, 2 * log_.capacity()));
  if (removedObjects.size > removedAt_.size()) removedAt_.resize(removedObjects.size);
  // Nothing throws from here on.
  if (!removedObjects.empty()) ++round_;
  for (std::size_t i = 0; i < removedObjects.size; ++i)
    if (removedObjects[i] != 0) removedAt_[i] = round_;
  for (const Pair pair : removed) log_.push_back({pair, round_, false});
  for (const Pair pair : added) log_.push_back({pair, round_, true});
}

void PairMirror::assign(View<const Pair> pairs) {
  pairs_.assign(pairs.begin(), pairs.end());
  forgetLog();
}

View<const Pair> PairMirror::pairs() {
  if (!log_.empty() || round_ > 0) {
    merge();
    forgetLog();
  }
  return {pairs_.data(), pairs_.size()};
}

/// Whether a pair that was there in `round` was not ended by a later removal of its objects.
bool PairMirror::survives(Pair pair, std::uint32_t round) const {
  const auto removedAt = [this](std::uint32_t i) {
    return i < removedAt_.size() ? removedAt_[i] : 0;
  };
  return removedAt(pair.first) <= round && removedAt(pair.second) <= round;
}

/// The last that was said of a pair counts.
void PairMirror::merge() {
  merged_.clear();
  merged_.reserve(pairs_.size() + log_.size());
  std::stable_sort(log_.begin(), log_.end(),
                   [](const Entry& a, const Entry& b) { return a.pair < b.pair; });
  auto old = pairs_.begin();
  const auto keepOld = [&] {
    if (survives(*old, 0)) merged_.push_back(*old);
    ++old;
  };
  for (auto entry = log_.begin(); entry != log_.end(); ++entry) {
    if (entry + 1 != log_.end() && (entry + 1)->pair == entry->pair) continue;
    while (old != pairs_.end() && *old < entry->pair) keepOld();
    if (old != pairs_.end() && *old == entry->pair) ++old;
    if (entry->isAdded && survives(entry->pair, entry->round)) merged_.push_back(entry->pair);
  }
  while (old != pairs_.end()) keepOld();
  pairs_.swap(merged_);
}

void PairMirror::forgetLog() {
  log_.clear();
  removedAt_.clear();
  round_ = 0;
}

}  // namespace lbvh

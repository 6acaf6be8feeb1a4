#include "broadphase/pipelines/pair_mirror.h"

#include <algorithm>

namespace lbvh {

void PairMirror::log(View<const Pair> added, View<const Pair> removed,
                     View<const std::uint8_t> removedObjects) {
  // Also so that the log cannot outgrow the list.
  if (!removedObjects.empty() || log_.size() > 1024 + pairs_.size()) pairs();
  const std::size_t needed = log_.size() + added.size + removed.size;
  if (needed > log_.capacity()) log_.reserve(std::max(needed, 2 * log_.capacity()));
  // Nothing throws from here on.
  if (!removedObjects.empty())
    std::erase_if(pairs_, [&](Pair pair) { return involvesRemoved(pair, removedObjects); });
  for (const Pair pair : removed) log_.push_back({pair, false});
  for (const Pair pair : added) log_.push_back({pair, true});
}

void PairMirror::assign(View<const Pair> pairs) {
  pairs_.assign(pairs.begin(), pairs.end());
  log_.clear();
}

View<const Pair> PairMirror::pairs() {
  if (!log_.empty()) {
    // The last that was said of a pair counts.
    std::stable_sort(log_.begin(), log_.end(),
                     [](const Entry& a, const Entry& b) { return a.pair < b.pair; });
    merged_.clear();
    merged_.reserve(pairs_.size() + log_.size());
    auto old = pairs_.begin();
    for (auto entry = log_.begin(); entry != log_.end(); ++entry) {
      if (entry + 1 != log_.end() && (entry + 1)->pair == entry->pair) continue;
      for (; old != pairs_.end() && *old < entry->pair; ++old) merged_.push_back(*old);
      if (old != pairs_.end() && *old == entry->pair) ++old;
      if (entry->isAdded) merged_.push_back(entry->pair);
    }
    merged_.insert(merged_.end(), old, pairs_.end());
    pairs_.swap(merged_);
    log_.clear();
  }
  return {pairs_.data(), pairs_.size()};
}

}  // namespace lbvh

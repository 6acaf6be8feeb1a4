// SPDX-License-Identifier: Zlib
#include "broadphase/host/pair_history.h"

#include <algorithm>
#include <utility>

namespace lbvh {
namespace {

constexpr std::size_t kMany = 32;  // with more pairs per change, patching is faster than merging

}  // namespace

void PairHistory::begin() noexcept {
  added_ = removed_ = {};
  if (listed_ == Listed::lacksChange) listed_ = Listed::none;
}

void PairHistory::releaseSpare() {
  found_ = Scratch();
  spare_ = HostBuffer<Pair>();
}

void PairHistory::compare(const StepInput& input, NeighbourLists lists, std::size_t pairs,
                          StepStats& stats) {
  const View<Pair> sorted = spare_.ensure(pairs);
  {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    sort_.writePairs(lists, input.boxes.size(), sorted);
  }
  const auto timer = space_.timed("delta", stats.deltaMs);
  const View<Pair> memory = lendFound(pairs);  // may overwrite `lists`, which were read above
  const auto found = delta_.compare(space_.tasks(), pairs_, sorted, input.removedObjects,
                                    memory.data(), pairs_.data());
  added_ = found.added;
  removed_ = found.removed;
  pairs_ = sorted;
  size_ = pairs;
  std::swap(list_, spare_);
}

void PairHistory::change(const StepInput& input, View<std::uint64_t> changes, PairWords words,
                         std::size_t pairs) {
  const View<Pair> listed = changes_.ensure(changes.size());
  const std::uint64_t* const ordered =
      space_.radixSort().words(space_.tasks(), changes, 0, words.changeBits());
  std::size_t added = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    listed[i] = words.changed(ordered[i]);
    added += words.isAdded(ordered[i]);
  }
  added_ = {listed.data(), added};
  removed_ = {listed.data() + added, listed.size() - added};
  size_ = pairs;
  const bool isAsked = std::exchange(isAsked_, false);
  if (listed_ == Listed::all && isAsked && changes.empty() && input.removedObjects.empty()) return;
  if (listed_ != Listed::all) {  // pairs() was not called after the previous step
    pairs_ = {};
    list_ = HostBuffer<Pair>();
    spare_ = HostBuffer<Pair>();
  }
  // Pairs of removed objects have ended, but are not among the changes.
  const bool isPatchable = listed_ == Listed::all && input.removedObjects.empty();
  listed_ = isPatchable ? Listed::lacksChange : Listed::none;
}

void PairHistory::set(View<const Pair> pairs) {
  added_ = removed_ = pairs_ = {};
  size_ = 0;
  listed_ = Listed::all;
  const View<Pair> memory = list_.ensure(pairs.size());
  std::copy(pairs.begin(), pairs.end(), memory.begin());
  pairs_ = memory;
  size_ = pairs.size();
}

bool PairHistory::listByChange() {
  isAsked_ = true;
  if (listed_ != Listed::lacksChange) return listed_ == Listed::all;
  if (pairs_.size() < kMany * (added_.size() + removed_.size())) {
    mergeChanges(kernels_, pairs_, added_, removed_, spare_.ensure(size_));
    std::swap(list_, spare_);
  } else {
    patchList();
  }
  pairs_ = {list_.data(), size_};
  listed_ = Listed::all;
  return true;
}

void PairHistory::patchList() {
  const std::size_t size = pairs_.size(), changes = added_.size() + removed_.size();
  found_.reset(scratchBytes<std::uint64_t>(changes));
  if (list_.capacity() < size + added_.size()) {
    HostBuffer<Pair> larger;
    std::copy(pairs_.begin(), pairs_.end(), larger.ensure(size + added_.size()).begin());
    list_ = std::move(larger);
  }
  patchPairs(list_.data(), size, added_, removed_, found_.lend<std::uint64_t>("places", changes));
}

void PairHistory::list(NeighbourLists lists, std::size_t boxes) {
  pairs_ = list_.ensure(size_);
  sort_.writePairs(lists, boxes, pairs_);
  listed_ = Listed::all;
}

void PairHistory::describe(StepStats& stats) const {
  stats.pairs = size_;
  stats.added = added_.size();
  stats.removed = removed_.size();
  stats.capacity = std::max(list_.bytes() / sizeof(Pair), size_);
}

std::size_t PairHistory::memoryBytes() const {
  return list_.bytes() + found_.bytes() + spare_.bytes() + changes_.bytes() + sort_.memoryBytes() +
         delta_.memoryBytes();
}

}  // namespace lbvh

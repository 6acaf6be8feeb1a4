#include "broadphase/host/moving_set.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "broadphase/exec/changes.h"

namespace lbvh {
namespace {

constexpr std::size_t kGrain = 256;  // words of 64 boxes each
constexpr int kLongestPause = 15;

/// A search for one moving box costs as much as a search of all costs for so many: measured.
constexpr std::size_t kMovingShare = 4;

/// Compares up to 64 elements, bit for bit, with the old ones, and brings those up to date.
/// @return a mask of those that differ
template <class T>
std::uint64_t refresh(T* old, const T* now, std::size_t count) {
  const std::uint64_t changed = findChanged(old, now, count);
  copyChanged(old, now, count, changed);
  return changed;
}

}  // namespace

bool MovingSet::update(const StepInput& input, BlockBuilder& blocks) {
  const bool knewPairs = std::exchange(knowsPairs_, false);  // until this step is done
  if (mayPause(input)) return false;
  const bool knowsChanges = findChanges(input);
  if (!knewPairs || !knowsChanges || !isWorthIt(input.boxes.size)) return false;
  listMoving(input.boxes.size);
  blocks.remove({joined_.data(), joined_.size()});
  blocks.rebind(input.boxes, input.filters);
  knowsPairs_ = true;
  return true;
}

/// Copies and comparisons cost a fiftieth of a search of all. Where everything moves in each step,
/// that is wasted, so some steps do without.
bool MovingSet::mayPause(const StepInput& input) {
  if (input.changed.data != nullptr || pauseLeft_ == 0) return false;
  --pauseLeft_;
  remember(input, false);
  return true;
}

void MovingSet::remember(const StepInput& input, bool hasCopies) {
  size_ = input.boxes.size;
  hadFilters_ = !input.filters.empty();
  hasCopies_ = hasCopies;
}

void MovingSet::reset() {
  std::fill(isMoving_.begin(), isMoving_.end(), std::uint64_t{0});
  needless_ = 0;
  packed_ = size_;
  knowsPairs_ = true;
}

/// Boxes that came or went since the last step have changed, too.
/// @return false if there is nothing to compare with
bool MovingSet::findChanges(const StepInput& input) {
  const std::size_t n = input.boxes.size, common = std::min(n, size_), all = std::max(n, size_);
  const bool isTold = input.changed.data != nullptr;
  const bool isKnown = (isTold || hasCopies_) && hadFilters_ == !input.filters.empty();
  const std::size_t words = (all + kBits - 1) / kBits;
  hasChanged_.resize(words);
  if (isMoving_.size() < words) isMoving_.resize(words);
  boxes_.resize(isTold ? 0 : n);
  filters_.resize(isTold ? 0 : input.filters.size);
  tasks_.forRanges(words, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t word = begin; word < end; ++word) {
      const std::size_t first = word * kBits, count = first < n ? std::min(kBits, n - first) : 0;
      std::uint64_t changed = bitsBelow(all, first) & ~bitsBelow(common, first);
      if (count > 0) changed |= isTold ? input.changed[word] : compare(input, first, count);
      hasChanged_[word] = changed & bitsBelow(all, first);
    }
  });
  remember(input, !isTold);
  return isKnown;
}

/// Which of up to 64 boxes and filters are not what they were.
std::uint64_t MovingSet::compare(const StepInput& input, std::size_t first, std::size_t count) {
  std::uint64_t changed = refresh(boxes_.data() + first, input.boxes.data + first, count);
  if (!input.filters.empty())
    changed |= refresh(filters_.data() + first, input.filters.data + first, count);
  return changed;
}

/// Counts the boxes that are still searched although they rest again. When they add up to a search
/// of all, a search of all comes next. So the cost is at most twice the least possible.
bool MovingSet::isWorthIt(std::size_t n) {
  std::size_t changed = 0, moving = 0;
  for (std::size_t word = 0; word < hasChanged_.size(); ++word) {
    const std::uint64_t here = bitsBelow(n, word * kBits);
    changed += static_cast<std::size_t>(std::popcount(hasChanged_[word] & here));
    moving += static_cast<std::size_t>(std::popcount((hasChanged_[word] | isMoving_[word]) & here));
  }
  needless_ += moving - changed;
  if (kMovingShare * changed > n)
    pauseLeft_ = pause_ = std::min(2 * pause_ + 1, kLongestPause);
  else
    pause_ = 0;
  return kMovingShare * moving <= n && kMovingShare * needless_ <= n;
}

void MovingSet::listMoving(std::size_t n) {
  joined_.clear();
  moving_.clear();
  for (std::size_t word = 0; word < hasChanged_.size(); ++word) {
    const std::size_t first = word * kBits;
    const std::uint64_t joining = hasChanged_[word] & ~isMoving_[word];
    isMoving_[word] |= joining;
    forBits(joining & bitsBelow(packed_, first), first, [&](auto id) { joined_.push_back(id); });
    forBits(isMoving_[word] & bitsBelow(n, first), first, [&](auto id) { moving_.push_back(id); });
  }
}

std::size_t MovingSet::memoryBytes() const {
  return boxes_.capacity() * sizeof(Aabb) + filters_.capacity() * sizeof(Filter) +
         (hasChanged_.capacity() + isMoving_.capacity()) * sizeof(std::uint64_t) +
         (moving_.capacity() + joined_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
#include "broadphase/host/verlet/reaches.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <limits>

#include "broadphase/core/morton.h"
#include "broadphase/core/prefetch.h"

namespace lbvh {
namespace {

constexpr std::size_t kMeasureGrain = 8;             // words of 64 boxes each
constexpr std::size_t kManyChange = 4;               // a quarter of the boxes
constexpr std::size_t kManyBeyond = 8;               // an eighth of the changed boxes
constexpr int kShortestRest = 4, kLongestRest = 32;  // steps

// In each group of 64 boxes, a trial measures only these four. Measuring all reaches costs as much
// as testing the candidates in several steps.
constexpr std::uint64_t kTried = 0x0001000100010001;
constexpr std::size_t kTriedOf = 16;  // one in this many boxes is in the trial

// A length is the difference of two numbers, with a relative rounding error of 2^-24. These factors
// cover that error: the reaches of both boxes add up to less than the length.
constexpr float kAll = 0.98f, kHalf = 0.49f;
constexpr float kTaken = 1 + 1.0f / (1 << 20);

/// The smallest length by which two boxes overlap, over all axes and directions. If it is negative,
/// the boxes are apart by its absolute value on one axis.
float depth(const Aabb& a, const Aabb& b) {
  float least = a.max[0] - b.min[0];
  for (int axis = 0; axis < 3; ++axis) {
    const float up = a.max[axis] - b.min[axis], down = b.max[axis] - a.min[axis];
    least = up >= least ? least : up;
    least = down >= least ? least : down;
  }
  return least;
}

/// The distances from the faces of the grown box to the faces of the box.
struct Insets {
  Insets(const Aabb& grown, const Aabb& box) {
    for (int axis = 0; axis < 3; ++axis) {
      of[axis] = box.min[axis] - grown.min[axis];
      of[3 + axis] = grown.max[axis] - box.max[axis];
    }
    least = *std::min_element(of, of + 6);
    most = *std::max_element(of, of + 6);
  }
  /// Whether the box is inside the grown box, without touching it. False if a coordinate is NaN, or
  /// if a distance is infinite, as it may be for an inverted box.
  bool areInside() const {
    const float sum = of[0] + of[1] + of[2] + of[3] + of[4] + of[5];
    return least > 0 && sum <= std::numeric_limits<float>::max();
  }
  float of[6], least, most;
};

/// A reach within which each coordinate differs by at most `by` from the box's coordinate.
Reach reachOf(const Aabb& grown, const Aabb& box, const Insets& insets, float by) {
  Reach reach;
  reach.unit = insets.most * (1.0f / 255);
  for (int k = 0; k < 6; ++k)
    reach.insets[k] = static_cast<std::uint8_t>(std::min(insets.of[k] / reach.unit + 0.5f, 255.0f));
  const Insets off(reach.from(grown), box);
  const float rest = by - kTaken * std::max(off.most, -off.least);
  const float parts = std::min(rest / reach.unit * Reach::kParts, 65535.0f);
  if (!(parts >= 1)) return {};
  reach.by = static_cast<std::uint16_t>(parts);
  return reach;
}

}  // namespace

void Reaches::forget() {
  if (!isOn_) return;
  isOn_ = false;
  reaches_ = std::vector<Reach>();  // gives the memory back
  pause_ = steps_ > kLongestRest ? 0 : pause_;
  pause_ = pauseSteps_ = std::clamp(2 * pause_, kShortestRest, kLongestRest);
}

/// The number of boxes that have moved beyond their reach. In a trial it is estimated from the
/// sample.
std::size_t Reaches::beyondOf(const BoxChanges& changes) const {
  if (!isTrial_) return changes.changes;
  std::size_t count = 0;
  for (const std::uint32_t word : changes.words)
    count += static_cast<std::size_t>(std::popcount(changes.changed[word] & kTried));
  return kTriedOf * count;
}

/// Whether reaches are worth their cost. Measuring a box's reach costs as much as testing the box's
/// candidates several times.
bool Reaches::areWorthIt(const BoxChanges& changes, std::size_t changed) {
  const std::size_t boxes = changes.boxes.size();
  const bool areMany = kManyChange * changed >= boxes;
  if (isOn_) {
    if (areMany && kManyBeyond * beyondOf(changes) <= changed) {
      isTrial_ = false;
      ++steps_;
      return true;
    }
    forget();
    return false;
  }
  if (!areMany || pauseSteps_-- > 0) return false;
  isOn_ = isTrial_ = true;
  pauseSteps_ = steps_ = 0;
  reaches_.assign(boxes, {});
  return true;
}

std::uint64_t Reaches::renew(HostTasks& tasks, const BoxChanges& changes, const CandidateRows& rows,
                             std::size_t changed) noexcept try {
  const std::size_t n = changes.boxes.size();
  if (!areWorthIt(changes, changed)) return 0;
  reaches_.resize(n);
  const std::size_t words = changes.words.size(), parts = tasks.parts(words, kMeasureGrain);
  const std::uint64_t measured = isTrial_ ? kTried : ~std::uint64_t{0};
  parts_.resize(parts);
  // If both boxes of a pair are measured, each gets half of the length. So the order in which they
  // are measured does not matter, and no thread reads a reach that another thread writes.
  tasks.forParts(words, parts, [&](std::size_t k, std::size_t begin, std::size_t end) {
    Part& part = parts_[k];
    part.woken.clear();
    part.visits = 0;
    for (; begin < end; ++begin) {
      const std::size_t word = changes.words[begin], first = word * kMaskBits;
      forBits((changes.changed[word] | changes.escaped[word]) & measured & bitsBelow(n, first),
              first, [&](std::uint32_t i) { reaches_[i] = measure(i, changes, rows, part); });
    }
  });
  std::uint64_t visits = 0;
  for (const Part& part : parts_) {
    for (const std::uint32_t id : part.woken) reaches_[id] = {};
    visits += part.visits;
  }
  return visits;
} catch (const std::exception&) {  // the pairs are final, so the step must not fail
  forget();
  return 0;
}

Reach Reaches::measure(std::uint32_t i, const BoxChanges& changes, const CandidateRows& rows,
                       Part& part) const {
  const Aabb &box = changes.boxes[i], &grown = changes.grown[i];
  const Insets insets(grown, box);
  if (rows.isHub(i) || !insets.areInside() || classify(grown) != BoxClass::ordinary) return {};
  float by = kAll * insets.least;
  const View<const std::uint32_t> entries = rows.all(i);
  part.visits += entries.size();
  for (const std::uint32_t entry : entries) {
    const std::uint32_t id = entry & CandidateRows::kIndex;
    float most = kHalf * std::abs(depth(box, changes.boxes[id]));
    // Another thread may be writing the reach of a box that has changed.
    const Reach* const other = changes.hasChanged(id) ? nullptr : &reaches_[id];
    if (other != nullptr && other->unit > 0) {
      const float rest =
          std::abs(depth(box, other->from(changes.grown[id]))) - kTaken * other->length();
      if (rest > 0)
        most = kAll * rest;
      else
        part.woken.push_back(id);
    }
    by = most >= by ? by : most;
  }
  return reachOf(grown, box, insets, by);
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// Stores how far each box may move before one of its pairs can change. Two boxes overlap by some
// length, or are apart by some length. Whether they overlap cannot change while the motions of both
// boxes add up to less than this length. So each box gets a reach: the minimum of its shares of
// these lengths over all candidates (candidates.h). The distance to its grown box (skin.h) limits
// the reach, too. For a box within its reach, a step tests no candidates. Keeps reaches only while
// many boxes move and most stay within their reach. Does not test pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/verlet/candidate_rows.h"
#include "broadphase/host/verlet/compare_escaped.h"
#include "broadphase/types.h"

namespace lbvh {

/// A box is within its reach while each of its coordinates differs by at most length() from the
/// same coordinate of from(grown). from(grown) is nearly the box for which the reach was measured.
/// It is stored relative to the grown box to save memory.
struct Reach {
  float unit = -1;              ///< negative: every change is beyond the reach
  std::uint8_t insets[6] = {};  ///< from the faces of the grown box to those of from(), in units
  std::uint16_t by = 1;         ///< length() in parts of a unit
  static constexpr float kParts = 256;  ///< number of parts of a unit

  float length() const { return unit * (1 / kParts) * static_cast<float>(by); }
  Aabb from(const Aabb& grown) const {
    Aabb box;
    for (int axis = 0; axis < 3; ++axis) {
      box.min[axis] = grown.min[axis] + unit * static_cast<float>(insets[axis]);
      box.max[axis] = grown.max[axis] - unit * static_cast<float>(insets[3 + axis]);
    }
    return box;
  }
};

class Reaches {
 public:
  /// The reaches of all boxes; empty while none are kept.
  View<const Reach> get() const { return {reaches_.data(), isOn_ ? reaches_.size() : 0}; }

  /// Discards all reaches. Must be called if the candidates are new, or if a box with unknown
  /// candidates has moved.
  void forget();

  /// Must be called after a step. Decides whether to keep reaches. Measures the reach of each box
  /// that has moved beyond its reach or has escaped. If memory runs out, discards all reaches.
  /// @param changes the boxes that have moved beyond their reach or have escaped
  /// @param changed number of boxes that have changed, within their reach or beyond
  /// @return number of candidates that were read
  std::uint64_t renew(HostTasks& tasks, const BoxChanges& changes, const CandidateRows& rows,
                      std::size_t changed) noexcept;

  std::size_t memoryBytes() const { return reaches_.capacity() * sizeof(Reach); }

 private:
  struct Part {
    std::vector<std::uint32_t> woken;
    std::uint64_t visits = 0;
  };

  bool areWorthIt(const BoxChanges& changes, std::size_t changed);
  std::size_t beyondOf(const BoxChanges& changes) const;
  Reach measure(std::uint32_t i, const BoxChanges& changes, const CandidateRows& rows,
                Part& part) const;

  std::vector<Reach> reaches_;
  std::vector<Part> parts_;
  bool isOn_ = false;
  bool isTrial_ = false;  ///< whether only a sample of the boxes has reaches
  int pause_ = 0, pauseSteps_ = 0, steps_ = 0;
};

}  // namespace lbvh

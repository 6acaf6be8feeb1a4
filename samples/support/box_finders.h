// SPDX-License-Identifier: Zlib
// Finds the pairs of recorded boxes with the core alone or through any of Bullet's broad phases.
// Does not read files and does not time itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/broadphases.h"
#include "support/recorded_boxes.h"

class BoxFinder {
 public:
  virtual ~BoxFinder() = default;

  /// Hands a frame's boxes over; they must live until find() is done.
  virtual void setBoxes(const std::vector<lbvh::Aabb>& boxes) = 0;

  /// @throws std::exception if the step could not be finished
  virtual void find() = 0;

  /// Count and hash of the pairs of the last find().
  virtual PairHash pairs() const = 0;

  virtual Space space() const = 0;

  /// Of the last find(); null if the broad phase has no times of its stages.
  virtual const lbvh::StepStats* stats() const { return nullptr; }
};

/// core, then broadphaseNames().
std::vector<std::string> boxFinderNames();

/// @throws FileError if a box has a NaN, which no finder takes, or min > max, which Bullet's
///   axis-sweep does not survive
void requireBoxes(const std::string& name, const std::vector<lbvh::Aabb>& boxes,
                  const std::string& file);

/// @param name one of boxFinderNames()
/// @param first boxes of the first frame, for broad phases that must be told a size; it does not
///   hand them over yet
/// @throws std::length_error on more boxes than Bullet can count
std::unique_ptr<BoxFinder> makeBoxFinder(const std::string& name, const lbvh::Options& options,
                                         const std::vector<lbvh::Aabb>& first);

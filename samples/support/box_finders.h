// SPDX-License-Identifier: Zlib
// Finds the pairs of recorded boxes either with the core itself or through any Bullet broad phase.
// Does not read files and does not measure times.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "support/broadphases.h"
#include "support/recorded_boxes.h"

class BoxFinder {
 public:
  virtual ~BoxFinder() = default;

  /// Passes a frame's boxes, which must live until find() returns.
  virtual void setBoxes(const std::vector<lbvh::Aabb>& boxes) = 0;

  /// @throws std::exception if the step could not be finished
  virtual void find() = 0;

  /// The number of pairs of the last find(). Makes the list of pairs ready for a program to read.
  virtual std::size_t countPairs() = 0;

  /// Count and hash of the pairs of the last find().
  virtual PairHash pairs() = 0;

  virtual Space space() const = 0;

  /// Statistics of the last find(); null if the broad phase does not time its stages.
  virtual const lbvh::StepStats* stats() const { return nullptr; }
};

/// `core`, then broadphaseNames().
std::vector<std::string> boxFinderNames();

/// @throws FileError if a box has a NaN, or if `name` is axis-sweep and a box has min > max,
///   because axis-sweep would crash
void requireBoxes(const std::string& name, const std::vector<lbvh::Aabb>& boxes,
                  const std::string& file);

/// @param name one of boxFinderNames()
/// @param first boxes of the first frame. Some broad phases need their number and bounds. The
///   finder does not search them
/// @throws std::length_error if there are more boxes than Bullet can count
std::unique_ptr<BoxFinder> makeBoxFinder(const std::string& name, const lbvh::Options& options,
                                         const std::vector<lbvh::Aabb>& first);

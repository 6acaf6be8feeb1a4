// Which boxes rest: those that are what they were when all boxes were packed last. Their pairs
// among themselves are known, so a step needs to search for the others only. Remembers the boxes
// and filters of the last step, unless it is told what has changed; does not search, and does not
// own the blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "broadphase/exec/host/tasks.h"
#include "broadphase/host/build_blocks.h"
#include "broadphase/pipelines/pipeline.h"

namespace lbvh {

class MovingSet {
 public:
  explicit MovingSet(HostTasks& tasks) : tasks_(tasks) {}

  /// Compares a step's boxes with those of the last one, and takes those that differ out of
  /// `packing`. False: all boxes had better be searched again; then
  /// nothing rests until the next begin().
  bool update(const StepInput& input, BlockBuilder& packing);

  /// All boxes of the last update() were packed and searched: they rest.
  void reset();

  /// Nothing rests.
  void invalidate() { knowsPairs_ = false; }

  /// The boxes that do not rest, sorted; and whether a box, or one that is gone, is among them.
  View<const std::uint32_t> moving() const { return {moving_.data(), moving_.size()}; }
  bool isMoving(std::uint32_t id) const { return (isMoving_[id / kBits] >> id % kBits & 1) != 0; }

  /// All indices of this step's boxes, and of any earlier one's, are less.
  std::size_t indices() const { return kBits * isMoving_.size(); }

  std::size_t memoryBytes() const;

 private:
  static constexpr std::size_t kBits = 64;

  bool mayPause(const StepInput& input);
  bool findChanges(const StepInput& input);
  void remember(const StepInput& input, bool hasCopies);
  std::uint64_t compare(const StepInput& input, std::size_t first, std::size_t count);
  bool isWorthIt(std::size_t n);
  void listMoving(std::size_t n);

  HostTasks& tasks_;
  std::vector<Aabb> boxes_;  ///< copies, and likewise of the filters
  std::vector<Filter> filters_;
  std::vector<std::uint64_t> hasChanged_, isMoving_;  ///< a bit a box
  std::vector<std::uint32_t> moving_, joined_;
  std::size_t size_ = 0;           ///< how many boxes the last step had
  std::size_t packed_ = 0;         ///< how many boxes there were at begin()
  std::size_t needless_ = 0;       ///< boxes that moved no more and were searched, since begin()
  int pause_ = 0, pauseLeft_ = 0;  ///< steps without comparing, because much moved
  bool hadFilters_ = false, hasCopies_ = false;
  bool knowsPairs_ = false;
};

}  // namespace lbvh

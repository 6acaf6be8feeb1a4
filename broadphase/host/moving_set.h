// Which boxes move, and which rest. A box rests as long as it has not changed since all boxes were
// packed. The pairs among resting boxes are known, so a step searches only for those that move.
// Remembers the boxes and filters of the last step, unless the caller tells what has changed. Does
// not search, and does not own the blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "broadphase/exec/host/tasks.h"
#include "broadphase/host/build_blocks.h"
#include "broadphase/stages/step_header.h"

namespace lbvh {

class MovingSet {
 public:
  explicit MovingSet(HostTasks& tasks) : tasks_(tasks) {}

  /// Compares a step's boxes with those of the last step, and takes those that differ out of
  /// `blocks`.
  /// @return false if a search of all boxes is cheaper; then nothing rests until the next reset()
  bool update(const StepInput& input, BlockBuilder& blocks);

  /// All boxes of the last update() were packed and searched: from now on they rest.
  void reset();

  /// The pairs of the last step are not known any more: nothing rests.
  void invalidate() { knowsPairs_ = false; }

  /// The boxes that move, sorted.
  View<const std::uint32_t> moving() const { return {moving_.data(), moving_.size()}; }
  /// Also of a box that is gone.
  bool isMoving(std::uint32_t id) const { return (isMoving_[id / kBits] >> id % kBits & 1) != 0; }

  /// Greater than all indices of boxes in this step and in the last.
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
  std::size_t packed_ = 0;         ///< how many boxes there were at reset()
  std::size_t needless_ = 0;       ///< boxes that moved no more and were searched, since reset()
  int pause_ = 0, pauseLeft_ = 0;  ///< steps without comparing, because much moved
  bool hadFilters_ = false, hasCopies_ = false;
  bool knowsPairs_ = false;
};

}  // namespace lbvh

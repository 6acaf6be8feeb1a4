// SPDX-License-Identifier: Zlib
// Keeps copies of the boxes and filters of the previous step and of the current one. If the GPU
// fails and its pairs are lost, the host finds the previous step's pairs again from these copies.
// No pairs are kept, so the cost does not depend on their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/shared_work.h"
#include "broadphase/core/step_header.h"
#include "broadphase/types.h"

namespace lbvh {

/// Each step calls prepare(), runs the work that prepare() returns, and calls keep() if the step
/// succeeds. Without keep() the copy of the previous step stays.
class LastScene {
 public:
  class Copying;

  /// Allocates the memory for the copy of a step, and returns the work of copying. The previous
  /// copy stays as it is. With `changed` bits, the work copies only what changed in this step or in
  /// the previous one.
  /// @throws std::bad_alloc; the previous copy is unchanged
  [[nodiscard]] Copying prepare(const StepInput& input);
  void keep() noexcept;

  /// The step for which keep() was called last, without its `removedObjects` and `changed`.
  StepInput get() const;
  void clear() { *this = LastScene(); }
  std::size_t memoryBytes() const;

 private:
  struct Copy {
    std::vector<Aabb> boxes;
    std::vector<Filter> filters;
    std::uint64_t maxPairs = 0;
    std::vector<std::uint64_t> changed;  ///< what changed in the step, if that is known
    bool knowsChanged = false;
    bool isWhole = false;  ///< whether this is the copy of a step that succeeded
  };

  void copyRange(const StepInput& input, std::size_t begin, std::size_t end) noexcept;

  const Copy& last() const { return copies_[last_]; }
  Copy& next() { return copies_[1 - last_]; }

  Copy copies_[2];  ///< used alternately
  int last_ = 0;
  /// The first known_ boxes and filters of next() differ from those of the current step only where
  /// `changed` bits of this step or of the previous one are set.
  std::size_t known_ = 0;
};

/// Copies the boxes and filters of a step. A piece of this work is a range of boxes.
class LastScene::Copying final : public SharedWork {
 public:
  Copying(LastScene& scene, const StepInput& input)
      : SharedWork((input.boxes.size() + kPiece - 1) / kPiece), scene_(scene), input_(input) {}

 private:
  static constexpr std::size_t kPiece = 4096;  ///< a multiple of 64

  void run(std::size_t piece) noexcept override;

  LastScene& scene_;
  const StepInput& input_;
};

}  // namespace lbvh

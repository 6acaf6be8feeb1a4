// SPDX-License-Identifier: Zlib
// Boxes grown by a skin. As long as a box is within its grown box it need not be searched for: all
// that it overlaps is among the candidates of its grown box (candidates.h), as in molecular
// dynamics (Verlet 1967, "Computer 'experiments' on classical fluids"). A box that rests has no
// skin. One that has left its grown box gets a skin on all sides, and more on the side to which it
// moves. Decides in which steps all boxes are searched for, with skins or without. Does not search.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/step_header.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/verlet/hub.h"
#include "broadphase/host/verlet/skin_account.h"
#include "broadphase/options.h"
#include "broadphase/types.h"

namespace lbvh {

class Skin {
 public:
  /// What a step searches for.
  enum class Plan {
    plain,  ///< all boxes as they are; nothing is kept for the next step
    all,    ///< all grown boxes
    left,   ///< the grown boxes of those that have left their old ones
  };

  explicit Skin(HostTasks& tasks);

  /// Decides about a step, and grows boxes anew.
  /// @param isKnown whether candidates are known for the grown boxes as they are
  /// @param hubs then: boxes that leave when they change, because others know their candidates
  Plan plan(const StepInput& input, bool isKnown, View<const Hub> hubs);
  /// The same step is to search for all after Plan::left, because there is no room.
  void growAll(const StepInput& input);
  /// From now on without a skin, for some time.
  void turnOff();

  /// How many tests a search of all grown boxes is worth.
  std::uint64_t mostTests(std::size_t boxes) const {
    return use_ == Use::automatic ? account_.mostTests(boxes) : ~std::uint64_t{0};
  }
  /// After Plan::plain.
  void endPlain(std::size_t boxes, std::uint64_t tests) { account_.notePlain(boxes, tests); }
  /// After Plan::all: what it has done, how many candidates it has found, and how many boxes of
  /// each class there are, which is kept up to date from then on.
  void endAll(const StepStats& stats, std::size_t found, const StepWork& work);
  /// After Plan::left: what it has done. Writes how many boxes of each class there are.
  void endLeft(StepStats& stats, const StepWork& work);

  /// The last step with grown boxes, and with filters of its own.
  StepInput grown() const;
  /// The same step with grown boxes.
  StepInput grown(const StepInput& input) const;
  /// With Plan::left.
  View<const std::uint64_t> changed() const { return {changed_.data(), changed_.size()}; }
  std::size_t changes() const { return changes_; }
  View<const std::uint64_t> left() const { return {left_.data(), left_.size()}; }
  View<const std::uint32_t> leftIds() const { return {leftIds_.data(), leftIds_.size()}; }

  std::size_t memoryBytes() const;

 private:
  /// GPULBVH_SKIN=always, never or alternating decides otherwise than `automatic`: for tests.
  enum class Use { automatic, always, never, alternating };
  static Use useByEnvironment();

  using Classes = std::array<std::size_t, 3>;  ///< boxes of each class

  bool isWanted(const StepInput& input);
  bool watch(const StepInput& input);
  Plan searchAll(const StepInput& input);
  bool areFewLeft(std::size_t boxes, std::size_t ofHubs) const;
  std::size_t leaveHubs(const StepInput& input, View<const Hub> hubs);
  void findLeft(const StepInput& input);
  void findLeft(const StepInput& input, std::size_t firstWord, std::size_t lastWord);
  std::uint64_t whatIsNew(const StepInput& input, std::size_t word) const;
  std::uint64_t whatDiffers(const StepInput& input, std::size_t word);
  bool hasLeft(const StepInput& input, std::size_t i) const;
  void growLeft(const StepInput& input, std::uint32_t i, Classes& change);

  HostTasks& tasks_;
  const Use use_;
  std::vector<Aabb> grown_;      ///< while off: of the watched boxes
  std::vector<Aabb> last_;       ///< the last step's boxes, if nobody tells what changes
  std::vector<Filter> filters_;  ///< of the last step
  std::vector<std::uint64_t> changed_, left_;
  std::vector<std::uint32_t> leftIds_;
  bool isOn_ = false, isReady_ = false, hadFilters_ = false;
  bool isLastKnown_ = false;
  SkinAccount account_;
  std::size_t changes_ = 0;  ///< how many bits of changed_ are set
  std::size_t known_ = 0;    ///< boxes of the last step
  int steps_ = 0;            ///< since it was turned on, or off
  std::size_t watchSteps_ = 0;
  int pause_ = 0, pauseLeft_ = 0;  ///< steps without watching
  std::size_t watchedLeft_ = 0;
  std::atomic<std::size_t> classes_[3] = {};  ///< how many boxes of each
};

}  // namespace lbvh

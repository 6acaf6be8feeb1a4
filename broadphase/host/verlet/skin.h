// SPDX-License-Identifier: Zlib
// Grows boxes by a skin, and decides what each step searches for. While a box stays within its
// grown box, its pairs need no search: all boxes that it overlaps are among its candidates
// (candidates.h). The method comes from molecular dynamics (Verlet 1967, "Computer 'experiments' on
// classical fluids"). A box that rests has no skin. A box that escapes from its grown box gets a
// new grown box, with a skin on all sides, and more in the direction of motion. Does not search.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/changes.h"
#include "broadphase/core/step_header.h"
#include "broadphase/core/test_hooks.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/verlet/candidate_rows.h"
#include "broadphase/host/verlet/reaches.h"
#include "broadphase/host/verlet/skin_account.h"
#include "broadphase/options.h"
#include "broadphase/types.h"

namespace lbvh {

class Skin {
 public:
  /// What a step searches for.
  enum class Plan {
    plain,    ///< all boxes as they are; the next step gets no candidates
    all,      ///< all grown boxes
    escaped,  ///< the boxes that have escaped, with new grown boxes
  };

  /// @param reaches boxes within their reach are skipped
  Skin(HostTasks& tasks, const Reaches& reaches);

  /// Decides what a step searches for, and updates the grown boxes.
  /// @param isKnown whether the candidates of the current grown boxes are known
  /// @param hubs boxes that escape whenever they change, because their rows do not list their
  ///   candidates
  Plan plan(const StepInput& input, bool isKnown, View<const Hub> hubs);
  /// Prepares a search of all grown boxes in the same step, after Plan::escaped has failed.
  void growAll(const StepInput& input);
  /// Turns the skin off for some steps.
  void turnOff();

  /// Maximum number of tests in a search of all grown boxes. A search that needs more is not worth
  /// its cost.
  std::uint64_t mostTests(std::size_t boxes) const {
    return use_ == Use::automatic ? account_.mostTests(boxes) : ~std::uint64_t{0};
  }
  /// Must be called at the end of a step with Plan::plain.
  void endPlain(std::size_t boxes, std::uint64_t tests) { account_.notePlain(boxes, tests); }
  /// Must be called at the end of a step with Plan::all.
  /// @param stats has the number of oversized and NaN boxes, which later steps keep up to date
  /// @param found number of candidates
  void endAll(const StepStats& stats, std::size_t found, const StepWork& work);
  /// Must be called at the end of a step with Plan::escaped. Writes the number of oversized and NaN
  /// boxes to `stats`.
  void endEscaped(StepStats& stats, const StepWork& work);

  /// The input of the last step, with grown boxes and copied filters.
  StepInput grown() const;
  /// The given input, with grown boxes.
  StepInput grown(const StepInput& input) const;
  /// With Plan::escaped: a bit for each box that has changed, except boxes within their reach.
  /// Boxes that have escaped may have no bit.
  View<const std::uint64_t> changed() const { return {beyond_.data(), beyond_.size()}; }
  /// The indices of the words of changed() and escaped() that can be nonzero, sorted.
  View<const std::uint32_t> words() const { return {words_.data(), words_.size()}; }
  /// Number of boxes in changed() or escaped().
  std::size_t changes() const { return changes_; }
  /// changes(), plus the number of changed boxes within their reach.
  std::size_t changesInAll() const { return changesInAll_; }
  View<const std::uint64_t> escaped() const { return {escaped_.data(), escaped_.size()}; }
  View<const std::uint32_t> escapedIds() const { return {escapedIds_.data(), escapedIds_.size()}; }

  std::size_t memoryBytes() const;

 private:
  using Use = TestHooks::Skin;
  using Classes = std::array<std::size_t, 3>;  ///< number of boxes of each class

  static bool isAnnounced(const StepInput& input) { return input.changed.data() != nullptr; }
  bool isWanted(const StepInput& input);
  bool watch(const StepInput& input);
  static bool doFewChange(const StepInput& input);
  Plan searchAll(const StepInput& input);
  bool areFewEscaped(std::size_t boxes, std::size_t ofHubs) const;
  std::size_t leaveHubs(const StepInput& input, View<const Hub> hubs);
  template <class Visit>
  static void forWords(const StepInput& input, const Visit& visit);
  void listWords(const StepInput& input);
  void findEscaped(const StepInput& input);
  void findEscaped(const StepInput& input, View<const std::uint32_t> words);
  View<const std::uint64_t> changedBits(const StepInput& input) const {
    return isAnnounced(input) ? input.changed
                              : View<const std::uint64_t>{differs_.data(), differs_.size()};
  }
  std::uint64_t whatIsNew(const StepInput& input, std::size_t word) const;
  std::uint64_t whatDiffers(const StepInput& input, std::size_t word);
  bool hasOtherFilter(const StepInput& input, std::size_t i) const {
    return !input.filters.empty() && differ(filters_[i], input.filters[i]);
  }
  void growEscaped(const StepInput& input, std::uint32_t i, Classes& change);

  HostTasks& tasks_;
  const Reaches& reaches_;
  const Use use_;
  std::vector<Aabb> grown_;      ///< grown boxes; while the skin is off, only of watched boxes
  std::vector<Aabb> last_;       ///< boxes of the last step, if the caller passes no `changed` bits
  std::vector<Filter> filters_;  ///< filters of the last step
  std::vector<std::uint64_t> differs_;  ///< changedBits(), if the caller passes no `changed` bits
  std::vector<std::uint64_t> beyond_;   ///< changed()
  std::vector<std::uint64_t> escaped_;
  std::vector<std::uint32_t> words_;
  std::vector<std::uint32_t> escapedIds_;  ///< escaped_ as a list that can be divided among threads
  bool isOn_ = false, isReady_ = false, hadFilters_ = false;
  bool isLastKnown_ = false;
  SkinAccount account_;
  std::size_t changes_ = 0, changesInAll_ = 0;
  std::size_t known_ = 0;  ///< number of boxes of the last step
  int steps_ = 0;          ///< steps since the skin was turned on
  std::size_t watchSteps_ = 0;
  int pause_ = 0, pauseSteps_ = 0;  ///< steps in which no boxes are watched
  std::size_t watchedEscapes_ = 0;
  std::atomic<std::size_t> classes_[3] = {};  ///< number of boxes of each class
};

}  // namespace lbvh

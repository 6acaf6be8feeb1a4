// SPDX-License-Identifier: Zlib
// Lets this repository's tests and benchmarks force choices that otherwise depend on the scene or
// the machine. These are not options of the library, and are not installed.
#pragma once

namespace lbvh {

/// Choices that are read when a finder is made. Set them only while no other thread makes a finder.
struct TestHooks {
  /// In which steps on the host the boxes are grown by a skin.
  enum class Skin {
    automatic,   ///< if the counts of earlier steps show that this is faster
    always,      ///< in all steps
    never,       ///< in no step
    alternating  ///< in a few steps, not in the next few, and so on
  };
  Skin skin = Skin::automatic;

  /// Whether a GPU sorts the boxes in each step, even if it could keep the previous order.
  bool sortsEachStep = false;

  /// Whether a Worker's thread and its owner spin for some time before they sleep (worker.h).
  enum class Spin {
    automatic,  ///< if there are more than two processors
    always,
    never
  };
  Spin spin = Spin::automatic;
};

inline TestHooks testHooks;

}  // namespace lbvh

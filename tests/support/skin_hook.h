// SPDX-License-Identifier: Zlib
// Chooses the steps in which finders grow boxes by a skin. Applies to finders that are made
// afterwards (core/test_hooks.h).
#pragma once

#include <stdexcept>
#include <string>

#include "broadphase/core/test_hooks.h"

namespace lbvh::test {

/// @param name "always", "never", "alternating", or "automatic", which undoes the others
/// @throws std::invalid_argument if `name` is none of these
inline void forceSkin(const std::string& name) {
  using Skin = TestHooks::Skin;
  if (name == "automatic")
    testHooks.skin = Skin::automatic;
  else if (name == "always")
    testHooks.skin = Skin::always;
  else if (name == "never")
    testHooks.skin = Skin::never;
  else if (name == "alternating")
    testHooks.skin = Skin::alternating;
  else
    throw std::invalid_argument("no such skin: " + name +
                                ", only automatic, always, never and alternating");
}

}  // namespace lbvh::test

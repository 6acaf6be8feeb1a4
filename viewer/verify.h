// SPDX-License-Identifier: Zlib
// Compares a world's broad phase with brute force over the boxes that the broad phase has.
// Does not change anything.
#pragma once

#include <string>

#include "scenes/world.h"

/// What a broad phase promises about the pairs in its cache.
enum class PairPromise {
  exact,     ///< those whose closed boxes overlap
  superset,  ///< those and some more: boxes are fattened, or rounded outward
};

PairPromise promiseOf(const std::string& broadphase);

/// One line that says what is wrong; empty if nothing is. The world must have `objects` objects.
/// Each must have a proxy of its own, which a box query finds. The pairs in the cache must be as
/// promised. Brute force applies collision filters, but takes a half space of setPlane for its box.
std::string verifyWorld(World& world, int objects, PairPromise promise);

// Holds a world's broad phase against brute force over the boxes that it has itself.
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

/// Empty if the world has `objects` objects, each with a proxy of its own that a box query finds,
/// and the pairs in the cache are as promised; else one line that says what is wrong. Collision
/// filters are heeded; a half space of setPlane, which brute force knows as a box, is not.
std::string verifyWorld(World& world, int objects, PairPromise promise);

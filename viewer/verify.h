// SPDX-License-Identifier: Zlib
// Compares the pairs of a world's broad phase with brute force over its boxes. Changes nothing.
#pragma once

#include <string>

#include "scenes/world.h"

/// What a broad phase promises about the pairs in its cache.
enum class PairPromise {
  exact,     ///< the pairs whose closed boxes overlap
  superset,  ///< the exact pairs and a few more, because boxes are fattened or rounded outward
};

PairPromise promiseOf(const std::string& broadphase);

/// Checks that the world has `objects` objects, and that each has its own proxy, which a box query
/// finds. Checks that the pairs in the cache are as promised. The pairs are compared with brute
/// force, which applies collision filters. Brute force uses the boxes of half spaces, not the
/// planes of setPlane().
/// @return a line that says what is wrong; empty if nothing is wrong
std::string verifyWorld(World& world, int objects, PairPromise promise);

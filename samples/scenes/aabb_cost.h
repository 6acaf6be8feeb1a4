// SPDX-License-Identifier: Zlib
// Measures Bullet's own cost of updating the boxes of a world.
#pragma once

class btCollisionWorld;

/// Returns the time that updateAabbs takes with a broad phase that does nothing, in milliseconds.
/// This is the cost of the virtual calls of getAabb and setAabb for every object. Call it between
/// two steps. It does not change the world.
double millisecondsOfAabbs(btCollisionWorld& world);

// SPDX-License-Identifier: Zlib
// What it costs Bullet alone to update the boxes of a world.
#pragma once

class btCollisionWorld;

/// Milliseconds of updateAabbs with a broad phase that does nothing: the virtual calls of getAabb
/// and setAabb for every object. Between two steps. The world is as before.
double millisecondsOfAabbs(btCollisionWorld& world);

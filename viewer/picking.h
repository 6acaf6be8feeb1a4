// SPDX-License-Identifier: Zlib
// Finds the object that a ray hits, and its partners in the pair cache. Does not draw.
#pragma once

#include <vector>

#include "camera.h"
#include "scenes/world.h"

/// One partner of an object in the pair cache.
struct Partner {
  const btCollisionObject* object = nullptr;
  int contacts = 0;  ///< points where the two touch
};

/// The first object that Bullet's ray test hits; null if there is none.
/// @param seenThrough static objects that are drawn as outlines and cannot be picked
const btCollisionObject* pick(World& world, const PickRay& ray,
                              const std::vector<const btCollisionObject*>& seenThrough = {});

/// The partners of an object, in the order of the world's objects.
std::vector<Partner> partnersOf(World& world, const btCollisionObject& object);

/// The number of points where a pair touches.
int contactsOf(const btBroadphasePair& pair);

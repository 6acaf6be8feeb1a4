// SPDX-License-Identifier: Zlib
// Which object lies under a ray, and which objects it is paired with. Does not draw.
#pragma once

#include <vector>

#include "camera.h"
#include "scenes/world.h"

/// One partner of an object in the pair cache.
struct Partner {
  const btCollisionObject* object = nullptr;
  int contacts = 0;  ///< points where the two touch
};

/// The first thing hit, as Bullet's ray test has it; null if there is none.
/// @param seenThrough not picked: static objects that are drawn as outlines
const btCollisionObject* pick(World& world, const PickRay& ray,
                              const std::vector<const btCollisionObject*>& seenThrough = {});

/// In the order of the world's objects.
std::vector<Partner> partnersOf(World& world, const btCollisionObject& object);

/// The contact points of a pair.
int contactsOf(const btBroadphasePair& pair);

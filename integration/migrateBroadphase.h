// SPDX-License-Identifier: Zlib
/// @file
/// migrateBroadphase: replaces the broad phase of a running world with this library's or one of
/// Bullet's. The caller makes and owns both broad phases. Requires C++17.
#pragma once

#include "../broadphase/export.h"

class btBroadphaseInterface;
class btCollisionWorld;
class btDynamicsWorld;
class btOverlappingPairCallback;

/// Moves all objects of `world` from its broad phase to `newBroadphase`, and makes that the world's
/// broad phase.
///
/// Kept:
/// - every object with its group, mask and box
/// - the order of the unique ids
/// - the filter callback
/// - velocities and activation
/// - the collision algorithm, contact manifolds and impulses of each pair that both broad phases
///   have. So a heap at rest stays asleep
///
/// The btSoftBodyWorldInfo of each soft body refers to the new broad phase afterwards.
///
/// Not kept:
/// - the order of the pairs, unless both broad phases have GpuLbvhOptions::sortsPairs. If the
///   order changes, the simulation does not continue bit for bit
/// - algorithms of pairs that only the old broad phase had
/// - algorithms of pairs whose two objects have the opposite order in the new broad phase, which
///   can happen if it already had proxies
/// - algorithms in the caches of ghost objects
/// - the planes of setPlane()
/// - proxies that belong to no object of the world; they stay in the old broad phase
///
/// The program's pointers to proxies become invalid. The ghost callback is called for each pair
/// that the old cache removes, and for each pair that the new cache adds. A
/// btSortedOverlappingPairCache does not call it for removals.
///
/// Call it between two steps or in a tick callback. Do not call it while Bullet visits pairs or
/// proxies (in contact, ray and filter callbacks).
///
/// @param world must have a broad phase; if that is newBroadphase, nothing happens
/// @param newBroadphase not owned. Must have capacity for all objects (btAxisSweep3 has a
///   limit). May already have proxies. Both broad phases may share a pair cache that neither of
///   them owns; if that is a hashed cache, no two proxies may have equal unique ids
/// @param ghostCallback installed in the new pair cache. Required if there are ghost objects:
///   Bullet has no getter for the old cache's callback. Null: the new cache keeps its own
/// @return the old broad phase, which is not deleted. It no longer has the world's proxies and
///   pairs. Its pair cache no longer has a filter or ghost callback, unless the new broad phase
///   uses the same cache
/// @throws std::bad_alloc, with nothing changed
GPULBVH_BULLET_API btBroadphaseInterface* migrateBroadphase(
    btCollisionWorld* world, btBroadphaseInterface* newBroadphase,
    btOverlappingPairCallback* ghostCallback = nullptr);

/// Also updates the getWorldInfo() of a soft world, which new soft bodies use. The overload for
/// btCollisionWorld cannot do this, because only a btDynamicsWorld has getWorldType(), which
/// identifies soft worlds.
GPULBVH_BULLET_API btBroadphaseInterface* migrateBroadphase(
    btDynamicsWorld* world, btBroadphaseInterface* newBroadphase,
    btOverlappingPairCallback* ghostCallback = nullptr);

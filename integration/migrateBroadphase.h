// SPDX-License-Identifier: Zlib
/// @file
/// migrateBroadphase: gives a running world another broad phase, this library's or any of Bullet's.
/// Does not choose one, and owns neither. C++17.
#pragma once

#include "../broadphase/export.h"

class btBroadphaseInterface;
class btCollisionWorld;
class btDynamicsWorld;
class btOverlappingPairCallback;

/// Moves all objects of `world` from its broad phase to `newBroadphase` and lets the world use
/// that.
///
/// Kept: every object with its group, its mask and the box that it had; the order of the unique
/// ids; the filter callback; velocities and activation. Each pair that the new broad phase has,
/// too, keeps its collision algorithm with contact manifold and impulses, so a heap at rest stays
/// warm and asleep. The btSoftBodyWorldInfo of each soft body, and of a soft world, names the new
/// one.
///
/// Not kept:
/// - the order of the pairs, which is the new broad phase's own; so a simulation goes on as well,
///   but not bit for bit
/// - algorithms of pairs that only the old broad phase had
/// - algorithms of pairs whose objects the new one orders the other way, as a broad phase that had
///   proxies before may
/// - algorithms in ghost objects' own caches
/// - equations that were given to setPlane
/// - pointers to proxies that the user keeps, and proxies that belong to no object of the world
///
/// A ghost callback is told of every pair twice: that it goes, and, if the new broad phase has it,
/// that it comes again.
///
/// To be called between two steps or in a tick callback. Not to be called while Bullet visits pairs
/// or proxies (in contact, ray and filter callbacks).
///
/// @param world must have a broad phase; if that is newBroadphase, nothing happens
/// @param newBroadphase not owned. Must have room for all objects (btAxisSweep3). May have proxies
///   of its own. May share a cache that was handed to both with the old one, but not the own cache
///   of a GpuLbvhBroadphase; with a shared hashed cache, no two proxies may have equal unique ids
/// @param ghostCallback installed in the new cache. Bullet cannot tell which one the old cache has,
///   so give it here if there are ghost objects. Null: the new cache keeps the one it has
/// @return the old broad phase, which stays its owner's. It is without the world's proxies and
///   pairs, and, unless the caches are one, without filter and ghost callback
/// @throws std::bad_alloc, with nothing changed
GPULBVH_BULLET_API btBroadphaseInterface* migrateBroadphase(
    btCollisionWorld* world, btBroadphaseInterface* newBroadphase,
    btOverlappingPairCallback* ghostCallback = nullptr);

/// The same. Only a btDynamicsWorld says whether it is a soft world. A soft world that is handed in
/// as a btCollisionWorld keeps the old broad phase in its getWorldInfo(), for bodies yet to be
/// made.
GPULBVH_BULLET_API btBroadphaseInterface* migrateBroadphase(
    btDynamicsWorld* world, btBroadphaseInterface* newBroadphase,
    btOverlappingPairCallback* ghostCallback = nullptr);

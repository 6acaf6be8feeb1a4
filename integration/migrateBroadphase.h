// migrateBroadphase: gives a running world another broad phase, this library's or any of Bullet's.
// Does not choose one, and owns neither. C++17.
#pragma once

class btBroadphaseInterface;
class btCollisionWorld;
class btDynamicsWorld;
class btOverlappingPairCallback;

/// Moves all objects of `world` from its broad phase to `newBroadphase` and lets the world use
/// that.
///
/// Kept: every object with its group, mask and the box it had, the order of the unique ids, the
/// filter callback, velocities, activation, and for each pair that also the new broad phase has its
/// collision algorithm with contact manifold and impulses, so that a heap at rest stays warm and
/// asleep. The btSoftBodyWorldInfo of each soft body, and of a soft world, names the new one.
///
/// Not kept: the order of the pairs, which is the new broad phase's own (so a simulation goes on as
/// well, not bit for bit); the algorithms of pairs that only the old one had, and of those whose
/// objects the new one orders the other way, as a broad phase that had proxies before may;
/// equations given to setPlane; algorithms in ghost objects' own caches; pointers to proxies that
/// the user keeps; and proxies that belong to no object of the world. A ghost callback is told of
/// every pair twice: it goes, and, if the new broad phase has it, comes again.
///
/// To be called between two steps, or in a tick callback; not while Bullet visits pairs or proxies
/// (in contact, ray and filter callbacks).
///
/// @param world needs a broad phase; does nothing if that is newBroadphase
/// @param newBroadphase not owned; room for all objects (btAxisSweep3). May have proxies of its
/// own.
///   May share a cache that was handed to both with the old one, but not a GpuLbvhBroadphase's own;
///   with a hashed one, no two proxies of the two may have equal unique ids
/// @param ghostCallback installed in the new cache; Bullet cannot tell which one the old cache has,
///   so whoever has ghost objects gives it here. Null: the new cache keeps what it has
/// @return the old broad phase, still its owner's: without the world's proxies and pairs, and,
///   unless the caches are one, without filter and ghost callback
/// @throws std::bad_alloc, with nothing changed
btBroadphaseInterface* migrateBroadphase(btCollisionWorld* world,
                                         btBroadphaseInterface* newBroadphase,
                                         btOverlappingPairCallback* ghostCallback = nullptr);

/// The same. Only a btDynamicsWorld says whether it is a soft world: handed in as a
/// btCollisionWorld, it keeps the old broad phase in its getWorldInfo(), for bodies yet to be made.
btBroadphaseInterface* migrateBroadphase(btDynamicsWorld* world,
                                         btBroadphaseInterface* newBroadphase,
                                         btOverlappingPairCallback* ghostCallback = nullptr);

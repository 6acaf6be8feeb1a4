// SPDX-License-Identifier: Zlib
/// @file
/// GpuLbvhBroadphase: a drop-in broad phase for Bullet. Write `new GpuLbvhBroadphase` where a
/// program has `new btDbvtBroadphase`. Translates between Bullet and lbvh::PairFinder; finds no
/// pair itself. C++17.
#pragma once

#include <BulletCollision/BroadphaseCollision/btBroadphaseInterface.h>
#include <LinearMath/btThreads.h>

#include <memory>

#include "../broadphase/pair_finder.h"
#if __has_include("GpuLbvhBroadphasePrecision.h")
#include "GpuLbvhBroadphasePrecision.h"  // By CMake: checks the precision of Bullet.
#endif

class btOverlappingPairCache;

/// The options of the finder, and what only Bullet needs.
struct GpuLbvhOptions : lbvh::Options {
  /// @param finder the options of the finder; the others are as below
  GpuLbvhOptions(const lbvh::Options& finder = {}) : lbvh::Options(finder) {}

  /// Each box is fattened by this on all sides, in units of the world, and the fattened box is kept
  /// until the object leaves it. Then pairs are those of the fattened boxes: they are more, and
  /// live longer. Steps in which nothing leaves its box are free, and characters see what they are
  /// about to meet. Rays and box queries stay exact. 0, negative or NaN: boxes are not fattened.
  /// btDbvtBroadphase fattens by 0.05.
  btScalar margin = 0;

  /// Whether a pair cache that is handed in has, or will have, a ghost pair callback; Bullet's
  /// caches do not tell. The own cache is asked, and this is not read.
  bool cacheHasGhosts = false;

  /// Whether the program announces each change that it makes to a proxy's m_collisionFilterGroup or
  /// m_collisionFilterMask, before the next step. Then a step does not read those of all proxies.
  /// Each of these announces a change: filterChanged(proxy);
  /// btCollisionWorld::refreshBroadphaseProxy(object); to remove the object and add it again; and
  /// with the own cache its cleanProxyFromPairs and removeOverlappingPairsContainingProxy. False:
  /// every step reads all, and nothing need be announced.
  bool announcedFilters = false;
};

/// What createProxy takes, for one of createProxies' objects.
struct GpuLbvhNewProxy {
  btVector3 aabbMin;                             ///< the least corner, in units of the world
  btVector3 aabbMax;                             ///< the greatest corner
  int shapeType = 0;                             ///< of BroadphaseNativeTypes; not read
  void* client = nullptr;                        ///< m_clientObject: the btCollisionObject
  int group = btBroadphaseProxy::DefaultFilter;  ///< m_collisionFilterGroup
  int mask = btBroadphaseProxy::AllFilter;       ///< m_collisionFilterMask
};

/// A btBroadphaseInterface that finds its pairs with blocks of boxes sorted along a space-filling
/// curve, which are sorted again when that order is worn.
///
/// Pairs: each calculateOverlappingPairs gives the cache the exact pairs of the closed boxes, as
/// the difference to the call before, in sorted order. Pairs that live on keep their algorithms.
/// destroyProxy removes the proxy's pairs at once.
///
/// Boxes: in units of the world. A box with a NaN overlaps nothing. An inverted box (min > max)
/// overlaps what satisfies all six comparisons of min with max. Boxes may be infinite.
///
/// Filters: group and mask are read each step, unless announcedFilters says otherwise. A filter
/// callback replaces them. It is asked about each pair that begins to overlap, and again about a
/// pair that it refused in each step in which one of the two boxes has another value than in the
/// step before. A pair that it accepted stays until the boxes part. It is asked about every pair
/// after it was exchanged or refilter() was called. docs/contract.md has the details.
///
/// Ghosts: while a ghost pair callback is installed, pairs of btGhostObjects are right at once
/// after each createProxy, setAabb and destroyProxy, and clients must be btCollisionObjects. A
/// cache with deferred removal (btSortedOverlappingPairCache) gets these pairs with the step, too.
///
/// Queries: rayTest and aabbTest see every createProxy, setAabb and destroyProxy at once. Many
/// threads may query together, while none changes the broad phase.
///
/// Callbacks: filter callbacks may create, move, destroy and refilter proxies, and query. So may
/// the callbacks of queries, of passes over the pairs and of a contact's end. So may ghost
/// callbacks, with the own cache. No callback may call calculateOverlappingPairs or resetPool, or
/// delete the broad phase. docs/contract.md has the table.
///
/// Errors: no call throws of its own accord but the constructors: std::bad_alloc, and
/// std::runtime_error if Backend::cuda is asked for and a device that is there cannot be used. A
/// step that cannot be finished (out of memory, more than Options::maxPairs) keeps the pairs it
/// had, and error() says why. What a callback throws goes through, and the next step makes up for
/// the rest.
class GPULBVH_BULLET_API GpuLbvhBroadphase : public btBroadphaseInterface {
 public:
  /// @param options an lbvh::Options converts to them. A backend that is not available is replaced
  ///   by the best that is, and stats().reason says why. Negative threads count as 0: all cores
  /// @param pairCache used, not owned; null: an own cache, owned
  explicit GpuLbvhBroadphase(const GpuLbvhOptions& options = {},
                             btOverlappingPairCache* pairCache = nullptr);
  /// As that of btDbvtBroadphase. A cache that is handed in is taken to have a ghost pair callback,
  /// so clients must be btCollisionObjects, as they are in every world. Null: an own cache.
  explicit GpuLbvhBroadphase(btOverlappingPairCache* pairCache);
  ~GpuLbvhBroadphase() override;
  GpuLbvhBroadphase(const GpuLbvhBroadphase&) = delete;
  GpuLbvhBroadphase& operator=(const GpuLbvhBroadphase&) = delete;

  /// Unique ids count from 1. If a callback throws, which only pairs of ghosts call here, there is
  /// no new proxy.
  /// @return null if there is no memory, or if a filter callback destroyed the proxy at once
  btBroadphaseProxy* createProxy(const btVector3& aabbMin, const btVector3& aabbMax, int shapeType,
                                 void* userPtr, int collisionFilterGroup, int collisionFilterMask,
                                 btDispatcher* dispatcher) override;
  /// Removes the proxy with its pairs.
  /// @param dispatcher frees the pairs' algorithms; null: none is freed
  void destroyProxy(btBroadphaseProxy* proxy, btDispatcher* dispatcher) override;
  /// Gives the proxy another box, in units of the world. Its pairs follow in the next step, those
  /// of ghosts at once.
  void setAabb(btBroadphaseProxy* proxy, const btVector3& aabbMin, const btVector3& aabbMax,
               btDispatcher* dispatcher) override;
  /// The box that the proxy was given last.
  void getAabb(btBroadphaseProxy* proxy, btVector3& aabbMin, btVector3& aabbMax) const override;

  /// As createProxy for each of `count` objects, all or none, also if a callback throws.
  /// @param proxies receives `count` pointers
  /// @return false if there is no memory; then none is created
  bool createProxies(const GpuLbvhNewProxy* objects, int count, btBroadphaseProxy** proxies,
                     btDispatcher* dispatcher);
  /// As setAabb for each of `count` proxies.
  void setAabbs(btBroadphaseProxy* const* proxies, const btVector3* aabbMins,
                const btVector3* aabbMaxs, int count, btDispatcher* dispatcher);
  /// As destroyProxy for each of `count` proxies. Goes through the pairs of a cache that was handed
  /// in once, and not once for each proxy.
  void destroyProxies(btBroadphaseProxy* const* proxies, int count, btDispatcher* dispatcher);

  /// Calls rayCallback.process for each proxy whose box the ray meets, touching included, in no
  /// order to rely on; what process returns is not read. Boxes with min <= max that Bullet's own
  /// test (btRayAabb2) accepts are all among them; boxes that are inverted or have a NaN are not.
  /// @param rayTo not read: the ray's direction and length are the callback's
  /// @param aabbMin, aabbMax of a box that is swept along the ray, relative to it
  void rayTest(const btVector3& rayFrom, const btVector3& rayTo,
               btBroadphaseRayCallback& rayCallback, const btVector3& aabbMin = btVector3(0, 0, 0),
               const btVector3& aabbMax = btVector3(0, 0, 0)) override;
  /// Calls callback.process for each proxy whose box overlaps the given one, in no order to rely
  /// on; what process returns is not read.
  void aabbTest(const btVector3& aabbMin, const btVector3& aabbMax,
                btBroadphaseAabbCallback& callback) override;

  /// Does nothing within a callback of a step or a query. Then error() says so, and in debug builds
  /// an assertion fails.
  void calculateOverlappingPairs(btDispatcher* dispatcher) override;
  /// The own cache takes only this broad phase's proxies.
  btOverlappingPairCache* getOverlappingPairCache() override;
  /// The same, to read.
  const btOverlappingPairCache* getOverlappingPairCache() const override;

  /// Makes the proxy, usually one of a btStaticPlaneShape, a half space: the points with
  /// normal * point <= constant. From the next step on it is paired with the boxes that reach into
  /// the half space, and no longer with all that its endless box overlaps. Rays and box queries
  /// still go by the box.
  /// @param normal in world coordinates, of any length: a shape's normal, turned by the object's
  ///   transform
  /// @param constant a shape's constant, plus the turned normal times the object's origin. If there
  ///   is a NaN in the equation, the box decides
  /// @return false if there is no memory
  bool setPlane(btBroadphaseProxy* proxy, const btVector3& normal, btScalar constant);
  /// Makes the proxy its box again.
  void clearPlane(btBroadphaseProxy* proxy);

  /// To be called when the filter callback's answers have changed and the pairs shall follow at
  /// once, not only where boxes move and answers turn to yes. The next calculateOverlappingPairs
  /// asks it for every overlapping pair, removes pairs that it refuses now and adds pairs that it
  /// accepts now. All other pairs stay as they are. Not needed for a
  /// group or mask that was changed while there is no callback.
  void refilter();

  /// To be called after a proxy's group or mask was changed in place; the next step goes by it.
  /// Needed only with GpuLbvhOptions::announcedFilters. For what a filter callback answers there is
  /// refilter().
  void filterChanged(btBroadphaseProxy* proxy);

  /// Does nothing, like the next ones for programs that call these of btDbvtBroadphase: steps
  /// sort the boxes again by themselves when that is worth it.
  void optimize() {}
  /// As setAabb: there is nothing to force.
  void setAabbForceUpdate(btBroadphaseProxy* proxy, const btVector3& aabbMin,
                          const btVector3& aabbMax, btDispatcher* dispatcher) {
    setAabb(proxy, aabbMin, aabbMax, dispatcher);
  }
  /// Keeps the number, and does nothing with it: boxes are not predicted.
  void setVelocityPrediction(btScalar prediction) { m_prediction = prediction; }
  /// The number that was set last.
  btScalar getVelocityPrediction() const { return m_prediction; }
  /// Only their number.
  struct RayTestStacks {
    /// How many threads may cast rays at once.
    static constexpr int size() { return BT_MAX_THREAD_COUNT; }
  };
  /// Programs read the size of btDbvtBroadphase's to learn how many threads may cast rays together:
  /// here as many as Bullet can have.
  static constexpr RayTestStacks m_rayTestStacks{};

  /// The box around all proxies; (0, 0, 0) to (0, 0, 0) if there are none.
  void getBroadphaseAabb(btVector3& aabbMin, btVector3& aabbMax) const override;

  /// Restarts the unique ids. Does nothing while proxies exist, or within a callback of a step or a
  /// query.
  void resetPool(btDispatcher* dispatcher) override;

  /// Prints a table of the last step's figures to stdout.
  void printStats() override;

  /// Figures of the last step.
  const lbvh::Stats& stats() const;

  /// Why the last calculateOverlappingPairs could not be finished; empty if it was. Valid until the
  /// next call of it.
  const char* error() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
  btScalar m_prediction = 0;
};

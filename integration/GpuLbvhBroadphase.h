// GpuLbvhBroadphase: a drop-in broad phase for Bullet. Where a program says
// `new btDbvtBroadphase`, say `new GpuLbvhBroadphase`.
// Translates between Bullet and lbvh::PairFinder; finds no pair itself. C++17.
#pragma once

#include <BulletCollision/BroadphaseCollision/btBroadphaseInterface.h>

#include <memory>

#include "broadphase/pair_finder.h"
#if __has_include("GpuLbvhBroadphasePrecision.h")
#include "GpuLbvhBroadphasePrecision.h"  // By CMake: checks the precision of Bullet.
#endif

class btOverlappingPairCache;

/// Those of the finder, and what only Bullet needs.
struct GpuLbvhOptions : lbvh::Options {
  GpuLbvhOptions(const lbvh::Options& finder = {}) : lbvh::Options(finder) {}

  /// Fattens boxes by so much on all sides, and keeps the fattened box until the object leaves it.
  /// Then pairs are those of the fattened boxes, more than overlap, and living longer; steps in
  /// which nothing leaves its box are free, and characters see what they are about to meet. Rays
  /// and box queries stay exact. 0: none. btDbvtBroadphase: 0.05.
  btScalar margin = 0;

  /// For a pair cache that is handed in, and cannot be asked: it has or will have a ghost pair
  /// callback. The own cache is asked.
  bool cacheHasGhosts = false;
};

/// What createProxy takes, for createProxies.
struct GpuLbvhNewProxy {
  btVector3 aabbMin, aabbMax;
  int shapeType = 0;
  void* client = nullptr;
  int group = btBroadphaseProxy::DefaultFilter;
  int mask = btBroadphaseProxy::AllFilter;
};

/// A btBroadphaseInterface that finds its pairs with a linear BVH built anew each step.
///
/// Pairs: the cache gets the exact closed-interval pairs of each calculateOverlappingPairs, by
/// difference to the call before, in sorted order; living pairs and their algorithms are not
/// touched. destroyProxy purges the proxy's pairs at once.
/// Filters: group and mask are read each step; a filter callback is asked once for each pair that
/// begins to overlap, and for every pair after it was exchanged or refilter() was called.
/// Ghosts: pairs of btGhostObjects are right at once after each createProxy, setAabb and
/// destroyProxy. With a ghost pair callback installed clients must be btCollisionObjects.
/// Queries: rayTest and aabbTest see every createProxy, setAabb and destroyProxy at once and may
/// run on many threads together.
/// Callbacks: a filter callback, the callback of a query or of a pass over the pairs, and that of a
/// contact's end may create, move, destroy and refilter proxies, and query; so may a ghost
/// callback, with the own cache. None may call calculateOverlappingPairs or resetPool, or delete
/// the broad phase. docs/contract.md has the table. Errors: never throws. A step that cannot be
/// finished (out of memory, more than Options::maxPairs) keeps the pairs it had, and error() says
/// why.
class GpuLbvhBroadphase : public btBroadphaseInterface {
 public:
  /// @param options lbvh::Options will do, too; a backend that cannot be had becomes the best that
  ///   can, and stats().reason says why
  /// @param pairCache used, not owned; null: an own cache, owned
  explicit GpuLbvhBroadphase(const GpuLbvhOptions& options = {},
                             btOverlappingPairCache* pairCache = nullptr);
  /// As btDbvtBroadphase's: with a cache of yours, assumes that it has a ghost pair callback, so
  /// that clients must be btCollisionObjects, as they are in every world. Null: an own
  /// cache.
  explicit GpuLbvhBroadphase(btOverlappingPairCache* pairCache);
  ~GpuLbvhBroadphase() override;
  GpuLbvhBroadphase(const GpuLbvhBroadphase&) = delete;
  GpuLbvhBroadphase& operator=(const GpuLbvhBroadphase&) = delete;

  btBroadphaseProxy* createProxy(const btVector3& aabbMin, const btVector3& aabbMax, int shapeType,
                                 void* userPtr, int collisionFilterGroup, int collisionFilterMask,
                                 btDispatcher* dispatcher) override;
  void destroyProxy(btBroadphaseProxy* proxy, btDispatcher* dispatcher) override;
  void setAabb(btBroadphaseProxy* proxy, const btVector3& aabbMin, const btVector3& aabbMax,
               btDispatcher* dispatcher) override;
  void getAabb(btBroadphaseProxy* proxy, btVector3& aabbMin, btVector3& aabbMax) const override;

  /// createProxy, setAabb and destroyProxy for many at once. Creating is all or nothing: false, and
  /// nothing created, if there is no memory. Destroying goes through a handed-in cache's pairs
  /// once, and not once for each proxy.
  bool createProxies(const GpuLbvhNewProxy* objects, int count, btBroadphaseProxy** proxies,
                     btDispatcher* dispatcher);
  void setAabbs(btBroadphaseProxy* const* proxies, const btVector3* aabbMins,
                const btVector3* aabbMaxs, int count, btDispatcher* dispatcher);
  void destroyProxies(btBroadphaseProxy* const* proxies, int count, btDispatcher* dispatcher);

  void rayTest(const btVector3& rayFrom, const btVector3& rayTo,
               btBroadphaseRayCallback& rayCallback, const btVector3& aabbMin = btVector3(0, 0, 0),
               const btVector3& aabbMax = btVector3(0, 0, 0)) override;
  void aabbTest(const btVector3& aabbMin, const btVector3& aabbMax,
                btBroadphaseAabbCallback& callback) override;

  /// Within a callback of a step or a query: does nothing, and error() says so; in debug builds an
  /// assertion fails.
  void calculateOverlappingPairs(btDispatcher* dispatcher) override;
  /// The own one takes only this broad phase's proxies.
  btOverlappingPairCache* getOverlappingPairCache() override;
  const btOverlappingPairCache* getOverlappingPairCache() const override;

  /// The proxy, usually of a btStaticPlaneShape, is a half space: the points with
  /// normal * point <= constant, in world coordinates (of a shape: its normal turned by the
  /// object's transform, its constant plus the turned normal times the object's origin). From the
  /// next step on it is paired with the boxes that reach into it, and not with all that its endless
  /// box overlaps; rays and box queries still go by the box. False if there is no memory.
  bool setPlane(btBroadphaseProxy* proxy, const btVector3& normal, btScalar constant);
  /// The proxy is its box again.
  void clearPlane(btBroadphaseProxy* proxy);

  /// The filter callback's answers have changed: the next calculateOverlappingPairs asks it for
  /// every overlapping pair, removes what it refuses now, adds what it accepts now, and touches no
  /// other pair. Not needed for a group or mask that was changed while there is no callback.
  void refilter();

  /// For programs that say these to btDbvtBroadphase. Each step builds all anew and boxes are not
  /// predicted, so there is nothing to optimize or to force, and the number is only kept.
  void optimize() {}
  void setAabbForceUpdate(btBroadphaseProxy* proxy, const btVector3& aabbMin,
                          const btVector3& aabbMax, btDispatcher* dispatcher) {
    setAabb(proxy, aabbMin, aabbMax, dispatcher);
  }
  void setVelocityPrediction(btScalar prediction) { m_prediction = prediction; }
  btScalar getVelocityPrediction() const { return m_prediction; }

  /// The box around all proxies; (0, 0, 0) to (0, 0, 0) if there are none.
  void getBroadphaseAabb(btVector3& aabbMin, btVector3& aabbMax) const override;

  /// Restarts the unique ids; does nothing while proxies exist, or within a callback of a step or a
  /// query.
  void resetPool(btDispatcher* dispatcher) override;

  /// Prints a table of the last step's figures to stdout.
  void printStats() override;

  const lbvh::Stats& stats() const;

  /// Why the last calculateOverlappingPairs could not be finished; empty if it was.
  const char* error() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
  btScalar m_prediction = 0;
};

// SPDX-License-Identifier: Zlib
/// @file
/// GpuLbvhBroadphase: a drop-in broad phase for Bullet. Write `new GpuLbvhBroadphase` in place of
/// `new btDbvtBroadphase`. Translates between Bullet and lbvh::PairFinder, which finds the pairs.
/// Requires C++17.
#pragma once

#include <BulletCollision/BroadphaseCollision/btBroadphaseInterface.h>
#include <LinearMath/btThreads.h>

#include <memory>

#include "../broadphase/pair_finder.h"
#if __has_include("GpuLbvhBroadphasePrecision.h")
#include "GpuLbvhBroadphasePrecision.h"  // written by CMake; checks Bullet's precision
#endif

class btOverlappingPairCache;

/// The options of the pair finder, and five more for programs with Bullet.
struct GpuLbvhOptions : lbvh::Options {
  /// @param finder options of the pair finder; the five options below keep their defaults
  GpuLbvhOptions(const lbvh::Options& finder = {}) : lbvh::Options(finder) {}

  /// The margin by which each box is fattened on all sides, in units of the world. A fattened box
  /// is kept until the object leaves it. Pairs are those of the fattened boxes, so there are more
  /// of them, and they last longer. In return, a step in which no object leaves its fattened box
  /// costs almost nothing, and a character sees an obstacle shortly before it touches it. Rays and
  /// box queries stay exact. 0, negative or NaN: boxes are not fattened. btDbvtBroadphase fattens
  /// by 0.05.
  btScalar margin = 0;

  /// Whether a pair cache of your own class, passed to the constructor, may have a ghost pair
  /// callback, now or later. If so, clients must be btCollisionObjects, as they are in every world.
  /// Ignored for the broad phase's own cache and btHashedOverlappingPairCache, because their
  /// callback can be read. Also ignored for a cache with deferred removal.
  bool cacheHasGhosts = true;

  /// Whether the program announces each change of a proxy's m_collisionFilterGroup or
  /// m_collisionFilterMask before the next step. If true, a step need not read the groups and masks
  /// of all proxies. Any of these announces a change:
  /// - filterChanged(proxy)
  /// - btCollisionWorld::refreshBroadphaseProxy(object)
  /// - removing the object from the world and adding it again
  /// - cleanProxyFromPairs or removeOverlappingPairsContainingProxy of the broad phase's own cache
  ///
  /// False: changes need not be announced. Each step reads the groups and masks of the objects
  /// whose boxes have changed. With up to 4,096 objects it also reads those of all others. With
  /// more objects it reads those of 1,024 others, in turn.
  bool announcedFilters = false;

  /// True: each step reads all groups and masks, even in a large world. So a change in place takes
  /// effect at the next step, even if its object rests. Has no effect with announcedFilters.
  bool readsAllFilters = false;

  /// True: each step ends by sorting the pairs of the broad phase's own cache. Pairs are in
  /// ascending order of the first object's unique id, then of the second's. So the order does not
  /// depend on earlier steps. A program that restores a saved world gets the same pairs in the same
  /// order (docs/contract.md). A step in which pairs come or go takes 15 to 50 ns more for each
  /// pair in the cache. False: a removed pair is replaced by the last one, as in
  /// btHashedOverlappingPairCache. Ignored for a cache that was passed to the constructor.
  bool sortsPairs = false;
};

/// Why the last step could not be finished. If the search failed, the pair cache is as it was
/// before. If the cache's update failed, the cache has only some of the changes. Each step retries
/// what the previous one did not finish.
enum class GpuLbvhError {
  none,            ///< the step was finished
  outOfMemory,     ///< an allocation failed
  tooManyPairs,    ///< more than Options::maxPairs overlap
  foreignPairs,    ///< the pair cache has pairs of another broad phase with the same unique ids
  withinCallback,  ///< the call came from a callback of a step or query; nothing was done
  failed,          ///< for another reason, which error() names
};

/// One object for createProxies(): the arguments of createProxy().
struct GpuLbvhNewProxy {
  btVector3 aabbMin;                             ///< minimum corner, in units of the world
  btVector3 aabbMax;                             ///< maximum corner, in units of the world
  int shapeType = 0;                             ///< one of BroadphaseNativeTypes; not read
  void* client = nullptr;                        ///< m_clientObject: the btCollisionObject
  int group = btBroadphaseProxy::DefaultFilter;  ///< m_collisionFilterGroup
  int mask = btBroadphaseProxy::AllFilter;       ///< m_collisionFilterMask
};

/// A btBroadphaseInterface that searches for pairs in blocks of boxes. The blocks follow a
/// space-filling curve. The boxes are sorted again when their order has degraded.
///
/// Pairs: calculateOverlappingPairs() finds the exact pairs of the closed boxes. It passes the
/// changes since the previous call to the cache: removed pairs, then added pairs, each sorted.
/// Pairs that stay keep their collision algorithms. destroyProxy() removes the proxy's pairs at
/// once.
///
/// Boxes: in units of the world. Boxes may be infinite. A box with a NaN overlaps nothing. An
/// inverted box (min > max) overlaps another if, as for all boxes, a.min <= b.max and b.min <=
/// a.max on each axis.
///
/// Filters: a step reads the groups and masks of all objects. In a world of more than 4,096 objects
/// it reads only those of changed objects, and those of 1,024 others in turn.
/// GpuLbvhOptions::announcedFilters and readsAllFilters change that. A filter callback replaces
/// groups and masks. It is called for each pair that begins to overlap. For a refused pair it is
/// called again if one of the two boxes has changed since the previous step. An accepted pair stays
/// until its boxes part. After refilter(), or after the callback was replaced, it is called for
/// every pair. docs/contract.md has the details. A pair cache of your own class decides in place of
/// the callback: it is offered every pair of overlapping boxes, whatever their groups and masks,
/// and gets only the calls that btDbvtBroadphase makes.
///
/// Ghosts: while a ghost pair callback is installed, clients must be btCollisionObjects. Each
/// createProxy() and setAabb() then adds the new pairs of btGhostObjects at once. Pairs whose boxes
/// have parted are removed in the next step, as in btDbvtBroadphase. So a loop over a ghost's
/// list may move the objects in it. If the cache has deferred removal
/// (btSortedOverlappingPairCache), new pairs of ghosts are added only in the step, too.
///
/// Queries: rayTest() and aabbTest() see every createProxy(), setAabb() and destroyProxy() at once.
/// Many threads may query at the same time, as long as no thread changes the broad phase.
///
/// Callbacks: filter callbacks may create, move and destroy proxies, call refilter(), and query.
/// The callbacks of queries and of passes over the pairs may do the same. With the broad phase's
/// own cache, ghost callbacks and contact-ended callbacks may do so, too. No callback may call
/// calculateOverlappingPairs() or resetPool(), or delete the broad phase. docs/contract.md has the
/// table.
///
/// Errors: only the constructors throw exceptions of this library. These are std::bad_alloc, and
/// std::runtime_error if Backend::cuda was requested and a device is present but cannot be used. If
/// a step cannot be finished (no memory, more than Options::maxPairs), errorCode() and error() say
/// why. The first step with more than Options::maxPairs also writes to stderr. An exception of a
/// program's callback reaches the caller, and the next step does the remaining work.
class GPULBVH_BULLET_API GpuLbvhBroadphase : public btBroadphaseInterface {
 public:
  /// @param options may be an lbvh::Options, too. An unavailable backend is replaced by the best
  ///   available one, and stats().reason says why. A negative `threads` means all cores, as 0 does
  /// @param pairCache used but not owned. Null: the broad phase makes and owns a cache
  explicit GpuLbvhBroadphase(const GpuLbvhOptions& options = {},
                             btOverlappingPairCache* pairCache = nullptr);
  /// Uses default options. Has the parameter of btDbvtBroadphase's constructor.
  explicit GpuLbvhBroadphase(btOverlappingPairCache* pairCache);
  ~GpuLbvhBroadphase() override;
  GpuLbvhBroadphase(const GpuLbvhBroadphase&) = delete;
  GpuLbvhBroadphase& operator=(const GpuLbvhBroadphase&) = delete;

  /// Creates a proxy. It gets the next unique id, unless setNextUniqueId() has chosen one. The ids
  /// start at 1. Callbacks are called here only for pairs of ghosts. If one throws, no proxy is
  /// created.
  /// @return null if there is no memory, or if a filter callback destroyed the new proxy
  btBroadphaseProxy* createProxy(const btVector3& aabbMin, const btVector3& aabbMax, int shapeType,
                                 void* userPtr, int collisionFilterGroup, int collisionFilterMask,
                                 btDispatcher* dispatcher) override;
  /// Chooses the unique id of the next proxy that is created, for a program that restores a saved
  /// world (docs/contract.md). Later proxies continue from the largest id that any proxy has had
  /// since the last resetPool(). If `id` is not larger than that id, the call makes a pass over all
  /// proxies.
  /// @param id from 1 to 2^30. 0: undoes an earlier call
  /// @return false if the id is out of range or a proxy has it; the next proxy then gets the next
  ///   id, as usual
  bool setNextUniqueId(int id);
  /// Removes the proxy and its pairs.
  /// @param dispatcher frees the pairs' algorithms. If it is null, the next step frees them
  void destroyProxy(btBroadphaseProxy* proxy, btDispatcher* dispatcher) override;
  /// Sets the proxy's box, in units of the world. The next step updates its pairs; new pairs of
  /// ghosts are added at once. The dispatcher is not read.
  void setAabb(btBroadphaseProxy* proxy, const btVector3& aabbMin, const btVector3& aabbMax,
               btDispatcher* dispatcher) override;
  /// The box that the latest createProxy() or setAabb() set, without the margin.
  void getAabb(btBroadphaseProxy* proxy, btVector3& aabbMin, btVector3& aabbMax) const override;

  /// Calls createProxy() for each of `count` objects. Creates all proxies or none, even if a
  /// callback throws.
  /// @param proxies receives `count` pointers
  /// @return false if there is no memory; then no proxy is created
  bool createProxies(const GpuLbvhNewProxy* objects, int count, btBroadphaseProxy** proxies,
                     btDispatcher* dispatcher);
  /// Calls setAabb() for each of `count` proxies.
  void setAabbs(btBroadphaseProxy* const* proxies, const btVector3* aabbMins,
                const btVector3* aabbMaxs, int count, btDispatcher* dispatcher);
  /// Calls destroyProxy() for each of `count` proxies. If a cache of one of Bullet's classes was
  /// passed to the constructor, it is searched only once, not once per proxy.
  void destroyProxies(btBroadphaseProxy* const* proxies, int count, btDispatcher* dispatcher);

  /// Calls rayCallback.process() for each proxy whose box the ray hits or touches. The order is
  /// unspecified, and the return value is ignored. Visits every box with min <= max that Bullet's
  /// own test (btRayAabb2) accepts. Inverted boxes and boxes with a NaN are not visited.
  /// @param rayTo not read: direction and length of the ray come from the callback
  /// @param aabbMin, aabbMax corners of a box that is swept along the ray, relative to rayFrom
  void rayTest(const btVector3& rayFrom, const btVector3& rayTo,
               btBroadphaseRayCallback& rayCallback, const btVector3& aabbMin = btVector3(0, 0, 0),
               const btVector3& aabbMax = btVector3(0, 0, 0)) override;
  /// Calls callback.process() for each proxy whose box overlaps the given box. The order is
  /// unspecified, and the return value is ignored.
  void aabbTest(const btVector3& aabbMin, const btVector3& aabbMax,
                btBroadphaseAabbCallback& callback) override;

  /// The step: finds the pairs and updates the cache. Within a callback of a step or a query it
  /// does nothing. Then error() says so, and in debug builds an assertion fails.
  void calculateOverlappingPairs(btDispatcher* dispatcher) override;
  /// The pair cache. A cache that the broad phase owns accepts only proxies of this broad phase.
  btOverlappingPairCache* getOverlappingPairCache() override;
  /// The pair cache, read-only.
  const btOverlappingPairCache* getOverlappingPairCache() const override;

  /// Makes the proxy a half space: all points with normal * point <= constant. The proxy usually
  /// belongs to a btStaticPlaneShape. From the next step on the proxy pairs only with boxes that
  /// overlap its box and reach into the half space. Without this call a static plane pairs with
  /// every object, because its box covers the whole world. Rays and box queries still use the box.
  /// @param normal in world coordinates, of any length: the shape's normal, rotated by the object's
  ///   transform
  /// @param constant the shape's constant plus the dot product of the rotated normal and the
  ///   object's origin. An equation with a NaN is ignored
  /// @return false if there is no memory
  bool setPlane(btBroadphaseProxy* proxy, const btVector3& normal, btScalar constant);
  /// Undoes setPlane(): the proxy pairs with everything that its box overlaps.
  void clearPlane(btBroadphaseProxy* proxy);

  /// Makes the next calculateOverlappingPairs() call the filter callback for every overlapping
  /// pair. That step removes pairs that are now refused and adds pairs that are now accepted. All
  /// other pairs stay as they are. Call this when the callback's answers have changed. Without
  /// refilter(), a refused pair is checked again only when one of its boxes changes, and an
  /// accepted pair is never checked again. With a pair cache of your own class, also call this
  /// after a change of group or mask. The next step then calls the cache's
  /// needsBroadphaseCollision(). With any other cache and no callback, such a change does not need
  /// refilter().
  void refilter();

  /// Call this after changing a proxy's group or mask in place. The next step then uses the new
  /// values. Needed with GpuLbvhOptions::announcedFilters. Also needed for a resting object in a
  /// world of more than 4,096 objects, if the change must take effect at the next step. If the
  /// answers of a filter callback have changed, call refilter() instead.
  void filterChanged(btBroadphaseProxy* proxy);

  // For programs that call these members of btDbvtBroadphase:

  /// Does nothing: a step sorts the boxes again when that is worth its cost.
  void optimize() {}
  /// Calls setAabb(), which is never delayed here.
  void setAabbForceUpdate(btBroadphaseProxy* proxy, const btVector3& aabbMin,
                          const btVector3& aabbMax, btDispatcher* dispatcher) {
    setAabb(proxy, aabbMin, aabbMax, dispatcher);
  }
  /// Only stores the number, because motion is not predicted.
  void setVelocityPrediction(btScalar prediction) { m_prediction = prediction; }
  /// The number that the latest setVelocityPrediction() stored; 0 by default.
  btScalar getVelocityPrediction() const { return m_prediction; }
  /// The type of m_rayTestStacks.
  struct RayTestStacks {
    /// How many threads may cast rays at once.
    static constexpr int size() { return BT_MAX_THREAD_COUNT; }
  };
  /// Only has a size(). Programs read the number of stacks of a btDbvtBroadphase to learn how many
  /// threads may cast rays at once. Here it is the maximum number of Bullet's threads.
  static constexpr RayTestStacks m_rayTestStacks{};

  /// The bounds of all proxies; (0, 0, 0) to (0, 0, 0) if there are none.
  void getBroadphaseAabb(btVector3& aabbMin, btVector3& aabbMax) const override;

  /// Makes the unique ids start at 1 again. Does nothing while proxies exist, or within a callback
  /// of a step or a query.
  void resetPool(btDispatcher* dispatcher) override;

  /// Prints a table of the last step's statistics to stdout.
  void printStats() override;

  /// Counts and times of the last step, and the backend on which it ran.
  const lbvh::Stats& stats() const;

  /// Why the last calculateOverlappingPairs() could not be finished.
  GpuLbvhError errorCode() const;
  /// errorCode() in words; empty if the step was finished. Valid until the next
  /// calculateOverlappingPairs() or resetPool().
  const char* error() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
  btScalar m_prediction = 0;
};

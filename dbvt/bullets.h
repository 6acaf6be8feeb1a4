// SPDX-License-Identifier: Zlib
// Finds out which Bullet a caller of the preloaded library uses, and which implementation fits it.
// Uses neither Bullet's headers nor the C++ library.
#pragma once

#include "object.h"

class btBroadphaseInterface;
struct btBroadphaseAabbCallback;
struct btBroadphaseProxy;
struct btBroadphaseRayCallback;
class btDispatcher;
class btOverlappingPairCache;
class btVector3;

namespace gpulbvhDbvt {

/// The functions of a btDbvtBroadphase. Virtual functions are first, in the order of the vtable.
enum Function {
  kDestroy,
  kDelete,
  kCreateProxy,
  kDestroyProxy,
  kSetAabb,
  kGetAabb,
  kRayTest,
  kAabbTest,
  kCalculateOverlappingPairs,
  kGetOverlappingPairCache,
  kGetOverlappingPairCacheConst,
  kGetBroadphaseAabb,
  kResetPool,
  kPrintStats,
  kVirtualFunctions,
  kConstruct = kVirtualFunctions,
  kCollide,
  kOptimize,
  kPerformDeferredRemoval,
  kSetAabbForceUpdate,
  kFunctions
};

/// A stand-in for btBroadphaseInterface with the same vtable layout. Only its virtual functions are
/// called.
class Broadphase {
 public:
  virtual ~Broadphase();  // defined nowhere, so that no vtable is emitted here
  virtual btBroadphaseProxy* createProxy(const btVector3&, const btVector3&, int, void*, int, int,
                                         btDispatcher*) = 0;
  virtual void destroyProxy(btBroadphaseProxy*, btDispatcher*) = 0;
  virtual void setAabb(btBroadphaseProxy*, const btVector3&, const btVector3&, btDispatcher*) = 0;
  virtual void getAabb(btBroadphaseProxy*, btVector3&, btVector3&) const = 0;
  virtual void rayTest(const btVector3&, const btVector3&, btBroadphaseRayCallback&,
                       const btVector3&, const btVector3&) = 0;
  virtual void aabbTest(const btVector3&, const btVector3&, btBroadphaseAabbCallback&) = 0;
  virtual void calculateOverlappingPairs(btDispatcher*) = 0;
  virtual btOverlappingPairCache* getOverlappingPairCache() = 0;
  virtual const btOverlappingPairCache* getOverlappingPairCache() const = 0;
  virtual void getBroadphaseAabb(btVector3&, btVector3&) const = 0;
  virtual void resetPool(btDispatcher*) = 0;
  virtual void printStats() = 0;
};

/// A stand-in for btOverlappingPairCache. Its vtable has the same layout up to the only function
/// that is called. Must not be local to a file: the compiler would see that no class derives from
/// it, and would not call through the vtable.
class PairCache {
 public:
  virtual ~PairCache();  // defined nowhere
  virtual void addOverlappingPair() = 0;
  virtual void removeOverlappingPair() = 0;
  virtual void removeOverlappingPairsContainingProxy() = 0;
  virtual void getOverlappingPairArrayPtr() = 0;
  virtual void getOverlappingPairArrayPtrConst() = 0;
  virtual void getOverlappingPairArray() = 0;
  virtual void cleanOverlappingPair() = 0;
  virtual int getNumOverlappingPairs() const = 0;
};

/// A copy of Bullet in the process. Neither this struct nor Bullet's library is ever freed, because
/// objects may be used until the process ends.
struct Bullet {
  const Bullet* next;
  void* library;                              ///< handle from dlopen
  void* own[kFunctions];                      ///< Bullet's own functions
  const void* vtable[2 + kVirtualFunctions];  ///< our functions, with Bullet's typeinfo
  const DbvtImplementation* implementation;   ///< null: Bullet's own broad phase is used
};

/// The Bullet that the library or program at `address` uses. Searches for this Bullet at each call.
/// If no implementation fits it, the first call for this Bullet prints the reason on stderr. Aborts
/// if there is no Bullet.
const Bullet& bulletOfCaller(void* address);

/// Does what bulletOfCaller() does, but faster if only one Bullet has been found so far. Used for
/// each call to an object of Bullet's own broad phase.
const Bullet& onlyBulletOr(void* address);

}  // namespace gpulbvhDbvt

// SPDX-License-Identifier: Zlib
// Defines the functions of libgpulbvh_dbvt.so. This library replaces Bullet's btDbvtBroadphase in a
// program that preloads it, or that is linked with it before Bullet. Each object uses a
// GpuLbvhBroadphase if an implementation fits the program's Bullet (bullets.h), else Bullet's code.
//
// The library is loaded into every process and must work with every Bullet. So it needs neither
// Bullet's headers and libraries nor the C++ library. It replaces only functions: the symbols of
// the vtable, the typeinfo and gDbvtMargin remain Bullet's.
#include "bullets.h"
#include "measure.h"

#define GPULBVH_DBVT_EXPORT __attribute__((visibility("default")))

using gpulbvhDbvt::Broadphase;
using gpulbvhDbvt::Bullet;
using gpulbvhDbvt::Function;

namespace {

const char kMark = 0;

DbvtObject* objectOf(const void* self) { return static_cast<DbvtObject*>(const_cast<void*>(self)); }

/// The broad phase to which `self` passes its calls, or null if `self` is Bullet's own.
Broadphase* oursOf(const void* self) {
  const DbvtObject* object = objectOf(self);
  return object->mark == &kMark ? static_cast<Broadphase*>(object->ours) : nullptr;
}

/// The vtable pointer of an object. It points past the vtable's offset and typeinfo.
const void* addressPointOf(const Bullet& bullet) {
  return static_cast<const void*>(bullet.vtable + 2);
}

/// Calls Bullet's own function.
template <class Result, class... Arguments>
__attribute__((always_inline)) inline Result callBullets(Function function, const void* self,
                                                         Arguments... arguments) {
  const Bullet& bullet = gpulbvhDbvt::onlyBulletOr(__builtin_return_address(0));
  return reinterpret_cast<Result (*)(const void*, Arguments...)>(bullet.own[function])(
      self, arguments...);
}

}  // namespace

/// Gives the functions the mangled names of Bullet's functions. This struct has no data members and
/// no virtual functions.
struct GPULBVH_DBVT_EXPORT btDbvtBroadphase {
  explicit btDbvtBroadphase(btOverlappingPairCache* pairCache);
  ~btDbvtBroadphase();
  btBroadphaseProxy* createProxy(const btVector3&, const btVector3&, int, void*, int, int,
                                 btDispatcher*);
  void destroyProxy(btBroadphaseProxy*, btDispatcher*);
  void setAabb(btBroadphaseProxy*, const btVector3&, const btVector3&, btDispatcher*);
  void getAabb(btBroadphaseProxy*, btVector3&, btVector3&) const;
  void rayTest(const btVector3&, const btVector3&, btBroadphaseRayCallback&, const btVector3&,
               const btVector3&);
  void aabbTest(const btVector3&, const btVector3&, btBroadphaseAabbCallback&);
  void calculateOverlappingPairs(btDispatcher*);
  btOverlappingPairCache* getOverlappingPairCache();
  const btOverlappingPairCache* getOverlappingPairCache() const;
  void getBroadphaseAabb(btVector3&, btVector3&) const;
  void resetPool(btDispatcher*);
  void printStats();
  void collide(btDispatcher*);
  void optimize();
  void performDeferredRemoval(btDispatcher*);
  void setAabbForceUpdate(btBroadphaseProxy*, const btVector3&, const btVector3&, btDispatcher*);
  static void benchmark(btBroadphaseInterface*);
};

btDbvtBroadphase::btDbvtBroadphase(btOverlappingPairCache* pairCache) {
  const Bullet& bullet = gpulbvhDbvt::bulletOfCaller(__builtin_return_address(0));
  DbvtObject* const object = objectOf(this);
  if (bullet.implementation == nullptr) {
    const auto construct = reinterpret_cast<void (*)(void*, btOverlappingPairCache*)>(
        bullet.own[Function::kConstruct]);
    construct(this, pairCache);
    // Calls through Bullet's own vtable may bypass this library, which then could not time them.
    if (gpulbvhDbvt::measuring) object->vtable = addressPointOf(bullet);
    gpulbvhDbvt::countBroadphase(false);
    return;
  }
  object->ours = bullet.implementation->construct(this, pairCache);
  object->vtable = addressPointOf(bullet);
  object->mark = &kMark;
  object->bullet = &bullet;
  gpulbvhDbvt::countBroadphase(true);
}

btDbvtBroadphase::~btDbvtBroadphase() {
  if (oursOf(this) == nullptr) {
    callBullets<void>(Function::kDestroy, this);
    return;
  }
  const DbvtObject* const object = objectOf(this);
  object->bullet->implementation->destroy(this, object->ours);
}

/// The destructor that a delete expression calls. Compilers emit it only for virtual destructors.
extern "C" GPULBVH_DBVT_EXPORT void destroyAndDelete(btDbvtBroadphase* self) __asm__(
    "_ZN16btDbvtBroadphaseD0Ev");
void destroyAndDelete(btDbvtBroadphase* self) {
  if (oursOf(self) == nullptr) return callBullets<void>(Function::kDelete, self);
  const Bullet& bullet = *objectOf(self)->bullet;
  self->~btDbvtBroadphase();
  bullet.implementation->free(self);
}

btBroadphaseProxy* btDbvtBroadphase::createProxy(const btVector3& aabbMin, const btVector3& aabbMax,
                                                 int shapeType, void* client, int group, int mask,
                                                 btDispatcher* dispatcher) {
  gpulbvhDbvt::countObject(1);
  if (Broadphase* ours = oursOf(this))
    return ours->createProxy(aabbMin, aabbMax, shapeType, client, group, mask, dispatcher);
  return callBullets<btBroadphaseProxy*>(Function::kCreateProxy, this, &aabbMin, &aabbMax,
                                         shapeType, client, group, mask, dispatcher);
}

void btDbvtBroadphase::destroyProxy(btBroadphaseProxy* proxy, btDispatcher* dispatcher) {
  gpulbvhDbvt::countObject(-1);
  if (Broadphase* ours = oursOf(this)) return ours->destroyProxy(proxy, dispatcher);
  callBullets<void>(Function::kDestroyProxy, this, proxy, dispatcher);
}

void btDbvtBroadphase::setAabb(btBroadphaseProxy* proxy, const btVector3& aabbMin,
                               const btVector3& aabbMax, btDispatcher* dispatcher) {
  const gpulbvhDbvt::UpdateTimer timer;
  if (Broadphase* ours = oursOf(this)) return ours->setAabb(proxy, aabbMin, aabbMax, dispatcher);
  callBullets<void>(Function::kSetAabb, this, proxy, &aabbMin, &aabbMax, dispatcher);
}

void btDbvtBroadphase::getAabb(btBroadphaseProxy* proxy, btVector3& aabbMin,
                               btVector3& aabbMax) const {
  if (const Broadphase* ours = oursOf(this)) return ours->getAabb(proxy, aabbMin, aabbMax);
  callBullets<void>(Function::kGetAabb, this, proxy, &aabbMin, &aabbMax);
}

void btDbvtBroadphase::rayTest(const btVector3& from, const btVector3& to,
                               btBroadphaseRayCallback& callback, const btVector3& aabbMin,
                               const btVector3& aabbMax) {
  if (Broadphase* ours = oursOf(this)) return ours->rayTest(from, to, callback, aabbMin, aabbMax);
  callBullets<void>(Function::kRayTest, this, &from, &to, &callback, &aabbMin, &aabbMax);
}

void btDbvtBroadphase::aabbTest(const btVector3& aabbMin, const btVector3& aabbMax,
                                btBroadphaseAabbCallback& callback) {
  if (Broadphase* ours = oursOf(this)) return ours->aabbTest(aabbMin, aabbMax, callback);
  callBullets<void>(Function::kAabbTest, this, &aabbMin, &aabbMax, &callback);
}

void btDbvtBroadphase::calculateOverlappingPairs(btDispatcher* dispatcher) {
  const gpulbvhDbvt::StepTimer timer;
  if (Broadphase* ours = oursOf(this))
    ours->calculateOverlappingPairs(dispatcher);
  else
    callBullets<void>(Function::kCalculateOverlappingPairs, this, dispatcher);
  timer.end(objectOf(this)->pairCache);
}

btOverlappingPairCache* btDbvtBroadphase::getOverlappingPairCache() {
  if (Broadphase* ours = oursOf(this)) return ours->getOverlappingPairCache();
  return callBullets<btOverlappingPairCache*>(Function::kGetOverlappingPairCache, this);
}

const btOverlappingPairCache* btDbvtBroadphase::getOverlappingPairCache() const {
  if (const Broadphase* ours = oursOf(this)) return ours->getOverlappingPairCache();
  return callBullets<const btOverlappingPairCache*>(Function::kGetOverlappingPairCacheConst, this);
}

void btDbvtBroadphase::getBroadphaseAabb(btVector3& aabbMin, btVector3& aabbMax) const {
  if (const Broadphase* ours = oursOf(this)) return ours->getBroadphaseAabb(aabbMin, aabbMax);
  callBullets<void>(Function::kGetBroadphaseAabb, this, &aabbMin, &aabbMax);
}

void btDbvtBroadphase::resetPool(btDispatcher* dispatcher) {
  if (Broadphase* ours = oursOf(this)) return ours->resetPool(dispatcher);
  callBullets<void>(Function::kResetPool, this, dispatcher);
}

void btDbvtBroadphase::printStats() {
  if (Broadphase* ours = oursOf(this)) return ours->printStats();
  callBullets<void>(Function::kPrintStats, this);
}

void btDbvtBroadphase::collide(btDispatcher* dispatcher) {
  if (Broadphase* ours = oursOf(this)) return ours->calculateOverlappingPairs(dispatcher);
  callBullets<void>(Function::kCollide, this, dispatcher);
}

void btDbvtBroadphase::optimize() {
  if (oursOf(this) == nullptr) callBullets<void>(Function::kOptimize, this);
}

void btDbvtBroadphase::performDeferredRemoval(btDispatcher* dispatcher) {
  if (oursOf(this) == nullptr)
    callBullets<void>(Function::kPerformDeferredRemoval, this, dispatcher);
}

void btDbvtBroadphase::setAabbForceUpdate(btBroadphaseProxy* proxy, const btVector3& aabbMin,
                                          const btVector3& aabbMax, btDispatcher* dispatcher) {
  const gpulbvhDbvt::UpdateTimer timer;
  if (Broadphase* ours = oursOf(this)) return ours->setAabb(proxy, aabbMin, aabbMax, dispatcher);
  callBullets<void>(Function::kSetAabbForceUpdate, this, proxy, &aabbMin, &aabbMax, dispatcher);
}

// Does nothing, as Bullet's function does in a default build.
void btDbvtBroadphase::benchmark(btBroadphaseInterface*) {}

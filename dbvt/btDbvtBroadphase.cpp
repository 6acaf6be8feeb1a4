// SPDX-License-Identifier: Zlib
// Replaces Bullet's btDbvtBroadphase.cpp. Implements the class that Bullet's own header declares.
// Defines every symbol of the replaced file, so that the linker takes nothing from it. Each object
// passes its calls to a GpuLbvhBroadphase. This file is for programs that link Bullet statically,
// or that compile Bullet's sources with this file in place of the original. Requires C++17.
#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>

#include "members.h"

// Hides the vtable, which only objects constructed by this file may use. Ubuntu's shared Bullet is
// linked with -Bsymbolic-functions. Its axis sweeps construct btDbvtBroadphases with Bullet's own
// constructor, which would otherwise use this vtable.
#ifdef __ELF__
__asm__(".hidden _ZTV16btDbvtBroadphase");
#endif

btScalar gDbvtMargin = btScalar(0.05);  // not read; GPULBVH_MARGIN sets the margin

namespace {

/// The GpuLbvhBroadphase of an object. The pointer to it is in m_stageRoots, which only the
/// replaced file would read.
GpuLbvhBroadphase* oursOf(btDbvtBroadphase* self) {
  return reinterpret_cast<GpuLbvhBroadphase*>(self->m_stageRoots[0]);
}
const GpuLbvhBroadphase* oursOf(const btDbvtBroadphase* self) {
  return reinterpret_cast<const GpuLbvhBroadphase*>(self->m_stageRoots[0]);
}

}  // namespace

btDbvtBroadphase::btDbvtBroadphase(btOverlappingPairCache* pairCache) {
  GpuLbvhBroadphase* const ours = gpulbvhDbvt::makeBroadphase(pairCache);
  gpulbvhDbvt::setMembers(*this, ours, pairCache != nullptr);
  m_stageRoots[0] = reinterpret_cast<btDbvtProxy*>(ours);
}

btDbvtBroadphase::~btDbvtBroadphase() { delete oursOf(this); }

btBroadphaseProxy* btDbvtBroadphase::createProxy(const btVector3& aabbMin, const btVector3& aabbMax,
                                                 int shapeType, void* client, int group, int mask,
                                                 btDispatcher* dispatcher) {
  return oursOf(this)->createProxy(aabbMin, aabbMax, shapeType, client, group, mask, dispatcher);
}

void btDbvtBroadphase::destroyProxy(btBroadphaseProxy* proxy, btDispatcher* dispatcher) {
  oursOf(this)->destroyProxy(proxy, dispatcher);
}

void btDbvtBroadphase::setAabb(btBroadphaseProxy* proxy, const btVector3& aabbMin,
                               const btVector3& aabbMax, btDispatcher* dispatcher) {
  oursOf(this)->setAabb(proxy, aabbMin, aabbMax, dispatcher);
}

void btDbvtBroadphase::setAabbForceUpdate(btBroadphaseProxy* proxy, const btVector3& aabbMin,
                                          const btVector3& aabbMax, btDispatcher* dispatcher) {
  oursOf(this)->setAabb(proxy, aabbMin, aabbMax, dispatcher);
}

void btDbvtBroadphase::getAabb(btBroadphaseProxy* proxy, btVector3& aabbMin,
                               btVector3& aabbMax) const {
  oursOf(this)->getAabb(proxy, aabbMin, aabbMax);
}

void btDbvtBroadphase::rayTest(const btVector3& from, const btVector3& to,
                               btBroadphaseRayCallback& callback, const btVector3& aabbMin,
                               const btVector3& aabbMax) {
  oursOf(this)->rayTest(from, to, callback, aabbMin, aabbMax);
}

void btDbvtBroadphase::aabbTest(const btVector3& aabbMin, const btVector3& aabbMax,
                                btBroadphaseAabbCallback& callback) {
  oursOf(this)->aabbTest(aabbMin, aabbMax, callback);
}

void btDbvtBroadphase::calculateOverlappingPairs(btDispatcher* dispatcher) {
  oursOf(this)->calculateOverlappingPairs(dispatcher);
}

void btDbvtBroadphase::collide(btDispatcher* dispatcher) {
  oursOf(this)->calculateOverlappingPairs(dispatcher);
}

void btDbvtBroadphase::performDeferredRemoval(btDispatcher*) {}  // the step removes pairs
// Does nothing, like GpuLbvhBroadphase::optimize().
void btDbvtBroadphase::optimize() {}

btOverlappingPairCache* btDbvtBroadphase::getOverlappingPairCache() {
  return oursOf(this)->getOverlappingPairCache();
}

const btOverlappingPairCache* btDbvtBroadphase::getOverlappingPairCache() const {
  return oursOf(this)->getOverlappingPairCache();
}

void btDbvtBroadphase::getBroadphaseAabb(btVector3& aabbMin, btVector3& aabbMax) const {
  oursOf(this)->getBroadphaseAabb(aabbMin, aabbMax);
}

void btDbvtBroadphase::printStats() { oursOf(this)->printStats(); }

void btDbvtBroadphase::resetPool(btDispatcher* dispatcher) { oursOf(this)->resetPool(dispatcher); }

// Does nothing, as Bullet's function does in a default build.
void btDbvtBroadphase::benchmark(btBroadphaseInterface*) {}

// SPDX-License-Identifier: Zlib
#include "migrateBroadphase.h"

#include <BulletCollision/BroadphaseCollision/btCollisionAlgorithm.h>
#include <BulletCollision/BroadphaseCollision/btDispatcher.h>
#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>
#include <BulletCollision/CollisionDispatch/btCollisionWorld.h>
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <BulletSoftBody/btDeformableMultiBodyDynamicsWorld.h>
#include <BulletSoftBody/btSoftBody.h>
#include <BulletSoftBody/btSoftMultiBodyDynamicsWorld.h>
#include <BulletSoftBody/btSoftRigidDynamicsWorld.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace {

/// An object that moves to the new broad phase, and the state of its old proxy.
struct MovedObject {
  btCollisionObject* object;
  btBroadphaseProxy* proxy;  ///< in the old broad phase
  btVector3 aabbMin, aabbMax;
  int group, mask;
};

/// A pair's collision algorithm. It has no owner while the pair's objects have no proxies.
struct KeptAlgorithm {
  using Clients = std::pair<const void*, const void*>;

  explicit KeptAlgorithm(const btBroadphasePair& pair)
      : clients(pair.m_pProxy0->m_clientObject, pair.m_pProxy1->m_clientObject),
        algorithm(pair.m_algorithm),
        info(pair.m_internalInfo1) {}
  bool operator<(const KeptAlgorithm& other) const {
    const std::less<const void*> less;  // unlike <, a total order of pointers
    if (clients.first != other.clients.first) return less(clients.first, other.clients.first);
    return less(clients.second, other.clients.second);
  }

  Clients clients;  ///< in the order of the pair: an algorithm requires that order
  btCollisionAlgorithm* algorithm;
  void* info;
};

/// Lists the world's objects in the order of their unique ids, so that their new ids have the same
/// order.
std::vector<MovedObject> objectsOf(btCollisionWorld& world) {
  std::vector<MovedObject> moved;
  const btCollisionObjectArray& objects = world.getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i) {
    btBroadphaseProxy* proxy = objects[i]->getBroadphaseHandle();
    if (proxy == nullptr) continue;
    MovedObject one{
        objects[i], proxy, {}, {}, proxy->m_collisionFilterGroup, proxy->m_collisionFilterMask};
    world.getBroadphase()->getAabb(proxy, one.aabbMin, one.aabbMax);
    moved.push_back(one);
  }
  std::sort(moved.begin(), moved.end(), [](const MovedObject& a, const MovedObject& b) {
    return a.proxy->m_uniqueId < b.proxy->m_uniqueId;
  });
  return moved;
}

std::vector<const btBroadphaseProxy*> sortedProxies(const std::vector<MovedObject>& moved) {
  std::vector<const btBroadphaseProxy*> proxies;
  proxies.reserve(moved.size());
  for (const MovedObject& one : moved) proxies.push_back(one.proxy);
  std::sort(proxies.begin(), proxies.end(), std::less<>());
  return proxies;
}

/// Removes the pairs of all given proxies in one pass. Bullet's caches would scan all pairs once
/// per proxy.
class RemovePairs : public btOverlapCallback {
 public:
  explicit RemovePairs(const std::vector<const btBroadphaseProxy*>& sorted) : m_sorted(sorted) {}
  bool processOverlap(btBroadphasePair& pair) override {
    return isOneOf(pair.m_pProxy0) || isOneOf(pair.m_pProxy1);
  }

 private:
  bool isOneOf(const btBroadphaseProxy* proxy) const {
    return std::binary_search(m_sorted.begin(), m_sorted.end(), proxy, std::less<>());
  }
  const std::vector<const btBroadphaseProxy*>& m_sorted;
};

/// Lists the pairs' algorithms, sorted by clients. Does not detach them from the pairs.
std::vector<KeptAlgorithm> algorithmsOf(btOverlappingPairCache& cache) {
  std::vector<KeptAlgorithm> algorithms;
  const btBroadphasePairArray& pairs = cache.getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i)
    if (pairs[i].m_algorithm != nullptr) algorithms.emplace_back(pairs[i]);
  std::sort(algorithms.begin(), algorithms.end());
  return algorithms;
}

void detachAlgorithms(btOverlappingPairCache& cache) {
  btBroadphasePairArray& pairs = cache.getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i) pairs[i].m_algorithm = nullptr;
}

/// Gives each new pair the algorithm that the same pair had before. Frees the algorithms of pairs
/// that no longer exist.
void attachAlgorithms(std::vector<KeptAlgorithm>& algorithms, btOverlappingPairCache& cache,
                      btDispatcher* dispatcher) {
  btBroadphasePairArray& pairs = cache.getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i) {
    const KeptAlgorithm key(pairs[i]);
    const auto found = std::lower_bound(algorithms.begin(), algorithms.end(), key);
    if (found == algorithms.end() || found->clients != key.clients) continue;
    pairs[i].m_algorithm = std::exchange(found->algorithm, nullptr);
    pairs[i].m_internalInfo1 = found->info;
  }
  for (const KeptAlgorithm& one : algorithms) {
    if (one.algorithm == nullptr) continue;
    one.algorithm->~btCollisionAlgorithm();
    dispatcher->freeCollisionAlgorithm(one.algorithm);
  }
}

/// Empties a ghost object's own list, because a ghost must not refer to a proxy that is about to be
/// destroyed. Some caches (btSortedOverlappingPairCache) do not report removals to their ghost
/// callback.
void emptyGhost(btCollisionObject& object, btDispatcher* dispatcher) {
  btGhostObject* ghost = btGhostObject::upcast(&object);
  if (ghost == nullptr) return;
  for (int i = ghost->getNumOverlappingObjects() - 1; i >= 0; --i) {
    btBroadphaseProxy* other = ghost->getOverlappingObject(i)->getBroadphaseHandle();
    if (other != nullptr)
      ghost->removeOverlappingObjectInternal(other, dispatcher, ghost->getBroadphaseHandle());
  }
}

/// Destroys the last proxy first. A broad phase with a stack of free ids then reuses the ids in
/// order.
void destroyProxies(const std::vector<MovedObject>& moved, btBroadphaseInterface& broadphase,
                    btDispatcher* dispatcher) {
  for (auto one = moved.rbegin(); one != moved.rend(); ++one) {
    broadphase.destroyProxy(one->proxy, dispatcher);
    one->object->setBroadphaseHandle(nullptr);
  }
}

void createProxies(const std::vector<MovedObject>& moved, btBroadphaseInterface& broadphase,
                   btDispatcher* dispatcher) {
  for (const MovedObject& one : moved) {
    btBroadphaseProxy* proxy = broadphase.createProxy(
        one.aabbMin, one.aabbMax, one.object->getCollisionShape()->getShapeType(), one.object,
        one.group, one.mask, dispatcher);
    one.object->setBroadphaseHandle(proxy);
    // btAxisSweep3::createProxy does not write the proxy's own box.
    if (proxy != nullptr) broadphase.setAabb(proxy, one.aabbMin, one.aabbMax, dispatcher);
  }
}

void moveCallbacks(btOverlappingPairCache& from, btOverlappingPairCache& to,
                   btOverlappingPairCallback* ghostCallback) {
  if (&from != &to) {
    if (btOverlapFilterCallback* filter = from.getOverlapFilterCallback())
      to.setOverlapFilterCallback(filter);
    from.setOverlapFilterCallback(nullptr);
    from.setInternalGhostPairCallback(nullptr);
  }
  if (ghostCallback != nullptr) to.setInternalGhostPairCallback(ghostCallback);
}

/// The world info of a soft world; null for other worlds.
btSoftBodyWorldInfo* worldInfoOf(btDynamicsWorld* world) {
  switch (world->getWorldType()) {
    case BT_SOFT_RIGID_DYNAMICS_WORLD:
      return &static_cast<btSoftRigidDynamicsWorld*>(world)->getWorldInfo();
    case BT_SOFT_MULTIBODY_DYNAMICS_WORLD:
      return &static_cast<btSoftMultiBodyDynamicsWorld*>(world)->getWorldInfo();
    case BT_DEFORMABLE_MULTIBODY_DYNAMICS_WORLD:
      return &static_cast<btDeformableMultiBodyDynamicsWorld*>(world)->getWorldInfo();
    default:
      return nullptr;
  }
}

}  // namespace

btBroadphaseInterface* migrateBroadphase(btCollisionWorld* world,
                                         btBroadphaseInterface* newBroadphase,
                                         btOverlappingPairCallback* ghostCallback) {
  btBroadphaseInterface* old = world->getBroadphase();
  if (old == newBroadphase) return old;
  btDispatcher* dispatcher = world->getDispatcher();
  btOverlappingPairCache &from = *old->getOverlappingPairCache(),
                         &to = *newBroadphase->getOverlappingPairCache();
  const std::vector<MovedObject> moved = objectsOf(*world);
  const std::vector<const btBroadphaseProxy*> proxies = sortedProxies(moved);
  std::vector<KeptAlgorithm> algorithms = algorithmsOf(from);  // nothing after this throws

  detachAlgorithms(from);
  RemovePairs removal(proxies);
  from.processAllOverlappingPairs(&removal, dispatcher);
  for (const MovedObject& one : moved) emptyGhost(*one.object, dispatcher);
  destroyProxies(moved, *old, dispatcher);

  world->setBroadphase(newBroadphase);
  moveCallbacks(from, to, ghostCallback);
  createProxies(moved, *newBroadphase, dispatcher);
  newBroadphase->calculateOverlappingPairs(dispatcher);
  attachAlgorithms(algorithms, to, dispatcher);
  for (const MovedObject& one : moved)
    if (btSoftBody* body = btSoftBody::upcast(one.object))
      body->getWorldInfo()->m_broadphase = newBroadphase;
  return old;
}

btBroadphaseInterface* migrateBroadphase(btDynamicsWorld* world,
                                         btBroadphaseInterface* newBroadphase,
                                         btOverlappingPairCallback* ghostCallback) {
  btBroadphaseInterface* old =
      migrateBroadphase(static_cast<btCollisionWorld*>(world), newBroadphase, ghostCallback);
  if (btSoftBodyWorldInfo* info = worldInfoOf(world)) info->m_broadphase = newBroadphase;
  return old;
}

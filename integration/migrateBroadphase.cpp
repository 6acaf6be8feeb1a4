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

/// An object on its way, and what its proxy knew.
struct Traveller {
  btCollisionObject* object;
  btBroadphaseProxy* proxy;  ///< the old one
  btVector3 aabbMin, aabbMax;
  int group, mask;
};

/// A pair's algorithm, which has no owner while its objects have no proxies.
struct Luggage {
  using Clients = std::pair<const void*, const void*>;

  explicit Luggage(const btBroadphasePair& pair)
      : clients(pair.m_pProxy0->m_clientObject, pair.m_pProxy1->m_clientObject),
        algorithm(pair.m_algorithm),
        info(pair.m_internalInfo1) {}
  bool operator<(const Luggage& other) const {
    const std::less<const void*> less;  // unlike <, a total order of pointers
    if (clients.first != other.clients.first) return less(clients.first, other.clients.first);
    return less(clients.second, other.clients.second);
  }

  Clients clients;  ///< in the pair's order: an algorithm serves only that one
  btCollisionAlgorithm* algorithm;
  void* info;
};

/// In the order of the unique ids, so that the new ids have it, too.
std::vector<Traveller> travellersOf(btCollisionWorld& world) {
  std::vector<Traveller> travellers;
  const btCollisionObjectArray& objects = world.getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i) {
    btBroadphaseProxy* proxy = objects[i]->getBroadphaseHandle();
    if (proxy == nullptr) continue;
    Traveller one{
        objects[i], proxy, {}, {}, proxy->m_collisionFilterGroup, proxy->m_collisionFilterMask};
    world.getBroadphase()->getAabb(proxy, one.aabbMin, one.aabbMax);
    travellers.push_back(one);
  }
  std::sort(travellers.begin(), travellers.end(), [](const Traveller& a, const Traveller& b) {
    return a.proxy->m_uniqueId < b.proxy->m_uniqueId;
  });
  return travellers;
}

std::vector<const btBroadphaseProxy*> sortedProxies(const std::vector<Traveller>& travellers) {
  std::vector<const btBroadphaseProxy*> proxies;
  proxies.reserve(travellers.size());
  for (const Traveller& one : travellers) proxies.push_back(one.proxy);
  std::sort(proxies.begin(), proxies.end(), std::less<>());
  return proxies;
}

/// Removes the pairs of some proxies in one pass. Bullet's caches scan all pairs for each proxy.
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

/// Takes nothing yet; sorted, to be found again.
std::vector<Luggage> listLuggage(btOverlappingPairCache& cache) {
  std::vector<Luggage> luggage;
  const btBroadphasePairArray& pairs = cache.getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i)
    if (pairs[i].m_algorithm != nullptr) luggage.emplace_back(pairs[i]);
  std::sort(luggage.begin(), luggage.end());
  return luggage;
}

void takeLuggage(btOverlappingPairCache& cache) {
  btBroadphasePairArray& pairs = cache.getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i) pairs[i].m_algorithm = nullptr;
}

/// Gives each new pair the algorithm of the old one, and frees what nobody wants.
void handOut(std::vector<Luggage>& luggage, btOverlappingPairCache& cache,
             btDispatcher* dispatcher) {
  btBroadphasePairArray& pairs = cache.getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i) {
    const Luggage wanted(pairs[i]);
    const auto found = std::lower_bound(luggage.begin(), luggage.end(), wanted);
    if (found == luggage.end() || found->clients != wanted.clients) continue;
    pairs[i].m_algorithm = std::exchange(found->algorithm, nullptr);
    pairs[i].m_internalInfo1 = found->info;
  }
  for (const Luggage& one : luggage) {
    if (one.algorithm == nullptr) continue;
    one.algorithm->~btCollisionAlgorithm();
    dispatcher->freeCollisionAlgorithm(one.algorithm);
  }
}

/// For caches that do not tell their ghost callback of removals (btSortedOverlappingPairCache): a
/// ghost must not keep a proxy that is about to go.
void emptyGhost(btCollisionObject& object, btDispatcher* dispatcher) {
  btGhostObject* ghost = btGhostObject::upcast(&object);
  if (ghost == nullptr) return;
  for (int i = ghost->getNumOverlappingObjects() - 1; i >= 0; --i) {
    btBroadphaseProxy* other = ghost->getOverlappingObject(i)->getBroadphaseHandle();
    if (other != nullptr)
      ghost->removeOverlappingObjectInternal(other, dispatcher, ghost->getBroadphaseHandle());
  }
}

/// The last first: a broad phase that hands out free ids from a stack would get them back in order.
void leave(const std::vector<Traveller>& travellers, btBroadphaseInterface& broadphase,
           btDispatcher* dispatcher) {
  for (auto one = travellers.rbegin(); one != travellers.rend(); ++one) {
    broadphase.destroyProxy(one->proxy, dispatcher);
    one->object->setBroadphaseHandle(nullptr);
  }
}

void enter(const std::vector<Traveller>& travellers, btBroadphaseInterface& broadphase,
           btDispatcher* dispatcher) {
  for (const Traveller& one : travellers) {
    btBroadphaseProxy* proxy = broadphase.createProxy(
        one.aabbMin, one.aabbMax, one.object->getCollisionShape()->getShapeType(), one.object,
        one.group, one.mask, dispatcher);
    one.object->setBroadphaseHandle(proxy);
    // Not said twice to btAxisSweep3, whose createProxy does not write the proxy's own box.
    if (proxy != nullptr) broadphase.setAabb(proxy, one.aabbMin, one.aabbMax, dispatcher);
  }
  broadphase.calculateOverlappingPairs(dispatcher);
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

/// Null if it is not a soft world.
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
  const std::vector<Traveller> travellers = travellersOf(*world);
  const std::vector<const btBroadphaseProxy*> proxies = sortedProxies(travellers);
  std::vector<Luggage> luggage = listLuggage(from);  // the last that may throw

  takeLuggage(from);
  RemovePairs removal(proxies);
  from.processAllOverlappingPairs(&removal, dispatcher);
  for (const Traveller& one : travellers) emptyGhost(*one.object, dispatcher);
  leave(travellers, *old, dispatcher);

  world->setBroadphase(newBroadphase);
  moveCallbacks(from, to, ghostCallback);
  enter(travellers, *newBroadphase, dispatcher);
  handOut(luggage, to, dispatcher);
  for (const Traveller& one : travellers)
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

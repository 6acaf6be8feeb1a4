// SPDX-License-Identifier: Zlib
#include "picking.h"

#include <algorithm>

#include "cached_pairs.h"

namespace {

struct Closest : btCollisionWorld::ClosestRayResultCallback {
  using ClosestRayResultCallback::ClosestRayResultCallback;

  bool needsCollision(btBroadphaseProxy* proxy) const override {
    return std::find(seenThrough->begin(), seenThrough->end(), &objectOf(*proxy)) ==
           seenThrough->end();
  }

  const std::vector<const btCollisionObject*>* seenThrough = nullptr;
};

}  // namespace

const btCollisionObject* pick(World& world, const PickRay& ray,
                              const std::vector<const btCollisionObject*>& seenThrough) {
  const btScalar reach = 10000;
  const btVector3 end = ray.origin + ray.direction * reach;
  Closest closest(ray.origin, end);
  closest.seenThrough = &seenThrough;
  world.bullet().rayTest(ray.origin, end, closest);
  return closest.m_collisionObject;
}

int contactsOf(const btBroadphasePair& pair) {
  if (pair.m_algorithm == nullptr) return 0;
  btManifoldArray manifolds;
  pair.m_algorithm->getAllContactManifolds(manifolds);
  int contacts = 0;
  for (int i = 0; i < manifolds.size(); ++i) {
    // A manifold also has points that no longer touch.
    for (int point = 0; point < manifolds[i]->getNumContacts(); ++point)
      if (manifolds[i]->getContactPoint(point).getDistance() <= 0) ++contacts;
  }
  return contacts;
}

std::vector<Partner> partnersOf(World& world, const btCollisionObject& object) {
  const btBroadphasePairArray& pairs = cachedPairs(world);
  std::vector<Partner> partners;
  for (int i = 0; i < pairs.size(); ++i) {
    const btCollisionObject &a = objectOf(*pairs[i].m_pProxy0), &b = objectOf(*pairs[i].m_pProxy1);
    if (&a == &object || &b == &object)
      partners.push_back({&a == &object ? &b : &a, contactsOf(pairs[i])});
  }
  std::sort(partners.begin(), partners.end(), [](const Partner& a, const Partner& b) {
    return a.object->getWorldArrayIndex() < b.object->getWorldArrayIndex();
  });
  return partners;
}

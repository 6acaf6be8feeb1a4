// SPDX-License-Identifier: Zlib
// Shared by the tests of migrateBroadphase: the kinds of broad phases, the pairs that a world must
// have, and a small world.
#pragma once

#include <BulletSoftBody/btSoftBodyHelpers.h>
#include <btBulletDynamicsCommon.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "GpuLbvhBroadphase.h"

namespace migrate_kinds {

using Owner = std::unique_ptr<btBroadphaseInterface>;

struct WithSortedCache : GpuLbvhBroadphase {
  WithSortedCache() : GpuLbvhBroadphase({}, new btSortedOverlappingPairCache) {}
  ~WithSortedCache() override { delete getOverlappingPairCache(); }
};

struct Kind {
  const char* name;
  Owner (*make)();
  bool isExact;  ///< whether pairs are exact just after a migration; later Dbvt also has pairs of
                 ///< fat boxes
};
inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

inline const Kind kKinds[] = {
    {"Ours", []() -> Owner { return std::make_unique<GpuLbvhBroadphase>(); }, true},
    {"OursSorted", []() -> Owner { return std::make_unique<WithSortedCache>(); }, true},
    {"Dbvt", []() -> Owner { return std::make_unique<btDbvtBroadphase>(); }, true},
    {"AxisSweep",
     []() -> Owner {
       const btVector3 corner(1000, 1000, 1000);
       return std::make_unique<bt32BitAxisSweep3>(-corner, corner, 500);
     },
     false},
    {"Simple", []() -> Owner { return std::make_unique<btSimpleBroadphase>(500); }, true},
};

class EveryKind : public testing::TestWithParam<Kind> {};

using Pair = std::pair<const btCollisionObject*, const btCollisionObject*>;

inline const btCollisionObject* clientOf(const btBroadphaseProxy* proxy) {
  return static_cast<const btCollisionObject*>(proxy->m_clientObject);
}

/// The pairs of a world, with their algorithms. The objects of each pair are in the order on which
/// its algorithm relies.
inline std::map<Pair, btCollisionAlgorithm*> pairsOf(btCollisionWorld& world) {
  std::map<Pair, btCollisionAlgorithm*> pairs;
  const btBroadphasePairArray& array = world.getPairCache()->getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i) {
    const Pair pair{clientOf(array[i].m_pProxy0), clientOf(array[i].m_pProxy1)};
    EXPECT_TRUE(pairs.emplace(pair, array[i].m_algorithm).second) << "a pair twice";
  }
  return pairs;
}

inline bool overlap(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return TestAabbAgainstAabb2(a->m_aabbMin, a->m_aabbMax, b->m_aabbMin, b->m_aabbMax);
}

inline std::set<Pair> bruteForce(btCollisionWorld& world) {
  std::set<Pair> pairs;
  const btCollisionObjectArray& objects = world.getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i)
    for (int j = 0; j < objects.size(); ++j) {
      btBroadphaseProxy *a = objects[i]->getBroadphaseHandle(),
                        *b = objects[j]->getBroadphaseHandle();
      if (a->m_uniqueId < b->m_uniqueId && overlap(a, b) &&
          world.getPairCache()->needsBroadphaseCollision(a, b))
        pairs.insert({objects[i], objects[j]});
    }
  return pairs;
}

inline void expectPairsRight(btCollisionWorld& world, bool isExact) {
  const std::map<Pair, btCollisionAlgorithm*> pairs = pairsOf(world);
  const std::set<Pair> expected = bruteForce(world);
  for (const Pair& pair : expected) ASSERT_EQ(pairs.count(pair), 1u);
  if (isExact) {
    ASSERT_EQ(pairs.size(), expected.size());
  }
}

/// A collision world with a grid of numbered spheres that overlap.
class Spheres {
 public:
  explicit Spheres(btBroadphaseInterface& broadphase)
      : dispatcher_(&configuration_), world(&dispatcher_, &broadphase, &configuration_) {
    for (int i = 0; i < 60; ++i) {
      auto object = std::make_unique<btCollisionObject>();
      add(*object, btVector3(btScalar(i % 4), btScalar(i / 4 % 4), btScalar(i / 16)), i);
      objects_.push_back(std::move(object));
    }
  }

  void add(btCollisionObject& object, const btVector3& place, int number) {
    object.setCollisionShape(&ball_);
    object.getWorldTransform().setOrigin(place);
    object.setUserIndex(number);
    world.addCollisionObject(&object, 1 << (number % 3), -1);
  }

 private:
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_;
  btSphereShape ball_{btScalar(0.7)};
  std::vector<std::unique_ptr<btCollisionObject>> objects_;

 public:
  btCollisionWorld world;
};

}  // namespace migrate_kinds

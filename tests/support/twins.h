// SPDX-License-Identifier: Zlib
// Shared by the adapter's tests: the same objects in several broad phases at once, and brute force
// over their proxies.
#pragma once

#include <btBulletCollisionCommon.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "support.h"

namespace twins {

using lbvh::test::Random;
using PairSet = std::set<std::pair<int, int>>;  // pairs of the clients' numbers

inline int* numberOf(const btBroadphaseProxy* proxy) {
  return static_cast<int*>(proxy->m_clientObject);
}

inline PairSet pairsOf(btBroadphaseInterface& broadphase) {
  PairSet pairs;
  const btBroadphasePairArray& array =
      broadphase.getOverlappingPairCache()->getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i) {
    const int a = *numberOf(array[i].m_pProxy0), b = *numberOf(array[i].m_pProxy1);
    EXPECT_TRUE(pairs.insert({std::min(a, b), std::max(a, b)}).second)
        << "the cache has a pair twice";
    EXPECT_LT(array[i].m_pProxy0->m_uniqueId, array[i].m_pProxy1->m_uniqueId);
  }
  return pairs;
}

struct Box {
  btVector3 min, max;
};

inline Box randomBox(Random& random, float side, float size) {
  const btVector3 min(random.uniform(0, side), random.uniform(0, side), random.uniform(0, side));
  const btVector3 extent(random.uniform(0, size), random.uniform(0, size), random.uniform(0, size));
  return {min, min + extent};
}

inline bool overlap(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return a->m_aabbMin.x() <= b->m_aabbMax.x() && b->m_aabbMin.x() <= a->m_aabbMax.x() &&
         a->m_aabbMin.y() <= b->m_aabbMax.y() && b->m_aabbMin.y() <= a->m_aabbMax.y() &&
         a->m_aabbMin.z() <= b->m_aabbMax.z() && b->m_aabbMin.z() <= a->m_aabbMax.z();
}

inline bool shouldCollide(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return (a->m_collisionFilterGroup & b->m_collisionFilterMask) != 0 &&
         (b->m_collisionFilterGroup & a->m_collisionFilterMask) != 0;
}

/// The same objects in several broad phases at once.
class Twins {
 public:
  explicit Twins(std::vector<btBroadphaseInterface*> broadphases)
      : broadphases_(std::move(broadphases)), numbers_(kMax) {
    for (int i = 0; i < kMax; ++i) numbers_[static_cast<std::size_t>(i)] = i;
  }

  void create(Random& random) {
    const int number = next_++ % kMax;
    if (objects_.count(number) != 0) return;
    const Box box = randomBox(random, 12, 2);
    const int group = 1 << random.below(4), mask = static_cast<int>(random.bits() | 1);
    for (btBroadphaseInterface* broadphase : broadphases_)
      objects_[number].push_back(broadphase->createProxy(
          box.min, box.max, BOX_SHAPE_PROXYTYPE, &numbers_[static_cast<std::size_t>(number)], group,
          mask, nullptr));
  }

  void move(Random& random) {
    if (objects_.empty()) return;
    const Box box = randomBox(random, 12, 2);
    each(pick(random), [&](btBroadphaseInterface* broadphase, btBroadphaseProxy* proxy) {
      broadphase->setAabb(proxy, box.min, box.max, nullptr);
    });
  }

  /// Moves a random object a little.
  void nudge(Random& random) {
    if (objects_.empty()) return;
    const btVector3 by(btScalar(random.uniform(0.01f, 0.1f)), btScalar(random.uniform(-0.1f, 0.1f)),
                       0);
    each(pick(random), [&](btBroadphaseInterface* broadphase, btBroadphaseProxy* proxy) {
      broadphase->setAabb(proxy, proxy->m_aabbMin + by, proxy->m_aabbMax + by, nullptr);
    });
  }

  void destroy(Random& random) {
    if (objects_.empty()) return;
    const int number = pick(random);
    each(number, [&](btBroadphaseInterface* broadphase, btBroadphaseProxy* proxy) {
      broadphase->destroyProxy(proxy, nullptr);
    });
    objects_.erase(number);
  }

  void step() {
    for (btBroadphaseInterface* broadphase : broadphases_)
      broadphase->calculateOverlappingPairs(nullptr);
  }

  /// The proxies in one of the broad phases.
  std::vector<btBroadphaseProxy*> proxies(std::size_t which) const {
    std::vector<btBroadphaseProxy*> proxies;
    for (const auto& object : objects_) proxies.push_back(object.second[which]);
    return proxies;
  }

 private:
  static constexpr int kMax = 400;

  int pick(Random& random) {
    auto it = objects_.begin();
    std::advance(it, random.below(static_cast<std::uint32_t>(objects_.size())));
    return it->first;
  }

  template <class F>
  void each(int number, const F& f) {
    for (std::size_t i = 0; i < broadphases_.size(); ++i) f(broadphases_[i], objects_[number][i]);
  }

  std::vector<btBroadphaseInterface*> broadphases_;
  std::vector<int> numbers_;
  std::map<int, std::vector<btBroadphaseProxy*>> objects_;
  int next_ = 0;
};

inline PairSet bruteForce(const std::vector<btBroadphaseProxy*>& proxies) {
  PairSet pairs;
  for (const btBroadphaseProxy* a : proxies)
    for (const btBroadphaseProxy* b : proxies)
      if (*numberOf(a) < *numberOf(b) && overlap(a, b) && shouldCollide(a, b))
        pairs.insert({*numberOf(a), *numberOf(b)});
  return pairs;
}

/// A filter callback like those that users write.
struct EvenSumsOnly : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    return (*numberOf(a) + *numberOf(b)) % 2 == 0;
  }
};

}  // namespace twins

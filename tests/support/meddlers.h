// SPDX-License-Identifier: Zlib
// Shared by the tests of callbacks: callbacks that change the broad phase that calls them, and
// objects for these callbacks to change.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace twins {

/// A filter callback that first calls meddle(), which may cause further calls of the callback.
struct Meddler : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    ++questions;
    const int idA = a->m_uniqueId, idB = b->m_uniqueId;
    if (meddle) meddle(a, b);
    return a->m_uniqueId == idA && b->m_uniqueId == idB;  // if not, one of the two was destroyed
  }
  std::function<void(btBroadphaseProxy*, btBroadphaseProxy*)> meddle;
  mutable int questions = 0;
};

/// Pairs of unique ids.
using IdPairs = std::set<std::pair<int, int>>;

inline IdPairs idPairsOf(const btOverlappingPairCache& cache) {
  IdPairs pairs;
  for (int i = 0; i < cache.getNumOverlappingPairs(); ++i) {
    const btBroadphasePair& pair = cache.getOverlappingPairArrayPtr()[i];
    EXPECT_TRUE(pairs.insert({pair.m_pProxy0->m_uniqueId, pair.m_pProxy1->m_uniqueId}).second);
  }
  return pairs;
}

/// Objects of a broad phase, for use by callbacks.
class Objects {
 public:
  explicit Objects(GpuLbvhBroadphase& broadphase) : m_broadphase(broadphase) {}

  btBroadphaseProxy* create(const Box& box, btCollisionObject* client = nullptr) {
    btBroadphaseProxy* proxy =
        m_broadphase.createProxy(box.min, box.max, 0, client, 1, -1, nullptr);
    if (proxy != nullptr) living.push_back(proxy);
    return proxy;
  }
  void destroy(btBroadphaseProxy* proxy) {
    living.erase(std::find(living.begin(), living.end(), proxy));
    m_broadphase.destroyProxy(proxy, nullptr);
  }
  bool isLiving(const btBroadphaseProxy* proxy) const {
    return std::find(living.begin(), living.end(), proxy) != living.end();
  }
  btBroadphaseProxy* any(Random& random) {
    return living[random.below(static_cast<std::uint32_t>(living.size()))];
  }
  /// Moves a random living object to a random box, `count` times.
  void moveAny(int count, Random& random, float side, float size) {
    for (int i = 0; i < count; ++i) {
      const Box box = randomBox(random, side, size);
      m_broadphase.setAabb(any(random), box.min, box.max, nullptr);
    }
  }

  /// Expects that every pair consists of two living objects.
  void expectNoDead() {
    const btBroadphasePairArray& array =
        m_broadphase.getOverlappingPairCache()->getOverlappingPairArray();
    for (int i = 0; i < array.size(); ++i) {
      ASSERT_TRUE(isLiving(array[i].m_pProxy0)) << i;
      ASSERT_TRUE(isLiving(array[i].m_pProxy1)) << i;
    }
  }

  IdPairs bruteForce() const {
    IdPairs pairs;
    for (const btBroadphaseProxy* a : living)
      for (const btBroadphaseProxy* b : living)
        if (a->m_uniqueId < b->m_uniqueId && overlap(a, b) && shouldCollide(a, b))
          pairs.insert({a->m_uniqueId, b->m_uniqueId});
    return pairs;
  }

  std::vector<btBroadphaseProxy*> living;

 private:
  GpuLbvhBroadphase& m_broadphase;
};

}  // namespace twins

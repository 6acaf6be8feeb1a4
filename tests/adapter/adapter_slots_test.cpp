// SPDX-License-Identifier: Zlib
// Tests which slots proxies get, and that free slots at the end of the array are given back. After
// most objects of a crowd are destroyed, the rest must have the right pairs and occupy no more
// slots than there are objects.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include <algorithm>
#include <memory>
#include <set>

#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace {

using namespace twins;

/// Objects, some of them ghosts, in their own broad phase.
class Crowd {
 public:
  /// @param side length of a side of the cube that contains the objects
  Crowd(const GpuLbvhOptions& options, float side) : m_side(side), m_broadphase(options) {
    m_broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&m_callback);
  }
  ~Crowd() { shrinkTo(0); }

  void growTo(std::size_t count, Random& random) {
    while (m_objects.size() < count) {
      if (random.below(10) == 0)
        m_objects.push_back(std::make_unique<btGhostObject>());
      else
        m_objects.push_back(std::make_unique<btCollisionObject>());
      const Box box = randomBox(random, m_side, 2);
      m_objects.back()->setBroadphaseHandle(
          m_broadphase.createProxy(box.min, box.max, 0, m_objects.back().get(), 1, -1, nullptr));
    }
  }
  /// Destroys the newest objects until `count` are left.
  void shrinkTo(std::size_t count) {
    for (; m_objects.size() > count; m_objects.pop_back())
      m_broadphase.destroyProxy(m_objects.back()->getBroadphaseHandle(), nullptr);
  }
  void moveSome(std::size_t count, Random& random) {
    for (; count > 0; --count) {
      const Box box = randomBox(random, m_side, 2);
      m_broadphase.setAabb(any(random), box.min, box.max, nullptr);
    }
  }
  /// Moves all objects so little that objects near a ghost stay near it.
  void driftAll(Random& random) {
    for (std::size_t i = 0; i < m_objects.size(); ++i) {
      const btVector3 by(btScalar(random.uniform(-0.02f, 0.02f)), 0, 0);
      m_broadphase.setAabb(proxy(i), proxy(i)->m_aabbMin + by, proxy(i)->m_aabbMax + by, nullptr);
    }
  }
  void step() { m_broadphase.calculateOverlappingPairs(nullptr); }

  /// Compares pairs, ghosts' lists and a box query with brute force.
  void check(Random& random) {
    std::set<std::pair<int, int>> expected, found;
    for (std::size_t i = 0; i < m_objects.size(); ++i)
      for (std::size_t j = i + 1; j < m_objects.size(); ++j)
        if (overlap(proxy(i), proxy(j))) expected.insert(idsOf(proxy(i), proxy(j)));
    const btBroadphasePairArray& pairs =
        m_broadphase.getOverlappingPairCache()->getOverlappingPairArray();
    for (int i = 0; i < pairs.size(); ++i)
      found.insert(idsOf(pairs[i].m_pProxy0, pairs[i].m_pProxy1));
    EXPECT_EQ(found, expected);
    for (std::size_t i = 0; i < m_objects.size(); ++i)
      if (const btGhostObject* ghost = btGhostObject::upcast(m_objects[i].get())) {
        const int id = proxy(i)->m_uniqueId;
        EXPECT_EQ(ghost->getNumOverlappingObjects(),
                  std::count_if(expected.begin(), expected.end(), [id](const auto& pair) {
                    return pair.first == id || pair.second == id;
                  }));
      }
    const Box box = randomBox(random, m_side, 4);
    struct Count : btBroadphaseAabbCallback {
      bool process(const btBroadphaseProxy*) override { return ++visits > 0; }
      int visits = 0;
    } count;
    m_broadphase.aabbTest(box.min, box.max, count);
    EXPECT_EQ(count.visits, std::count_if(m_objects.begin(), m_objects.end(), [&](const auto& one) {
                const btBroadphaseProxy* p = one->getBroadphaseHandle();
                return TestAabbAgainstAabb2(box.min, box.max, p->m_aabbMin, p->m_aabbMax);
              }));
  }
  std::size_t slots() const { return m_broadphase.stats().objects; }
  btBroadphaseProxy* any(Random& random) const {
    return proxy(random.below(static_cast<std::uint32_t>(m_objects.size())));
  }

 private:
  static std::pair<int, int> idsOf(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
    return {std::min(a->m_uniqueId, b->m_uniqueId), std::max(a->m_uniqueId, b->m_uniqueId)};
  }
  btBroadphaseProxy* proxy(std::size_t i) const { return m_objects[i]->getBroadphaseHandle(); }

  const float m_side;
  btGhostPairCallback m_callback;
  GpuLbvhBroadphase m_broadphase;
  std::vector<std::unique_ptr<btCollisionObject>> m_objects;
};

// With the largest crowd, most blocks of proxies are freed in each round.
TEST(AdapterSlots, ACrowdThatComesAndGoesLeavesNothing) {
  for (const btScalar margin : {btScalar(0), btScalar(0.125)})
    for (const std::size_t most : {40u, 300u, 9000u}) {
      SCOPED_TRACE(most);
      Random random(46);
      GpuLbvhOptions options;
      options.margin = margin;
      Crowd crowd(options, most < 1000 ? 12 : 40);
      for (int round = 0; round < 12 && !testing::Test::HasFailure(); ++round) {
        crowd.growTo(most, random);
        crowd.moveSome(most < 1000 ? most / 2 : 20, random);
        crowd.driftAll(random);
        if (round % 3 != 1) crowd.step();
        const std::size_t left = round % 4 == 3 ? 0 : random.below(20);
        crowd.shrinkTo(left);
        if (left > 0) crowd.moveSome(random.below(6), random);
        crowd.step();
        EXPECT_EQ(crowd.slots(), left);
        if (margin == 0) crowd.check(random);
        crowd.driftAll(random);
        crowd.step();
        if (margin == 0) crowd.check(random);
      }
    }
}

TEST(AdapterSlots, ANewProxyGetsTheLowestFreeSlot) {
  GpuLbvhBroadphase broadphase;
  int numbers[6] = {0, 1, 2, 3, 4, 5};
  btBroadphaseProxy* proxies[6];
  const auto create = [&](int i) {
    proxies[i] = broadphase.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, &numbers[i], 1,
                                        -1, nullptr);
  };
  for (int i = 0; i < 6; ++i) create(i);
  broadphase.calculateOverlappingPairs(nullptr);
  for (const int i : {4, 1, 3}) broadphase.destroyProxy(proxies[i], nullptr);
  const btBroadphaseProxy *first = proxies[1], *second = proxies[3], *third = proxies[4];
  for (const int i : {1, 3, 4}) create(i);
  EXPECT_EQ(proxies[1], first);
  EXPECT_EQ(proxies[3], second);
  EXPECT_EQ(proxies[4], third);
}

// The memory of the last proxies has been freed, so nothing may read it.
TEST(AdapterSlots, ProxiesThatAreGoneAreNotRead) {
  GpuLbvhBroadphase broadphase;
  std::vector<btBroadphaseProxy*> proxies(9000);
  for (std::size_t i = 0; i < proxies.size(); ++i)
    proxies[i] = broadphase.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, nullptr, 1,
                                        i < 2 ? -1 : 0, nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  for (std::size_t i = 2; i < proxies.size(); ++i) broadphase.destroyProxy(proxies[i], nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
  EXPECT_EQ(cache.findPair(proxies[0], proxies.back()), nullptr);
  EXPECT_EQ(cache.removeOverlappingPair(proxies[0], proxies.back(), nullptr), nullptr);
  EXPECT_EQ(cache.getNumOverlappingPairs(), 1);
}

}  // namespace

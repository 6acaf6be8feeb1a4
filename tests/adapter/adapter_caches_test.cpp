// SPDX-License-Identifier: Zlib
// Tests pair caches that the caller supplies. Also tests the constructor with btDbvtBroadphase's
// parameters, unique ids that restart at 1, and one cache for two broad phases.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include "meddlers.h"

namespace {

using namespace twins;

const btVector3 kLow(0, 0, 0), kHigh(1, 1, 1);

btBroadphaseProxy* createUnit(btBroadphaseInterface& broadphase, void* client = nullptr,
                              btScalar x = 0) {
  const btVector3 place(x, 0, 0);
  return broadphase.createProxy(kLow + place, kHigh + place, 0, client, 1, -1, nullptr);
}

// To switch from btDbvtBroadphase, a program needs to change only the name of the class.
TEST(Caches, ACachePointerAloneMeansTheSameAsForBtDbvtBroadphase) {
  btHashedOverlappingPairCache hashed;
  btOverlappingPairCache& cache = hashed;
  btGhostPairCallback ghosts;
  cache.setInternalGhostPairCallback(&ghosts);
  const std::unique_ptr<btBroadphaseInterface> broadphases[] = {
      std::make_unique<btDbvtBroadphase>(&cache), std::make_unique<GpuLbvhBroadphase>(&cache)};
  for (const auto& broadphase : broadphases) {
    EXPECT_EQ(broadphase->getOverlappingPairCache(), &cache);
    btGhostObject ghost;
    btCollisionObject object;
    ghost.setBroadphaseHandle(createUnit(*broadphase, &ghost));
    object.setBroadphaseHandle(createUnit(*broadphase, &object));
    EXPECT_EQ(ghost.getNumOverlappingObjects(), 1) << "before any step";
    broadphase->destroyProxy(ghost.getBroadphaseHandle(), nullptr);
    broadphase->destroyProxy(object.getBroadphaseHandle(), nullptr);
    ghost.setBroadphaseHandle(nullptr);
    object.setBroadphaseHandle(nullptr);
  }

  btOverlappingPairCache* none = nullptr;
  GpuLbvhBroadphase a(nullptr), b(0), c(none);  // NOLINT(modernize-use-nullptr)
  btDbvtBroadphase dbvt(nullptr);
  for (btBroadphaseInterface* broadphase :
       {static_cast<btBroadphaseInterface*>(&a), static_cast<btBroadphaseInterface*>(&b),
        static_cast<btBroadphaseInterface*>(&c), static_cast<btBroadphaseInterface*>(&dbvt)}) {
    ASSERT_NE(broadphase->getOverlappingPairCache(), nullptr);
    btBroadphaseProxy *first = createUnit(*broadphase), *second = createUnit(*broadphase);
    broadphase->calculateOverlappingPairs(nullptr);
    EXPECT_EQ(broadphase->getOverlappingPairCache()->getNumOverlappingPairs(), 1);
    for (btBroadphaseProxy* proxy : {first, second}) broadphase->destroyProxy(proxy, nullptr);
  }
}

// Calls functions that btDbvtBroadphase has, but btBroadphaseInterface does not.
TEST(Caches, AcceptsTheOtherCallsOfBtDbvtBroadphase) {
  const auto use = [](auto& broadphase) {
    btBroadphaseProxy *a = createUnit(broadphase), *b = createUnit(broadphase, nullptr, 5);
    broadphase.setVelocityPrediction(btScalar(0.25));
    EXPECT_EQ(broadphase.getVelocityPrediction(), btScalar(0.25));
    broadphase.optimize();
    broadphase.setAabbForceUpdate(a, kLow, btVector3(6, 1, 1), nullptr);
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(broadphase.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
    for (btBroadphaseProxy* proxy : {a, b}) broadphase.destroyProxy(proxy, nullptr);
  };
  btDbvtBroadphase dbvt;
  GpuLbvhBroadphase ours;
  use(dbvt);
  use(ours);
}

// Bullet's hashed cache identifies pairs by unique ids. Removing pairs of destroyed ghosts must not
// remove pairs of new proxies with the same ids.
TEST(Caches, IdsAfterResetPoolAreNotTakenForDestroyedGhosts) {
  btHashedOverlappingPairCache hashed;
  btOverlappingPairCache& cache = hashed;
  btGhostPairCallback callback;
  cache.setInternalGhostPairCallback(&callback);
  GpuLbvhBroadphase broadphase(&cache);
  std::vector<std::unique_ptr<btGhostObject>> ghosts;
  for (int i = 0; i < 10; ++i) {
    ghosts.push_back(std::make_unique<btGhostObject>());
    ghosts.back()->setBroadphaseHandle(createUnit(broadphase, ghosts.back().get()));
  }
  EXPECT_EQ(cache.getNumOverlappingPairs(), 45);
  for (const auto& ghost : ghosts) {
    broadphase.destroyProxy(ghost->getBroadphaseHandle(), nullptr);
    ghost->setBroadphaseHandle(nullptr);
  }
  broadphase.resetPool(nullptr);
  btCollisionObject object;
  for (int i = 0; i < 8; ++i) broadphase.destroyProxy(createUnit(broadphase, &object), nullptr);
  btBroadphaseProxy* nine = createUnit(broadphase, &object, btScalar(80));
  btBroadphaseProxy* ten = createUnit(broadphase, &object, btScalar(80.5));
  EXPECT_EQ(ten->m_uniqueId, 10);
  for (int step = 0; step < 3; ++step) {
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(cache.getNumOverlappingPairs(), 1) << step;
    EXPECT_NE(cache.findPair(nine, ten), nullptr) << step;
  }
}

/// Two broad phases with one cache. Their proxies have the same slots, but those of the second have
/// larger ids.
class Shared {
 public:
  explicit Shared(btOverlappingPairCache& cache) : first({}, &cache), second({}, &cache) {
    std::vector<btBroadphaseProxy*> forIds;
    for (int i = 0; i < 10; ++i) forIds.push_back(createUnit(second));
    for (; !forIds.empty(); forIds.pop_back()) second.destroyProxy(forIds.back(), nullptr);
    for (GpuLbvhBroadphase* one : {&first, &second})
      for (int i = 0; i < 4; ++i) proxies.push_back(createUnit(*one));
    step();
  }
  void step() {
    first.calculateOverlappingPairs(nullptr);
    second.calculateOverlappingPairs(nullptr);
  }
  GpuLbvhBroadphase first, second;
  std::vector<btBroadphaseProxy*> proxies;  ///< four of the first broad phase, four of the second
};

class SharedCache : public testing::TestWithParam<bool> {
 protected:
  btOverlappingPairCache& cache() {
    return GetParam() ? static_cast<btOverlappingPairCache&>(m_sorted) : m_hashed;
  }

 private:
  btSortedOverlappingPairCache m_sorted;
  btHashedOverlappingPairCache m_hashed;
};

INSTANTIATE_TEST_SUITE_P(Caches, SharedCache, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "sorted" : "hashed");
});

TEST_P(SharedCache, ABroadphaseRemovesOnlyItsOwnPairs) {
  Shared shared(cache());
  EXPECT_EQ(cache().getNumOverlappingPairs(), 12);
  shared.second.setAabb(shared.proxies[5], kHigh * 50, kHigh * 51, nullptr);
  shared.step();
  EXPECT_EQ(cache().getNumOverlappingPairs(), 9);
  shared.first.destroyProxies(shared.proxies.data(), 2, nullptr);
  EXPECT_EQ(cache().getNumOverlappingPairs(), 4);
  shared.step();
  EXPECT_EQ(cache().getNumOverlappingPairs(), 4);
}

TEST_P(SharedCache, EachBroadphaseRefiltersOnlyItsOwnPairs) {
  Shared shared(cache());
  struct Refuses : btOverlapFilterCallback {
    bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
      return !refuses;
    }
    bool refuses = true;
  } filter;
  cache().setOverlapFilterCallback(&filter);
  shared.first.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(cache().getNumOverlappingPairs(), 6) << "pairs of the second, which has not stepped";
  shared.step();
  EXPECT_EQ(cache().getNumOverlappingPairs(), 0);
  filter.refuses = false;
  shared.first.refilter();
  shared.second.refilter();
  shared.step();
  EXPECT_EQ(cache().getNumOverlappingPairs(), 12);
}

// The proxies of another broad phase may be of any class, even Bullet's base class itself.
TEST_P(SharedCache, ProxiesOfTheOtherBroadphaseAreNotRead) {
  GpuLbvhBroadphase ours({}, &cache());
  std::vector<std::unique_ptr<btBroadphaseProxy>> others;
  for (int i = 0; i < 2; ++i) {
    others.push_back(std::make_unique<btBroadphaseProxy>(kLow, kHigh, nullptr, 1, -1));
    others.back()->m_uniqueId = 100 + i;
  }
  cache().addOverlappingPair(others[0].get(), others[1].get());
  std::vector<btBroadphaseProxy*> proxies;
  for (int i = 0; i < 4; ++i) proxies.push_back(createUnit(ours));
  ours.calculateOverlappingPairs(nullptr);
  ours.refilter();
  ours.setAabb(proxies[0], kHigh * 50, kHigh * 51, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  ours.destroyProxies(proxies.data(), 4, nullptr);
  EXPECT_EQ(cache().getNumOverlappingPairs(), 1);
}

// Bullet's hashed cache identifies proxies by unique id, so it keeps only one of two pairs with
// equal ids.
TEST(Caches, EqualIdsOfTwoBroadphasesInOneHashedCacheAreAnError) {
  btHashedOverlappingPairCache cache;
  GpuLbvhBroadphase first({}, &cache), second({}, &cache);
  std::vector<btBroadphaseProxy*> proxies;
  for (GpuLbvhBroadphase* one : {&first, &second})
    for (int i = 0; i < 2; ++i) proxies.push_back(createUnit(*one));
  first.calculateOverlappingPairs(nullptr);
  second.calculateOverlappingPairs(nullptr);
  EXPECT_STREQ(first.error(), "");
  EXPECT_EQ(first.errorCode(), GpuLbvhError::none);
  EXPECT_EQ(second.errorCode(), GpuLbvhError::foreignPairs);
  EXPECT_STREQ(second.error(),
               "the pair cache has pairs of another broad phase with the same unique ids");
  second.setAabb(proxies[2], kHigh * 50, kHigh * 51, nullptr);
  second.calculateOverlappingPairs(nullptr);
  ASSERT_EQ(cache.getNumOverlappingPairs(), 1) << "the pair of the first remains";
  EXPECT_EQ(cache.getOverlappingPairArray()[0].m_pProxy0, proxies[0]);
  second.setAabb(proxies[2], kLow, kHigh, nullptr);
  second.calculateOverlappingPairs(nullptr);
  first.destroyProxy(proxies[0], nullptr);
  second.calculateOverlappingPairs(nullptr);
  EXPECT_STREQ(second.error(), "");
  ASSERT_EQ(cache.getNumOverlappingPairs(), 1) << "now the pair of the second is added";
  EXPECT_EQ(cache.getOverlappingPairArray()[0].m_pProxy0, proxies[2]);
}

TEST(Caches, OwnCacheRefusesProxiesOfAnotherBroadphase) {
  GpuLbvhBroadphase ours;
  btOverlappingPairCache* cache = ours.getOverlappingPairCache();
  btBroadphaseProxy* own = createUnit(ours);
  btBroadphaseProxy other(kLow, kHigh, nullptr, 1, -1);
  other.m_uniqueId = 2;
#if defined(NDEBUG)
  testing::internal::CaptureStderr();
  EXPECT_EQ(cache->addOverlappingPair(own, &other), nullptr);
  EXPECT_EQ(cache->addOverlappingPair(&other, own), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "GpuLbvhBroadphase: its own pair cache takes only pairs of its own proxies\n");
#else
  EXPECT_DEATH(cache->addOverlappingPair(own, &other), "takes only pairs of its own proxies");
#endif
  EXPECT_EQ(cache->findPair(own, &other), nullptr);
  EXPECT_EQ(cache->removeOverlappingPair(own, &other, nullptr), nullptr);
  cache->cleanProxyFromPairs(&other, nullptr);
  cache->removeOverlappingPairsContainingProxy(&other, nullptr);
  EXPECT_EQ(cache->getNumOverlappingPairs(), 0);
}

}  // namespace

// SPDX-License-Identifier: Zlib
// Tests what GpuLbvhBroadphase adds to btBroadphaseInterface: calls for many proxies, the margin,
// and announced filter changes.
#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace {

using namespace twins;

std::vector<std::pair<int, int>> idsOf(GpuLbvhBroadphase& broadphase) {
  std::vector<std::pair<int, int>> ids;
  const btBroadphasePairArray& array =
      broadphase.getOverlappingPairCache()->getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i)
    ids.emplace_back(array[i].m_pProxy0->m_uniqueId, array[i].m_pProxy1->m_uniqueId);
  return ids;
}

TEST(AdapterBulk, DoesWhatTheSingleCallsDo) {
  Random random(81);
  GpuLbvhBroadphase bulk, single;
  std::vector<btBroadphaseProxy*> inBulk, inSingle;
  std::vector<int> numbers(2000, 0);
  for (int step = 0; step < 60; ++step) {
    std::vector<GpuLbvhNewProxy> objects(random.below(40));
    for (GpuLbvhNewProxy& object : objects) {
      const Box box = randomBox(random, 10, 2);
      object.aabbMin = box.min;
      object.aabbMax = box.max;
      object.client = &numbers[inBulk.size()];
      object.group = 1 << random.below(3);
      object.mask = static_cast<int>(random.bits());
      inSingle.push_back(single.createProxy(box.min, box.max, 0, object.client, object.group,
                                            object.mask, nullptr));
    }
    const std::size_t before = inBulk.size();
    inBulk.resize(before + objects.size());
    ASSERT_TRUE(bulk.createProxies(objects.data(), static_cast<int>(objects.size()),
                                   inBulk.data() + before, nullptr));
    std::vector<btVector3> mins, maxs;
    const std::size_t moved = inBulk.size() / 2;
    for (std::size_t i = 0; i < moved; ++i) {
      const Box box = randomBox(random, 10, 2);
      mins.push_back(box.min);
      maxs.push_back(box.max);
      single.setAabb(inSingle[i], box.min, box.max, nullptr);
    }
    bulk.setAabbs(inBulk.data(), mins.data(), maxs.data(), static_cast<int>(moved), nullptr);
    bulk.calculateOverlappingPairs(nullptr);
    single.calculateOverlappingPairs(nullptr);
    ASSERT_EQ(idsOf(bulk), idsOf(single)) << step;
    const std::size_t gone = random.below(static_cast<std::uint32_t>(inBulk.size() / 4 + 1));
    bulk.destroyProxies(inBulk.data(), static_cast<int>(gone), nullptr);
    for (std::size_t i = 0; i < gone; ++i) single.destroyProxy(inSingle[i], nullptr);
    inBulk.erase(inBulk.begin(), inBulk.begin() + static_cast<std::ptrdiff_t>(gone));
    inSingle.erase(inSingle.begin(), inSingle.begin() + static_cast<std::ptrdiff_t>(gone));
    ASSERT_EQ(idsOf(bulk), idsOf(single)) << step;
    for (std::size_t i = 0; i < inBulk.size(); ++i) {
      ASSERT_EQ(inBulk[i]->m_uniqueId, inSingle[i]->m_uniqueId);
      ASSERT_EQ(inBulk[i]->m_clientObject, inSingle[i]->m_clientObject);
    }
  }
  EXPECT_GT(idsOf(bulk).size(), 20u);
}

TEST(AdapterBulk, DestroyingPurgesSuppliedCaches) {
  btHashedOverlappingPairCache hashed;
  btSortedOverlappingPairCache sorted;
  for (btOverlappingPairCache* cache : {static_cast<btOverlappingPairCache*>(&hashed),
                                        static_cast<btOverlappingPairCache*>(&sorted)}) {
    GpuLbvhBroadphase broadphase({}, cache);
    std::vector<GpuLbvhNewProxy> objects(20);
    for (GpuLbvhNewProxy& object : objects) object.aabbMin = object.aabbMax = btVector3(1, 2, 3);
    std::vector<btBroadphaseProxy*> proxies(20);
    ASSERT_TRUE(broadphase.createProxies(objects.data(), 20, proxies.data(), nullptr));
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(cache->getNumOverlappingPairs(), 190);
    broadphase.destroyProxies(proxies.data() + 5, 15, nullptr);
    EXPECT_EQ(cache->getNumOverlappingPairs(), 10);
    // The new proxies reuse slots of the destroyed ones.
    ASSERT_TRUE(broadphase.createProxies(objects.data(), 3, proxies.data() + 5, nullptr));
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(cache->getNumOverlappingPairs(), 28);
    broadphase.destroyProxies(proxies.data(), 1, nullptr);
    EXPECT_EQ(cache->getNumOverlappingPairs(), 21);
  }
}

/// A second implementation of the margin: a box is fattened again when the object leaves its fat
/// box.
struct Fattened {
  btVector3 min, max;
  void follow(const btBroadphaseProxy* proxy, btScalar margin) {
    bool isInside = true;
    for (int axis = 0; axis < 3; ++axis)
      isInside =
          isInside && min[axis] <= proxy->m_aabbMin[axis] && proxy->m_aabbMax[axis] <= max[axis];
    if (isInside) return;
    min = proxy->m_aabbMin - btVector3(margin, margin, margin);
    max = proxy->m_aabbMax + btVector3(margin, margin, margin);
  }
  bool overlaps(const Fattened& b) const { return TestAabbAgainstAabb2(min, max, b.min, b.max); }
};

struct Hits : btBroadphaseAabbCallback {
  bool process(const btBroadphaseProxy* proxy) override {
    found.insert(proxy);
    return true;
  }
  std::set<const btBroadphaseProxy*> found;
};

// Returns multiples of 1/64, so that fattened boxes are exact in either precision.
btVector3 onGrid(Random& random, std::uint32_t size) {
  const auto one = [&] { return btScalar(random.below(64 * size)) / 64; };
  return {one(), one(), one()};
}

TEST(AdapterMargin, PairsAreThoseOfFattenedBoxesAndQueriesAreExact) {
  const btScalar margin = btScalar(0.125);
  Random random(82);
  GpuLbvhOptions options;
  options.margin = margin;
  GpuLbvhBroadphase broadphase(options);
  std::vector<btBroadphaseProxy*> proxies;
  std::vector<Fattened> fat(150, {btVector3(1, 1, 1), btVector3(0, 0, 0)});
  for (int i = 0; i < 150; ++i) {
    const btVector3 at = onGrid(random, 6);
    proxies.push_back(
        broadphase.createProxy(at, at + onGrid(random, 1), 0, nullptr, 1, -1, nullptr));
    fat[static_cast<std::size_t>(i)].follow(proxies.back(), margin);
  }
  std::size_t fatOnly = 0, free = 0;
  for (int step = 0; step < 200; ++step) {
    for (std::uint32_t i = random.below(step % 2 == 0 ? 3 : 40); i > 0; --i) {
      const std::size_t which = random.below(150);
      btBroadphaseProxy* proxy = proxies[which];
      const btVector3 by = (onGrid(random, 1) - btVector3(1, 1, 1) / 2) / 8;
      broadphase.setAabb(proxy, proxy->m_aabbMin + by, proxy->m_aabbMax + by, nullptr);
      fat[which].follow(proxy, margin);
    }
    std::set<std::pair<int, int>> expected;
    std::size_t overlapping = 0;
    for (std::size_t i = 0; i < 150; ++i)
      for (std::size_t j = i + 1; j < 150; ++j) {
        if (fat[i].overlaps(fat[j]))
          expected.insert({proxies[i]->m_uniqueId, proxies[j]->m_uniqueId});
        overlapping += overlap(proxies[i], proxies[j]);
      }
    broadphase.calculateOverlappingPairs(nullptr);
    const auto ids = idsOf(broadphase);
    ASSERT_EQ(std::set(ids.begin(), ids.end()), expected) << step;
    fatOnly += expected.size() - overlapping;
    free += broadphase.stats().totalMs == 0;

    const btVector3 at = onGrid(random, 6);
    Hits hits;
    broadphase.aabbTest(at, at + btVector3(1, 1, 1), hits);
    for (btBroadphaseProxy* proxy : proxies)
      ASSERT_EQ(
          hits.found.count(proxy) != 0,
          TestAabbAgainstAabb2(proxy->m_aabbMin, proxy->m_aabbMax, at, at + btVector3(1, 1, 1)))
          << step;
  }
  EXPECT_GT(fatOnly, 1000u);
  EXPECT_GT(free, 5u) << "too few steps in which no object left its fat box";
}

GpuLbvhOptions announced() {
  GpuLbvhOptions options;
  options.announcedFilters = true;
  return options;
}

// Changes are announced by filterChanged or cleanProxyFromPairs. Objects are created and destroyed,
// so slots are reused.
TEST(AdapterFilters, AnnouncedChangesTakeEffectAtTheNextStep) {
  Random random(86);
  btHashedOverlappingPairCache hashed;
  GpuLbvhBroadphase ours(announced()), withHashed(announced(), &hashed);
  Twins twins({&ours, &withHashed});
  btOverlappingPairCache* cache = ours.getOverlappingPairCache();
  for (int step = 0; step < 100; ++step) {
    for (int i = 0; i < 4; ++i) twins.create(random);
    for (int i = 0; i < 5; ++i) twins.move(random);
    if (step % 2 == 0) twins.destroy(random);
    const std::vector<btBroadphaseProxy*> proxies = twins.proxies(0), others = twins.proxies(1);
    for (std::size_t i = 0; i < proxies.size(); ++i) {
      if (random.below(5) != 0) continue;
      const int mask = static_cast<int>(random.bits());
      proxies[i]->m_collisionFilterMask = others[i]->m_collisionFilterMask = mask;
      if (random.below(2) == 0)
        ours.filterChanged(proxies[i]);
      else
        cache->cleanProxyFromPairs(proxies[i], nullptr);
      withHashed.filterChanged(others[i]);
    }
    twins.step();
    ASSERT_EQ(pairsOf(ours), bruteForce(twins.proxies(0))) << step;
    ASSERT_EQ(pairsOf(withHashed), bruteForce(twins.proxies(1))) << step;
  }
  EXPECT_GT(cache->getNumOverlappingPairs(), 10);
}

/// Two overlapping boxes in a world whose broad phase reads only announced filter changes.
struct TwoBoxes {
  TwoBoxes() : world(&dispatcher, &ours, &configuration) {
    for (btCollisionObject& object : objects) {
      object.setCollisionShape(&box);
      world.addCollisionObject(&object);
    }
  }
  int pairsAfterAStep() {
    ours.calculateOverlappingPairs(&dispatcher);
    return ours.getOverlappingPairCache()->getNumOverlappingPairs();
  }
  btBroadphaseProxy* first() { return objects[0].getBroadphaseHandle(); }

  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher{&configuration};
  GpuLbvhBroadphase ours{announced()};
  btBoxShape box{btVector3(1, 1, 1)};
  btCollisionObject objects[2];
  btCollisionWorld world;
};

TEST(AdapterFilters, BulletsOwnCallsAnnounceAChange) {
  TwoBoxes two;
  EXPECT_EQ(two.pairsAfterAStep(), 1);
  two.first()->m_collisionFilterMask = 0;
  two.world.refreshBroadphaseProxy(&two.objects[0]);
  EXPECT_EQ(two.pairsAfterAStep(), 0);
  two.world.removeCollisionObject(&two.objects[0]);
  two.world.addCollisionObject(&two.objects[0]);
  EXPECT_EQ(two.pairsAfterAStep(), 1);
  two.first()->m_collisionFilterGroup = 0;
  two.ours.getOverlappingPairCache()->removeOverlappingPairsContainingProxy(two.first(),
                                                                            &two.dispatcher);
  EXPECT_EQ(two.pairsAfterAStep(), 0);
  two.first()->m_collisionFilterGroup = 1;
  two.ours.filterChanged(two.first());
  EXPECT_EQ(two.pairsAfterAStep(), 1) << "the step before must drop the pair to find it again";
}

TEST(AdapterFilters, ChangesThatAreNotAnnouncedAreNotRead) {
  TwoBoxes two;
  two.pairsAfterAStep();
  two.first()->m_collisionFilterMask = 0;
  EXPECT_EQ(two.pairsAfterAStep(), 1);
  EXPECT_EQ(two.ours.stats().totalMs, 0) << "no stage ran";
  two.ours.filterChanged(two.first());
  EXPECT_EQ(two.pairsAfterAStep(), 0);
}

TEST(AdapterFilters, AStepWithoutObjectsRunsAfterResetPool) {
  TwoBoxes two;
  two.pairsAfterAStep();
  for (btCollisionObject& object : two.objects) two.world.removeCollisionObject(&object);
  two.ours.resetPool(&two.dispatcher);
  EXPECT_EQ(two.pairsAfterAStep(), 0);
  EXPECT_STREQ(two.ours.error(), "");
  EXPECT_EQ(two.ours.stats().pairs, 0u) << "pairs of destroyed objects";
  for (btCollisionObject& object : two.objects) two.world.addCollisionObject(&object);
  EXPECT_EQ(two.pairsAfterAStep(), 1);
}

// A mask is changed and announced while a filter callback decides instead of masks. The change
// takes effect once the callback is removed. At the start, resetPool restarts the slots.
TEST(AdapterFilters, AnnouncementsAreKeptWhileACallbackDecides) {
  TwoBoxes two;
  for (btCollisionObject& object : two.objects) two.world.removeCollisionObject(&object);
  two.ours.resetPool(&two.dispatcher);
  for (btCollisionObject& object : two.objects) two.world.addCollisionObject(&object);
  struct All : btOverlapFilterCallback {
    bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
      return true;
    }
  } all;
  two.ours.getOverlappingPairCache()->setOverlapFilterCallback(&all);
  EXPECT_EQ(two.pairsAfterAStep(), 1);
  two.first()->m_collisionFilterMask = 0;
  two.ours.filterChanged(two.first());
  EXPECT_EQ(two.pairsAfterAStep(), 1);
  two.ours.getOverlappingPairCache()->setOverlapFilterCallback(nullptr);
  EXPECT_EQ(two.pairsAfterAStep(), 0);
}

}  // namespace

// SPDX-License-Identifier: Zlib
// Compares GpuLbvhBroadphase's pairs with those of btSimpleBroadphase and of brute force.
#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace {

using namespace twins;

TEST(Adapter, AgreesWithSimpleBroadphaseThroughAThousandRandomSteps) {
  Random random(51);
  GpuLbvhBroadphase ours;
  btSimpleBroadphase simple;
  Twins twins({&ours, &simple});
  for (int step = 0; step < 1000; ++step) {
    for (std::uint32_t i = random.below(step < 100 ? 12 : 5); i > 0; --i) twins.create(random);
    for (std::uint32_t i = random.below(30); i > 0; --i) twins.move(random);
    for (std::uint32_t i = random.below(4); i > 0; --i) twins.destroy(random);
    twins.step();
    ASSERT_EQ(pairsOf(ours), pairsOf(simple)) << "step " << step;
    if (step % 50 == 0) ASSERT_EQ(pairsOf(ours), bruteForce(twins.proxies(0))) << "step " << step;
  }
  EXPECT_GT(pairsOf(ours).size(), 20u);
  EXPECT_STREQ(ours.error(), "");
}

TEST(Adapter, FiltersChangedInPlaceTakeEffectAtTheNextStep) {
  Random random(52);
  GpuLbvhBroadphase ours;
  Twins twins({&ours});
  for (int i = 0; i < 200; ++i) twins.create(random);
  for (int step = 0; step < 30; ++step) {
    for (btBroadphaseProxy* proxy : twins.proxies(0))
      if (random.below(5) == 0) proxy->m_collisionFilterMask = static_cast<int>(random.bits());
    twins.step();
    ASSERT_EQ(pairsOf(ours), bruteForce(twins.proxies(0))) << step;
  }
}

TEST(Adapter, AFilterCallbackDecidesInsteadOfTheGroups) {
  Random random(53);
  GpuLbvhBroadphase ours;
  EvenSumsOnly filter;
  ours.getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  Twins twins({&ours});
  for (int i = 0; i < 200; ++i) twins.create(random);
  twins.step();
  PairSet expected;
  for (const btBroadphaseProxy* a : twins.proxies(0))
    for (const btBroadphaseProxy* b : twins.proxies(0))
      if (*numberOf(a) < *numberOf(b) && overlap(a, b) && (*numberOf(a) + *numberOf(b)) % 2 == 0)
        expected.insert({*numberOf(a), *numberOf(b)});
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(pairsOf(ours), expected);
}

/// Refuses pairs whose numbers sum to `remainder` modulo 3.
struct NotThisRemainder : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    return (*numberOf(a) + *numberOf(b)) % 3 != remainder;
  }
  int remainder = 0;
};

TEST(Adapter, RefilterChecksEveryPairAgain) {
  Random random(59);
  btHashedOverlappingPairCache hashed;
  btSortedOverlappingPairCache sorted;
  GpuLbvhBroadphase ours, withHashed({}, &hashed), withSorted({}, &sorted);
  NotThisRemainder filters[2];
  Twins twins({&ours, &withHashed, &withSorted});
  for (int i = 0; i < 200; ++i) twins.create(random);
  for (int step = 0; step < 40; ++step) {
    NotThisRemainder& filter = filters[step / 20];  // replaced once
    filter.remainder = static_cast<int>(random.below(3));
    if (step % 3 == 0) twins.move(random);  // in the other steps nothing moves
    PairSet expected;
    for (const btBroadphaseProxy* a : twins.proxies(0))
      for (const btBroadphaseProxy* b : twins.proxies(0))
        if (*numberOf(a) < *numberOf(b) && overlap(a, b) &&
            (*numberOf(a) + *numberOf(b)) % 3 != filter.remainder)
          expected.insert({*numberOf(a), *numberOf(b)});
    for (GpuLbvhBroadphase* broadphase : {&ours, &withHashed, &withSorted}) {
      broadphase->getOverlappingPairCache()->setOverlapFilterCallback(&filter);
      if (step != 20) broadphase->refilter();
    }
    const btBroadphasePairArray& array = ours.getOverlappingPairCache()->getOverlappingPairArray();
    for (int i = 0; i < array.size(); ++i)
      ours.getOverlappingPairCache()->getOverlappingPairArray()[i].m_internalInfo1 = &random;
    const int before = array.size();
    twins.step();
    for (GpuLbvhBroadphase* broadphase : {&ours, &withHashed, &withSorted})
      ASSERT_EQ(pairsOf(*broadphase), expected) << step;
    int kept = 0;
    for (int i = 0; i < array.size(); ++i) kept += array[i].m_internalInfo1 != nullptr;
    if (step > 0 && step != 20) EXPECT_GE(3 * kept, before) << "remaining pairs were changed";
  }
}

TEST(Adapter, RemovingAFilterCallbackAddsThePairsItRefused) {
  Random random(55);
  btHashedOverlappingPairCache hashed;
  btSortedOverlappingPairCache sorted;
  GpuLbvhBroadphase withHashed({}, &hashed), withSorted({}, &sorted);
  EvenSumsOnly filter;
  Twins twins({&withHashed, &withSorted});
  for (int i = 0; i < 200; ++i) twins.create(random);
  for (const bool filtered : {true, false, true}) {
    hashed.setOverlapFilterCallback(filtered ? &filter : nullptr);
    sorted.setOverlapFilterCallback(filtered ? &filter : nullptr);
    twins.step();
    if (filtered) continue;
    EXPECT_EQ(pairsOf(withHashed), bruteForce(twins.proxies(0)));
    EXPECT_EQ(pairsOf(withSorted), bruteForce(twins.proxies(0)));
  }
}

TEST(Adapter, AStepWithoutChangesKeepsThePairs) {
  Random random(57);
  GpuLbvhBroadphase ours;
  Twins twins({&ours});
  EvenSumsOnly filter;
  for (int i = 0; i < 150; ++i) twins.create(random);
  for (int round = 0; round < 40; ++round) {
    switch (round % 8) {
      case 1:
        twins.move(random);
        break;
      case 3:
        twins.proxies(0)[5]->m_collisionFilterMask ^= -1;
        break;
      case 5:
        twins.destroy(random);
        break;
      case 7:
        twins.create(random);
        break;
      default:
        break;
    }
    twins.step();
    ASSERT_EQ(pairsOf(ours), bruteForce(twins.proxies(0))) << round;
    if (round % 8 == 2) {
      EXPECT_EQ(ours.stats().totalMs, 0) << "nothing to do";
      EXPECT_EQ(ours.stats().added + ours.stats().removed, 0u);
      EXPECT_GT(ours.stats().pairs, 10u);
    }
  }
  ours.getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  twins.step();
  ours.getOverlappingPairCache()->setOverlapFilterCallback(nullptr);
  twins.step();
  EXPECT_EQ(pairsOf(ours), bruteForce(twins.proxies(0)));
}

TEST(Adapter, ABoxThatGrowsAtOneCornerFindsNewPairs) {
  GpuLbvhBroadphase ours;
  int number = 0;
  btBroadphaseProxy* a =
      ours.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, &number, 1, -1, nullptr);
  ours.createProxy(btVector3(2, 0, 0), btVector3(3, 1, 1), 0, &number, 1, -1, nullptr);
  ours.createProxy(btVector3(-3, 0, 0), btVector3(-2, 1, 1), 0, &number, 1, -1, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 0);
  ours.setAabb(a, btVector3(0, 0, 0), btVector3(2, 1, 1), nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
  ours.setAabb(a, btVector3(-2, 0, 0), btVector3(2, 1, 1), nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 2);
}

TEST(Adapter, PairsInTheCacheAreInCreationOrder) {
  Random random(56);
  GpuLbvhBroadphase ours;
  Twins twins({&ours});
  for (int i = 0; i < 200; ++i) twins.create(random);
  twins.step();
  const btBroadphasePairArray& array = ours.getOverlappingPairCache()->getOverlappingPairArray();
  ASSERT_GT(array.size(), 20);
  const auto key = [&](int i) {
    return std::pair(array[i].m_pProxy0->m_uniqueId, array[i].m_pProxy1->m_uniqueId);
  };
  for (int i = 1; i < array.size(); ++i) EXPECT_LT(key(i - 1), key(i));
}

// Ghost callbacks and solvers depend on the order, so it must be the same in our own cache and in
// Bullet's.
TEST(Adapter, OwnCacheEqualsBulletsHashedCacheElementForElement) {
  Random random(58);
  btHashedOverlappingPairCache hashed;
  GpuLbvhBroadphase ours, withHashed({}, &hashed);
  Twins twins({&ours, &withHashed});
  for (int step = 0; step < 300; ++step) {
    for (std::uint32_t i = random.below(5); i > 0; --i) twins.create(random);
    for (std::uint32_t i = random.below(20); i > 0; --i) twins.move(random);
    for (std::uint32_t i = random.below(4); i > 0; --i) twins.destroy(random);
    twins.step();
    const btBroadphasePairArray& pairs = ours.getOverlappingPairCache()->getOverlappingPairArray();
    ASSERT_EQ(pairs.size(), hashed.getNumOverlappingPairs());
    for (int i = 0; i < pairs.size(); ++i) {
      const btBroadphasePair& other = hashed.getOverlappingPairArray()[i];
      ASSERT_EQ(pairs[i].m_pProxy0->m_uniqueId, other.m_pProxy0->m_uniqueId) << step;
      ASSERT_EQ(pairs[i].m_pProxy1->m_uniqueId, other.m_pProxy1->m_uniqueId) << step;
    }
  }
  EXPECT_GT(hashed.getNumOverlappingPairs(), 10);
}

TEST(Adapter, WorksWithSuppliedCaches) {
  Random random(54);
  btHashedOverlappingPairCache hashed;
  btSortedOverlappingPairCache sorted;
  btNullPairCache none;
  GpuLbvhBroadphase withHashed({}, &hashed), withSorted({}, &sorted), withNone({}, &none);
  btSimpleBroadphase simple;
  EXPECT_EQ(withSorted.getOverlappingPairCache(), &sorted);
  Twins twins({&withHashed, &withSorted, &withNone, &simple});
  for (int step = 0; step < 200; ++step) {
    twins.create(random);
    for (int i = 0; i < 10; ++i) twins.move(random);
    if (step % 3 == 0) twins.destroy(random);
    twins.step();
    ASSERT_EQ(pairsOf(withHashed), pairsOf(simple)) << step;
    ASSERT_EQ(pairsOf(withSorted), pairsOf(simple)) << step;
  }
  EXPECT_GT(hashed.getNumOverlappingPairs(), 10);
}

}  // namespace

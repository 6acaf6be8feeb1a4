// GpuLbvhBroadphase as Bullet sees it: every virtual, against btSimpleBroadphase and brute force.
#include <btBulletCollisionCommon.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>

#include "GpuLbvhBroadphase.h"
#include "support.h"

namespace {

using lbvh::test::Random;
using PairSet = std::set<std::pair<int, int>>;  // of the clients' numbers

int* numberOf(const btBroadphaseProxy* proxy) { return static_cast<int*>(proxy->m_clientObject); }

PairSet pairsOf(btBroadphaseInterface& broadphase) {
  PairSet pairs;
  const btBroadphasePairArray& array =
      broadphase.getOverlappingPairCache()->getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i) {
    const int a = *numberOf(array[i].m_pProxy0), b = *numberOf(array[i].m_pProxy1);
    EXPECT_TRUE(pairs.insert({std::min(a, b), std::max(a, b)}).second) << "a pair twice";
    EXPECT_LT(array[i].m_pProxy0->m_uniqueId, array[i].m_pProxy1->m_uniqueId);
  }
  return pairs;
}

struct Box {
  btVector3 min, max;
};

Box randomBox(Random& random, float side, float size) {
  const btVector3 min(random.uniform(0, side), random.uniform(0, side), random.uniform(0, side));
  const btVector3 extent(random.uniform(0, size), random.uniform(0, size), random.uniform(0, size));
  return {min, min + extent};
}

bool overlap(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return a->m_aabbMin.x() <= b->m_aabbMax.x() && b->m_aabbMin.x() <= a->m_aabbMax.x() &&
         a->m_aabbMin.y() <= b->m_aabbMax.y() && b->m_aabbMin.y() <= a->m_aabbMax.y() &&
         a->m_aabbMin.z() <= b->m_aabbMax.z() && b->m_aabbMin.z() <= a->m_aabbMax.z();
}

bool wanted(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
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

PairSet bruteForce(const std::vector<btBroadphaseProxy*>& proxies) {
  PairSet pairs;
  for (const btBroadphaseProxy* a : proxies)
    for (const btBroadphaseProxy* b : proxies)
      if (*numberOf(a) < *numberOf(b) && overlap(a, b) && wanted(a, b))
        pairs.insert({*numberOf(a), *numberOf(b)});
  return pairs;
}

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

struct EvenSumsOnly : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    return (*numberOf(a) + *numberOf(b)) % 2 == 0;
  }
};

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

TEST(Adapter, AFilterCallbackTakenAwayLetsItsPairsIn) {
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

struct ThrowsOnce : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
    if (++calls == 3) throw std::runtime_error("the user's own");
    return true;
  }
  mutable int calls = 0;
};

TEST(Adapter, AStepInterruptedByTheUsersCallbackIsMadeUpFor) {
  GpuLbvhBroadphase ours;
  ThrowsOnce filter;
  ours.getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  int number = 0;
  for (int i = 0; i < 4; ++i)
    ours.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, &number, 1, -1, nullptr);
  EXPECT_THROW(ours.calculateOverlappingPairs(nullptr), std::runtime_error);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 6);
}

// Steps in which nothing changed are free, and stay right when something does.
TEST(Adapter, RestingStepsKeepThePairs) {
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

TEST(Adapter, ABoxThatGrowsAtOneCornerIsSeen) {
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

// Array order drives dispatch and solver (bullet-contract): that of the creation, not of the tree.
TEST(Adapter, PairsStandInTheCacheInCreationOrder) {
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

// Every manifold that the narrow phase made goes back when its pair goes.
TEST(Adapter, RemovedPairsFreeTheirAlgorithms) {
  for (const bool deferred : {false, true}) {
    btHashedOverlappingPairCache hashed;
    btSortedOverlappingPairCache sorted;
    btOverlappingPairCache* cache = &hashed;
    if (deferred) cache = &sorted;
    GpuLbvhBroadphase ours({}, cache);
    btDefaultCollisionConfiguration configuration;
    btCollisionDispatcher dispatcher(&configuration);
    btCollisionWorld world(&dispatcher, &ours, &configuration);
    btSphereShape ball(1);
    btCollisionObject balls[3];
    for (btCollisionObject& one : balls) {
      one.setCollisionShape(&ball);
      world.addCollisionObject(&one);
    }
    world.performDiscreteCollisionDetection();
    EXPECT_EQ(dispatcher.getNumManifolds(), 3);
    balls[0].getWorldTransform().setOrigin(btVector3(100, 0, 0));
    world.performDiscreteCollisionDetection();
    EXPECT_EQ(dispatcher.getNumManifolds(), 1) << "deferred " << deferred;
    world.removeCollisionObject(&balls[1]);
    EXPECT_EQ(dispatcher.getNumManifolds(), 0) << "deferred " << deferred;
    for (btCollisionObject* one : {&balls[0], &balls[2]}) world.removeCollisionObject(one);
  }
}

TEST(Adapter, ASlotReusedAcrossAFailedStepHasNoPast) {
  lbvh::Options options;
  options.maxPairs = 10;
  GpuLbvhBroadphase ours(options);
  int number = 0;
  const auto create = [&] {
    return ours.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, &number, 1, -1, nullptr);
  };
  create();
  btBroadphaseProxy* second = create();
  ours.calculateOverlappingPairs(nullptr);
  ours.destroyProxy(second, nullptr);
  std::vector<btBroadphaseProxy*> many;
  for (int i = 0; i < 20; ++i) many.push_back(create());  // the first takes second's slot
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_STRNE(ours.error(), "");
  for (std::size_t i = 1; i < many.size(); ++i) ours.destroyProxy(many[i], nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_STREQ(ours.error(), "");
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
}

TEST(Adapter, LivingPairsKeepTheirAlgorithms) {
  GpuLbvhBroadphase ours;
  int numbers[3] = {0, 1, 2};
  const auto create = [&](int i, btScalar x) {
    return ours.createProxy(btVector3(x, 0, 0), btVector3(x + 1, 1, 1), BOX_SHAPE_PROXYTYPE,
                            &numbers[i], 1, -1, nullptr);
  };
  btBroadphaseProxy *a = create(0, 0), *b = create(1, btScalar(0.5)), *c = create(2, 50);
  ours.calculateOverlappingPairs(nullptr);
  btBroadphasePair* pair = ours.getOverlappingPairCache()->findPair(a, b);
  ASSERT_NE(pair, nullptr);
  int mark = 0;
  pair->m_internalInfo1 = &mark;
  for (int step = 0; step < 5; ++step) {
    ours.setAabb(a, btVector3(btScalar(0.1 * step), 0, 0), btVector3(2, 1, 1), nullptr);
    ours.setAabb(c, btVector3(step % 2 ? 1 : 50, 0, 0), btVector3(step % 2 ? 2 : 51, 1, 1),
                 nullptr);
    ours.calculateOverlappingPairs(nullptr);
    pair = ours.getOverlappingPairCache()->findPair(a, b);
    ASSERT_NE(pair, nullptr);
    EXPECT_EQ(pair->m_internalInfo1, &mark);
  }
}

TEST(Adapter, DestroyProxyPurgesAtOnceAndReusedSlotsHaveNoPast) {
  GpuLbvhBroadphase ours;
  int numbers[2] = {0, 1};
  const btVector3 lo(0, 0, 0), hi(1, 1, 1);
  ours.createProxy(lo, hi, 0, &numbers[0], 1, -1, nullptr);
  for (int round = 0; round < 5; ++round) {
    btBroadphaseProxy* b = ours.createProxy(lo, hi, 0, &numbers[1], 1, -1, nullptr);
    ours.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 1) << round;
    ours.destroyProxy(b, nullptr);
    EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 0) << round;
    if (round % 2 == 0) ours.calculateOverlappingPairs(nullptr);
  }
}

TEST(Adapter, AddressesAreStableAlignedAndIdsSequential) {
  GpuLbvhBroadphase ours;
  int number = 0;
  std::vector<btBroadphaseProxy*> proxies;
  for (int i = 0; i < 2000; ++i) {
    proxies.push_back(ours.createProxy(btVector3(btScalar(i), 0, 0), btVector3(btScalar(i), 1, 1),
                                       0, &number, 1, -1, nullptr));
    EXPECT_EQ(proxies.back()->m_uniqueId, i + 1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(proxies.back()) % 16, 0u);
  }
  for (int i = 0; i < 2000; ++i) {
    btVector3 lo, hi;
    ours.getAabb(proxies[static_cast<std::size_t>(i)], lo, hi);
    EXPECT_EQ(lo.x(), btScalar(i));
  }
}

TEST(Adapter, ResetPoolRestartsIdsWhenEmpty) {
  GpuLbvhBroadphase ours;
  int number = 0;
  const btVector3 zero(0, 0, 0);
  btBroadphaseProxy* first = ours.createProxy(zero, zero, 0, &number, 1, -1, nullptr);
  ours.resetPool(nullptr);
  btBroadphaseProxy* second = ours.createProxy(zero, zero, 0, &number, 1, -1, nullptr);
  EXPECT_EQ(second->m_uniqueId, 2) << "not empty: no reset";
  ours.calculateOverlappingPairs(nullptr);
  ours.destroyProxy(first, nullptr);
  ours.destroyProxy(second, nullptr);
  ours.resetPool(nullptr);
  EXPECT_EQ(ours.createProxy(zero, zero, 0, &number, 1, -1, nullptr)->m_uniqueId, 1);
  ours.createProxy(zero, zero, 0, &number, 1, -1, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
}

TEST(Adapter, BroadphaseAabbCoversAllProxies) {
  GpuLbvhBroadphase ours;
  btVector3 lo(9, 9, 9), hi(9, 9, 9);
  ours.getBroadphaseAabb(lo, hi);
  EXPECT_EQ(lo, btVector3(0, 0, 0));
  EXPECT_EQ(hi, btVector3(0, 0, 0));
  int number = 0;
  ours.createProxy(btVector3(5, 6, 7), btVector3(8, 9, 10), 0, &number, 1, -1, nullptr);
  btBroadphaseProxy* far =
      ours.createProxy(btVector3(-100, 6, 7), btVector3(8, 9, 100), 0, &number, 1, -1, nullptr);
  ours.getBroadphaseAabb(lo, hi);
  EXPECT_EQ(lo, btVector3(-100, 6, 7));
  EXPECT_EQ(hi, btVector3(8, 9, 100));
  ours.destroyProxy(far, nullptr);
  ours.getBroadphaseAabb(lo, hi);
  EXPECT_EQ(lo, btVector3(5, 6, 7));
}

TEST(Adapter, WorksWithCachesHandedIn) {
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

TEST(Adapter, AStepThatFailsKeepsItsPairsAndSaysWhy) {
  lbvh::Options options;
  options.maxPairs = 10;
  GpuLbvhBroadphase ours(options);
  int number = 0;
  const btVector3 lo(0, 0, 0), hi(1, 1, 1);
  std::vector<btBroadphaseProxy*> proxies;
  for (int i = 0; i < 3; ++i)
    proxies.push_back(ours.createProxy(lo, hi, 0, &number, 1, -1, nullptr));
  ours.calculateOverlappingPairs(nullptr);
  for (int i = 0; i < 300; ++i)
    proxies.push_back(ours.createProxy(lo, hi, 0, &number, 1, -1, nullptr));
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_NE(std::string(ours.error()), "");
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 3);
  while (proxies.size() > 2) {
    ours.destroyProxy(proxies.back(), nullptr);
    proxies.pop_back();
  }
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_STREQ(ours.error(), "");
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
}

TEST(Adapter, UnavailableBackendBecomesTheHost) {
  if (lbvh::whyUnavailable(lbvh::Backend::cuda).empty()) GTEST_SKIP() << "this machine has a GPU";
  lbvh::Options options;
  options.backend = lbvh::Backend::cuda;
  options.threads = -5;
  GpuLbvhBroadphase ours(options);
  EXPECT_EQ(ours.stats().backend, "host");
  EXPECT_NE(ours.stats().reason.find("cuda"), std::string::npos) << ours.stats().reason;
}

TEST(Adapter, PrintsATableOfTheLastStep) {
  GpuLbvhBroadphase ours;
  int number = 0;
  ours.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, &number, 1, -1, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  testing::internal::CaptureStdout();
  ours.printStats();
  const std::string text = testing::internal::GetCapturedStdout();
  for (const char* word : {"host", "proxies", "pairs", "traversal", "ms"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
}

}  // namespace

// SPDX-License-Identifier: Zlib
// Tests what Bullet and its users rely on besides pairs: algorithms, proxies, failures and further
// virtual functions.
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace {

using namespace twins;

struct ThrowsOnce : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
    if (++calls == 3) throw std::runtime_error("the user's own");
    return true;
  }
  mutable int calls = 0;
};

TEST(AdapterContract, StepAfterAThrowingFilterHasAllPairs) {
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

// A manifold of the narrow phase is freed when its pair is removed.
TEST(AdapterContract, RemovedPairsFreeTheirAlgorithms) {
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

// By default btCollisionWorld sets every box in every step, even an unchanged one.
TEST(AdapterContract, SettingABoxToItsCurrentValueIsNoChange) {
  GpuLbvhBroadphase ours;
  const btVector3 lo(0, 0, 0), hi(1, 1, 1);
  btBroadphaseProxy* a = ours.createProxy(lo, hi, 0, nullptr, 1, -1, nullptr);
  ours.createProxy(lo, hi, 0, nullptr, 1, -1, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_GT(ours.stats().totalMs, 0);
  ours.setAabb(a, lo, hi, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.stats().totalMs, 0) << "no stage ran";
  ours.setAabb(a, lo, hi + hi, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_GT(ours.stats().totalMs, 0);
}

/// Sets the proxy's box, and runs a step. Returns whether the step ran its stages.
bool isChange(GpuLbvhBroadphase& ours, btBroadphaseProxy* proxy, const Box& box) {
  ours.setAabb(proxy, box.min, box.max, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  return ours.stats().totalMs > 0;
}

// Uses many proxies, so that they are in several blocks of memory.
TEST(AdapterContract, BoxesAreComparedByTheirSixValues) {
  for (const btScalar margin : {btScalar(0), btScalar(1e-3)}) {
    GpuLbvhOptions options;
    options.margin = margin;
    GpuLbvhBroadphase ours(options);
    std::vector<btBroadphaseProxy*> proxies;
    std::vector<Box> boxes;
    for (int i = 0; i < 5000; ++i) {
      boxes.push_back({btVector3(btScalar(i), 0, 1), btVector3(btScalar(i + 2), 3, 4)});
      proxies.push_back(
          ours.createProxy(boxes.back().min, boxes.back().max, 0, nullptr, 1, -1, nullptr));
    }
    ours.calculateOverlappingPairs(nullptr);
    for (std::size_t i = 0; i < proxies.size(); i += 97) {
      Box box = boxes[i];
      ASSERT_FALSE(isChange(ours, proxies[i], box)) << i;
      box.min.setW(7);
      box.max.setW(std::numeric_limits<btScalar>::quiet_NaN());
      box.min.setY(-btScalar(0));
      ASSERT_FALSE(isChange(ours, proxies[i], box)) << i << ": the same numbers";
      for (int number = 0; number < 6; ++number) {
        btScalar& x = number < 3 ? box.min[number] : box.max[number - 3];
        x += number < 3 ? btScalar(-0.25) : btScalar(0.25);
        ASSERT_TRUE(isChange(ours, proxies[i], box)) << i << ", " << number;
        ASSERT_FALSE(isChange(ours, proxies[i], box)) << i << ", " << number;
      }
      btVector3 lo, hi;
      ours.getAabb(proxies[i], lo, hi);
      EXPECT_EQ(lo.x(), box.min.x());
      EXPECT_EQ(hi.z(), box.max.z());
    }
    Box odd = boxes[5];
    odd.max.setY(std::numeric_limits<btScalar>::quiet_NaN());
    EXPECT_TRUE(isChange(ours, proxies[5], odd));
    EXPECT_TRUE(isChange(ours, proxies[5], odd)) << "a NaN is not equal to itself";
  }
}

/// Records the threads on which algorithms are freed.
struct WatchfulDispatcher : btCollisionDispatcher {
  using btCollisionDispatcher::btCollisionDispatcher;
  void freeCollisionAlgorithm(void* algorithm) override {
    threads.push_back(std::this_thread::get_id());
    btCollisionDispatcher::freeCollisionAlgorithm(algorithm);
  }
  std::vector<std::thread::id> threads;
};

// An algorithm's destructor edits the dispatcher's arrays without a lock.
TEST(AdapterContract, AlgorithmsAreFreedOnTheCallersThread) {
  lbvh::Options options;
  options.threads = 4;
  GpuLbvhBroadphase ours(options);
  btDefaultCollisionConfiguration configuration;
  WatchfulDispatcher dispatcher(&configuration);
  btCollisionWorld world(&dispatcher, &ours, &configuration);
  btSphereShape ball(1);
  std::vector<btCollisionObject> balls(2000);
  for (std::size_t i = 0; i < balls.size(); ++i) {
    balls[i].setCollisionShape(&ball);
    balls[i].getWorldTransform().setOrigin(btVector3(btScalar(i), 0, 0));
    world.addCollisionObject(&balls[i]);
  }
  world.performDiscreteCollisionDetection();
  for (std::size_t i = 0; i < balls.size(); ++i)
    balls[i].getWorldTransform().setOrigin(btVector3(btScalar(10 * i), 0, 0));
  world.performDiscreteCollisionDetection();
  EXPECT_GT(dispatcher.threads.size(), 1000u);
  for (const std::thread::id thread : dispatcher.threads)
    ASSERT_EQ(thread, std::this_thread::get_id());
  for (btCollisionObject& one : balls) world.removeCollisionObject(&one);
}

/// Looks up the pair in the cache while the cache adds or removes it.
struct AskingGhostCallback : btOverlappingPairCallback {
  btBroadphasePair* addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override {
    EXPECT_LT(a->m_uniqueId, b->m_uniqueId);
    EXPECT_EQ(cache->findPair(a, b), nullptr) << "not in the cache yet";
    ++added;
    return nullptr;
  }
  void* removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b, btDispatcher*) override {
    EXPECT_NE(cache->findPair(a, b), nullptr) << "still in the cache";
    ++removed;
    return nullptr;
  }
  void removeOverlappingPairsContainingProxy(btBroadphaseProxy*, btDispatcher*) override {}
  btOverlappingPairCache* cache = nullptr;
  int added = 0, removed = 0;
};

// Unlike our own cache, Bullet's hashed cache calls back while the pair is in its array but not in
// its hash table.
TEST(AdapterContract, AGhostCallbackMayReadTheCache) {
  GpuLbvhBroadphase ours;
  AskingGhostCallback callback;
  callback.cache = ours.getOverlappingPairCache();
  callback.cache->setInternalGhostPairCallback(&callback);
  std::vector<btBroadphaseProxy*> proxies;
  for (int i = 0; i < 30; ++i)
    proxies.push_back(
        ours.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, nullptr, 1, -1, nullptr));
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(callback.added, 30 * 29 / 2);
  for (int i = 0; i < 10; ++i)
    ours.setAabb(proxies[static_cast<std::size_t>(3 * i)], btVector3(5, 5, 5), btVector3(6, 6, 6),
                 nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(callback.removed, 10 * 20);
  for (btBroadphaseProxy* proxy : proxies) ours.destroyProxy(proxy, nullptr);
  EXPECT_EQ(callback.removed, callback.added);
}

// The search of a step uses the masks from before the callback, so the step must check them again.
TEST(AdapterContract, AGroupThatACallbackChangesCountsInTheSameStep) {
  struct ChangesAMask : btOverlappingPairCallback {
    btBroadphasePair* addOverlappingPair(btBroadphaseProxy*, btBroadphaseProxy*) override {
      return nullptr;
    }
    void* removeOverlappingPair(btBroadphaseProxy*, btBroadphaseProxy*, btDispatcher*) override {
      proxy->m_collisionFilterMask = 0;
      return nullptr;
    }
    void removeOverlappingPairsContainingProxy(btBroadphaseProxy*, btDispatcher*) override {}
    btBroadphaseProxy* proxy = nullptr;
  } callback;
  GpuLbvhBroadphase ours;
  ours.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  btBroadphaseProxy* proxies[4];
  for (int i = 0; i < 4; ++i) {
    const btScalar x(i < 2 ? 0 : 5 * i);
    proxies[i] =
        ours.createProxy(btVector3(x, 0, 0), btVector3(x + 1, 1, 1), 0, nullptr, 1, -1, nullptr);
  }
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
  callback.proxy = proxies[3];
  ours.setAabb(proxies[1], btVector3(10, 0, 0), btVector3(16, 1, 1), nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 1) << "not with the fourth";
}

TEST(AdapterContract, ASlotReusedAcrossAFailedStepHasOnlyNewPairs) {
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
  for (int i = 0; i < 20; ++i) many.push_back(create());  // many[0] reuses the slot
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_STRNE(ours.error(), "");
  for (std::size_t i = 1; i < many.size(); ++i) ours.destroyProxy(many[i], nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_STREQ(ours.error(), "");
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
}

TEST(AdapterContract, LivingPairsKeepTheirAlgorithms) {
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

TEST(AdapterContract, DestroyProxyPurgesAtOnceAndReusedSlotsHaveOnlyNewPairs) {
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

TEST(AdapterContract, AddressesAreStableAlignedAndIdsSequential) {
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

TEST(AdapterContract, ResetPoolRestartsIdsWhenEmpty) {
  GpuLbvhBroadphase ours;
  int number = 0;
  const btVector3 zero(0, 0, 0);
  btBroadphaseProxy* first = ours.createProxy(zero, zero, 0, &number, 1, -1, nullptr);
  ours.resetPool(nullptr);
  btBroadphaseProxy* second = ours.createProxy(zero, zero, 0, &number, 1, -1, nullptr);
  EXPECT_EQ(second->m_uniqueId, 2) << "no reset while there are proxies";
  ours.calculateOverlappingPairs(nullptr);
  ours.destroyProxy(first, nullptr);
  ours.destroyProxy(second, nullptr);
  ours.resetPool(nullptr);
  EXPECT_EQ(ours.createProxy(zero, zero, 0, &number, 1, -1, nullptr)->m_uniqueId, 1);
  ours.createProxy(zero, zero, 0, &number, 1, -1, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
}

TEST(AdapterContract, BroadphaseAabbCoversAllProxies) {
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

TEST(AdapterContract, AStepThatFailsKeepsItsPairsAndSaysWhy) {
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
  testing::internal::CaptureStderr();
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "GpuLbvhBroadphase: more than 10 overlapping pairs (Options::maxPairs). Until there are "
      "fewer, new contacts are missing. Look for objects that were all created in one place, "
      "or raise maxPairs\n");
  testing::internal::CaptureStderr();
  ours.setAabb(proxies[0], lo, hi * 2, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "said once";
  EXPECT_NE(std::string(ours.error()), "");
  EXPECT_EQ(ours.errorCode(), GpuLbvhError::tooManyPairs);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 3);
  while (proxies.size() > 2) {
    ours.destroyProxy(proxies.back(), nullptr);
    proxies.pop_back();
  }
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_STREQ(ours.error(), "");
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
}

TEST(AdapterContract, UnavailableBackendFallsBackToTheHost) {
  if (lbvh::whyUnavailable(lbvh::Backend::cuda).empty()) GTEST_SKIP() << "this machine has a GPU";
  lbvh::Options options;
  options.backend = lbvh::Backend::cuda;
  options.threads = -5;
  GpuLbvhBroadphase ours(options);
  EXPECT_EQ(ours.stats().backend, "host");
  EXPECT_NE(ours.stats().reason.find("cuda"), std::string::npos) << ours.stats().reason;
}

GPULBVH_BEGIN_OLD_NAMES
TEST(AdapterContract, UnavailableInstructionsFallBackToTheDefault) {
  lbvh::Options options;
  const std::string usual = GpuLbvhBroadphase(options).stats().instructions;
  options.instructions = static_cast<lbvh::InstructionSet>(99);
  ASSERT_NE(lbvh::whyUnavailable(options.instructions), "");
  EXPECT_EQ(GpuLbvhBroadphase(options).stats().instructions, usual);
  options.instructions = lbvh::InstructionSet::baseline;
  EXPECT_EQ(GpuLbvhBroadphase(options).stats().instructions, "baseline");
}
GPULBVH_END_OLD_NAMES

TEST(AdapterContract, PrintsATableOfTheLastStep) {
  GpuLbvhBroadphase ours;
  int number = 0;
  ours.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, &number, 1, -1, nullptr);
  ours.calculateOverlappingPairs(nullptr);
  testing::internal::CaptureStdout();
  ours.printStats();
  const std::string text = testing::internal::GetCapturedStdout();
  for (const char* word : {"host", "proxies", "pairs", "traversal", "ms"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
  EXPECT_NE(text.find("traversal                         -\n"), std::string::npos) << text;
#if defined(GPULBVH_CHECKED)
  EXPECT_NE(text.find("checked build"), std::string::npos) << text;
#else
  EXPECT_EQ(text.find("checked build"), std::string::npos) << text;
#endif
}

}  // namespace

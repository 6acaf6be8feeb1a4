// SPDX-License-Identifier: Zlib
// Tests what callbacks may do (docs/contract.md), with every kind of pair cache. Filters, query
// callbacks and callbacks of processAllOverlappingPairs create, move and destroy objects.
#include "meddlers.h"

namespace {

using namespace twins;

const Box kUnit{{0, 0, 0}, {1, 1, 1}}, kFar{{50, 50, 50}, {51, 51, 51}};

class EveryCache : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    GpuLbvhOptions options;
    if (GetParam() == std::string("hashed")) m_handedIn = &m_hashed;
    if (GetParam() == std::string("sorted")) m_handedIn = &m_sorted;
    broadphase = std::make_unique<GpuLbvhBroadphase>(options, m_handedIn);
    objects = std::make_unique<Objects>(*broadphase);
    cache().setOverlapFilterCallback(&filter);
  }
  btOverlappingPairCache& cache() { return *broadphase->getOverlappingPairCache(); }
  void step() { broadphase->calculateOverlappingPairs(nullptr); }
  void stepUndisturbed() {
    filter.meddle = nullptr;
    step();
    ASSERT_EQ(idPairsOf(cache()), objects->bruteForce());
    ASSERT_STREQ(broadphase->error(), "");
  }

  Meddler filter;
  std::unique_ptr<GpuLbvhBroadphase> broadphase;
  std::unique_ptr<Objects> objects;

 private:
  btHashedOverlappingPairCache m_hashed;
  btSortedOverlappingPairCache m_sorted;
  btOverlappingPairCache* m_handedIn = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Callbacks, EveryCache, testing::Values("own", "hashed", "sorted"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EveryCache, AFilterMayDestroyOneOfItsTwoProxies) {
  for (int i = 0; i < 4; ++i) objects->create(kUnit);
  filter.meddle = [&](btBroadphaseProxy*, btBroadphaseProxy* b) {
    if (filter.questions == 1) objects->destroy(b);
  };
  step();
  objects->expectNoDead();
  EXPECT_EQ(cache().getNumOverlappingPairs(), 3);
  stepUndisturbed();
}

TEST_P(EveryCache, ASlotThatAFilterFreesMayBeReusedAtOnce) {
  for (int i = 0; i < 6; ++i) objects->create(kUnit);
  filter.meddle = [&](btBroadphaseProxy*, btBroadphaseProxy* b) {
    if (filter.questions != 2) return;
    objects->destroy(b);
    objects->create(kFar);  // reuses the slot
    objects->create(kUnit);
  };
  step();
  objects->expectNoDead();
  EXPECT_EQ(cache().getNumOverlappingPairs(), 10) << "pairs of the first five, none of the new";
  stepUndisturbed();
}

TEST_P(EveryCache, AFilterMayDestroyProxiesDuringRefilter) {
  Random random(81);
  for (int i = 0; i < 40; ++i) objects->create(randomBox(random, 6, 3));
  step();
  const int questions = filter.questions;
  broadphase->refilter();
  filter.meddle = [&](btBroadphaseProxy* a, btBroadphaseProxy*) {
    if (filter.questions % 7 == 0) objects->destroy(a);
  };
  step();
  EXPECT_GT(filter.questions, questions + 10);
  objects->expectNoDead();
  stepUndisturbed();
}

// Each call of the filter changes something at random. The next step, which no callback disturbs,
// has exactly the overlapping pairs.
TEST_P(EveryCache, AFilterMayChangeAnythingInAnyStep) {
  Random random(82);
  for (int i = 0; i < 60; ++i) objects->create(randomBox(random, 8, 3));
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    objects->moveAny(10, random, 8, 3);
    filter.meddle = [&](btBroadphaseProxy* a, btBroadphaseProxy*) {
      const Box box = randomBox(random, 8, 3);
      switch (random.below(24)) {
        case 0:
          if (objects->living.size() > 30) objects->destroy(a);
          break;
        case 1:
          if (objects->living.size() > 30) objects->destroy(objects->any(random));
          break;
        case 2:
        case 3:
          if (objects->living.size() < 120) objects->create(box);
          break;
        case 4:
          broadphase->setAabb(objects->any(random), box.min, box.max, nullptr);
          break;
        case 5:
          objects->any(random)->m_collisionFilterGroup = 1 << random.below(3);
          break;
        case 6:
          broadphase->refilter();
          break;
        default:
          break;
      }
    };
    if (round % 5 == 0) broadphase->refilter();
    step();
    objects->expectNoDead();
    for (btBroadphaseProxy* proxy : objects->living) proxy->m_collisionFilterGroup = 1;
    stepUndisturbed();
    if (HasFailure()) return;
  }
  EXPECT_GT(filter.questions, 5000);
}

/// A filter that may also refuse all pairs.
struct Refuser : Meddler {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    return Meddler::needBroadphaseCollision(a, b) && !refuses;
  }
  bool refuses = false;
};

// The filter is called again for pairs that it refused, and changes the broad phase during these
// calls. None of these pairs is forgotten.
TEST_P(EveryCache, AFilterThatIsAskedAgainMayChangeAnything) {
  Random random(88);
  Refuser refuser;
  cache().setOverlapFilterCallback(&refuser);
  for (int i = 0; i < 60; ++i) objects->create(randomBox(random, 8, 3));
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    refuser.meddle = [&](btBroadphaseProxy* a, btBroadphaseProxy*) {
      const Box box = randomBox(random, 8, 3);
      const std::uint32_t what = random.below(32);
      if (what == 0 && objects->living.size() > 30) objects->destroy(a);
      if (what == 1 && objects->living.size() > 30) objects->destroy(objects->any(random));
      if (what < 4 && objects->living.size() < 90) objects->create(box);
      if (what == 4) broadphase->setAabb(objects->any(random), box.min, box.max, nullptr);
      if (what == 5) cache().cleanProxyFromPairs(objects->any(random), nullptr);
      refuser.refuses = what % 2 == 0;
    };
    for (int step = 0; step < 4; ++step) {
      objects->moveAny(10, random, 8, 3);
      broadphase->calculateOverlappingPairs(nullptr);
      objects->expectNoDead();
    }
    refuser.meddle = nullptr;
    refuser.refuses = false;
    for (btBroadphaseProxy* proxy : objects->living)
      broadphase->setAabb(proxy, proxy->m_aabbMin - btVector3(1, 0, 0), proxy->m_aabbMax, nullptr);
    step();
    ASSERT_EQ(idPairsOf(cache()), objects->bruteForce());
  }
  EXPECT_GT(refuser.questions, 5000);
}

// An exception from the filter can end the step at any point. The next step is complete.
TEST_P(EveryCache, StepAfterAThrowingFilterHasAllPairs) {
  Random random(83);
  for (int i = 0; i < 60; ++i) objects->create(randomBox(random, 6, 3));
  int left = 0, broken = 0;
  for (int round = 0; round < 60; ++round) {
    objects->moveAny(20, random, 6, 3);
    if (round % 3 == 0) broadphase->refilter();
    left = round % 12;
    filter.meddle = [&left](btBroadphaseProxy*, btBroadphaseProxy*) {
      if (--left < 0) throw 1;
    };
    try {
      step();
    } catch (int) {
      ++broken;
    }
    stepUndisturbed();
    if (HasFailure()) return;
  }
  EXPECT_GT(broken, 30);
}

TEST_P(EveryCache, AStepWithinAStepDoesNothing) {
  for (int i = 0; i < 3; ++i) objects->create(kUnit);
  filter.meddle = [&](btBroadphaseProxy*, btBroadphaseProxy*) { step(); };
  EXPECT_DEBUG_DEATH(step(), "within a callback");
#if defined(NDEBUG)
  EXPECT_EQ(cache().getNumOverlappingPairs(), 3);
  EXPECT_EQ(broadphase->errorCode(), GpuLbvhError::withinCallback);
  EXPECT_STREQ(broadphase->error(), "calculateOverlappingPairs within a callback does nothing");
#endif
}

TEST_P(EveryCache, ProcessingPairsMayDestroyProxies) {
  struct DestroysAll : btOverlapCallback {
    explicit DestroysAll(Objects& o) : all(o) {}
    bool processOverlap(btBroadphasePair& pair) override {
      all.destroy(pair.m_pProxy1);
      all.create(kUnit);  // reuses the slot
      return ++count % 2 == 0;
    }
    Objects& all;
    int count = 0;
  } callback(*objects);
  for (int i = 0; i < 12; ++i) objects->create(kUnit);
  step();
  cache().processAllOverlappingPairs(&callback, nullptr);
  EXPECT_GT(callback.count, 5);
  objects->expectNoDead();
}

/// A query callback that changes the broad phase which is being searched.
struct Visitor : btBroadphaseAabbCallback {
  bool process(const btBroadphaseProxy* proxy) override {
    EXPECT_TRUE(objects.isLiving(proxy)) << "a dead proxy";
    EXPECT_TRUE(seen.insert(proxy->m_uniqueId).second) << "twice";
    if (change) change(const_cast<btBroadphaseProxy*>(proxy));
    return true;
  }
  explicit Visitor(Objects& o) : objects(o) {}
  Objects& objects;
  std::set<int> seen;
  std::function<void(btBroadphaseProxy*)> change;
};

TEST_P(EveryCache, AQueryCallbackMayChangeAnythingAndQueryAgain) {
  Random random(84);
  int visits = 0;
  for (int i = 0; i < 200; ++i) objects->create(randomBox(random, 8, 2));
  objects->create({btVector3(-1, -1, -1) * 1e18f, btVector3(1, 1, 1) * 1e18f});
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    if (round % 2 == 0) step();  // without a step the query packs all boxes, or tests each of them
    Visitor visitor(*objects);
    visitor.change = [&](btBroadphaseProxy* proxy) {
      ++visits;
      const Box box = randomBox(random, 8, 2);
      const std::uint32_t what = random.below(8);
      if (what == 0) broadphase->setAabb(proxy, box.min, box.max, nullptr);
      if (what == 1 && objects->living.size() > 100) objects->destroy(objects->any(random));
      if (what == 2) objects->create(box);  // sometimes reallocates the array of boxes
      if (what == 3) objects->moveAny(20, random, 8, 2);
      if (what == 4) {
        Visitor within(*objects);
        broadphase->aabbTest({2, 2, 2}, {3, 3, 3}, within);
      }
    };
    broadphase->aabbTest({0, 0, 0}, {5, 5, 5}, visitor);

    Visitor after(*objects);
    broadphase->aabbTest({1, 1, 1}, {4, 4, 4}, after);
    std::set<int> expected;
    for (const btBroadphaseProxy* proxy : objects->living)
      if (TestAabbAgainstAabb2({1, 1, 1}, {4, 4, 4}, proxy->m_aabbMin, proxy->m_aabbMax))
        expected.insert(proxy->m_uniqueId);
    ASSERT_EQ(after.seen, expected);
  }
  EXPECT_GT(visits, 2000);
}

TEST_P(EveryCache, AStepWithinAQueryDoesNothing) {
  for (int i = 0; i < 3; ++i) objects->create(kUnit);
  Visitor visitor(*objects);
  visitor.change = [&](btBroadphaseProxy*) { step(); };
  EXPECT_DEBUG_DEATH(broadphase->aabbTest({0, 0, 0}, {1, 1, 1}, visitor), "within a callback");
  EXPECT_EQ(cache().getNumOverlappingPairs(), 0);
}

}  // namespace

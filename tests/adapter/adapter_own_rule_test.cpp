// SPDX-License-Identifier: Zlib
// Tests pair caches whose class the program defines. They may have a rule of their own, and get
// only the calls that btDbvtBroadphase makes.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include <memory>
#include <string>
#include <tuple>

#include "GpuLbvhBroadphase.h"
#include "no_algorithm.h"
#include "strangers_caches.h"
#include "twins.h"

namespace {

using namespace twins;

/// An algorithm that counts its instances.
struct Algorithm : NoAlgorithm {
  Algorithm() { ++alive; }
  ~Algorithm() override { --alive; }
  static inline int alive = 0;
};

enum class Kind { derived, wrapped, silent };

std::string nameOf(Kind kind, bool isDeferred) {
  const std::string names[] = {"derived", "wrapped", "silent"};
  return names[static_cast<int>(kind)] + (isDeferred ? "_deferred" : "");
}

/// A pair cache whose class the library does not know.
class Stranger {
 public:
  Stranger(Kind kind, bool isDeferred) {
    m_inner = strangers::makeDerived(isDeferred, talk);
    if (kind != Kind::derived) m_outer = strangers::wrap(*m_inner, talk);
    talk.returnsNull = kind == Kind::silent;
  }
  btOverlappingPairCache& outer() { return m_outer ? *m_outer : *m_inner; }
  /// The cache that has the pairs. Direct calls to it are not counted.
  btOverlappingPairCache& inner() { return *m_inner; }

  strangers::Talk talk;

 private:
  std::unique_ptr<btOverlappingPairCache> m_inner, m_outer;
};

class OwnRule : public testing::TestWithParam<std::tuple<Kind, bool>> {
 protected:
  OwnRule() : stranger(std::get<0>(GetParam()), std::get<1>(GetParam())) {}

  static bool isDeferred() { return std::get<1>(GetParam()); }

  Stranger stranger;
};

using OwnRuleOfAWrapper = OwnRule;

const auto kName = [](const testing::TestParamInfo<std::tuple<Kind, bool>>& info) {
  return nameOf(std::get<0>(info.param), std::get<1>(info.param));
};
INSTANTIATE_TEST_SUITE_P(
    EveryStranger, OwnRule,
    testing::Combine(testing::Values(Kind::derived, Kind::wrapped, Kind::silent), testing::Bool()),
    kName);
INSTANTIATE_TEST_SUITE_P(EveryStranger, OwnRuleOfAWrapper,
                         testing::Combine(testing::Values(Kind::wrapped, Kind::silent),
                                          testing::Bool()),
                         kName);

const btVector3 kLow(0, 0, 0), kHigh(1, 1, 1);

// The ball's mask contains the floor's group, but the floor's mask is 0.
TEST_P(OwnRule, DecidesAboutPairsThatGroupAndMaskRefuse) {
  Stranger dbvts(std::get<0>(GetParam()), isDeferred());
  GpuLbvhBroadphase ours({}, &stranger.outer());
  btDbvtBroadphase dbvt(&dbvts.outer());
  for (btBroadphaseInterface* one :
       {static_cast<btBroadphaseInterface*>(&dbvt), static_cast<btBroadphaseInterface*>(&ours)}) {
    Stranger& its = one == &ours ? stranger : dbvts;
    btBroadphaseProxy* floor = one->createProxy(kLow, kHigh, 0, nullptr, 2, 0, nullptr);
    btBroadphaseProxy* ball = one->createProxy(kLow, kHigh, 0, nullptr, 1, 2, nullptr);
    btBroadphaseProxy* star = one->createProxy(kLow, kHigh, 0, nullptr, 4, 4, nullptr);
    one->calculateOverlappingPairs(nullptr);
    EXPECT_EQ(its.inner().getNumOverlappingPairs(), 1);
    one->setAabb(ball, kHigh * 5, kHigh * 6, nullptr);
    one->calculateOverlappingPairs(nullptr);
    EXPECT_EQ(its.inner().getNumOverlappingPairs(), 0);
    for (btBroadphaseProxy* proxy : {floor, ball, star}) one->destroyProxy(proxy, nullptr);
    EXPECT_EQ(its.talk.others + its.talk.questions, 0);
  }
}

/// Objects in a broad phase with a Stranger's cache, and brute force with that cache's rule.
class Crowd {
 public:
  Crowd(GpuLbvhBroadphase& broadphase, Stranger& stranger)
      : m_broadphase(broadphase), m_stranger(stranger) {}

  void act(Random& random) {
    const std::uint32_t what = random.below(20);
    if (what < 6 && m_proxies.size() < 60) return create(random);
    if (m_proxies.empty()) return;
    if (what < 15) {
      const Box box = randomBox(random, 8, 2);
      return m_broadphase.setAabb(any(random), box.min, box.max, nullptr);
    }
    if (what == 15) return destroy(random, 1);
    if (what == 16) return destroy(random, random.below(8));
    step(random.below(3) == 0 ? nullptr : &m_dispatcher);
  }
  void step(btDispatcher* dispatcher) {
    m_broadphase.calculateOverlappingPairs(dispatcher);
    EXPECT_STREQ(m_broadphase.error(), "");
    check();
    btBroadphasePairArray& pairs = m_stranger.inner().getOverlappingPairArray();
    for (int i = 0; i < pairs.size(); i += 2)
      if (pairs[i].m_algorithm == nullptr)
        pairs[i].m_algorithm =
            new (m_dispatcher.allocateCollisionAlgorithm(sizeof(Algorithm))) Algorithm;
  }
  void finish() {
    for (btBroadphaseProxy* proxy : m_proxies) m_broadphase.destroyProxy(proxy, nullptr);
    m_broadphase.calculateOverlappingPairs(&m_dispatcher);
    EXPECT_EQ(m_stranger.inner().getNumOverlappingPairs(), 0);
    EXPECT_EQ(Algorithm::alive, 0);
  }
  std::size_t pairs() const { return m_pairs; }
  btDispatcher* dispatcher() { return &m_dispatcher; }

 private:
  btBroadphaseProxy* any(Random& random) {
    return m_proxies[random.below(static_cast<std::uint32_t>(m_proxies.size()))];
  }
  void create(Random& random) {
    const Box box = randomBox(random, 8, 2);
    m_proxies.push_back(m_broadphase.createProxy(box.min, box.max, 0, nullptr, 1 << random.below(4),
                                                 static_cast<int>(random.below(16)), nullptr));
  }
  void destroy(Random& random, std::uint32_t count) {
    std::vector<btBroadphaseProxy*> gone;
    for (; count > 0 && !m_proxies.empty(); --count) {
      std::swap(m_proxies[random.below(static_cast<std::uint32_t>(m_proxies.size()))],
                m_proxies.back());
      gone.push_back(m_proxies.back());
      m_proxies.pop_back();
    }
    m_broadphase.destroyProxies(gone.data(), static_cast<int>(gone.size()),
                                random.below(2) == 0 ? nullptr : &m_dispatcher);
  }
  void check() {
    std::set<std::pair<int, int>> expected, found;
    for (const btBroadphaseProxy* a : m_proxies)
      for (const btBroadphaseProxy* b : m_proxies)
        if (a->m_uniqueId < b->m_uniqueId && overlap(a, b) && !m_stranger.talk.isShut &&
            strangers::accepts(a, b))
          expected.insert({a->m_uniqueId, b->m_uniqueId});
    const btBroadphasePairArray& pairs = m_stranger.inner().getOverlappingPairArray();
    for (int i = 0; i < pairs.size(); ++i)
      found.insert({pairs[i].m_pProxy0->m_uniqueId, pairs[i].m_pProxy1->m_uniqueId});
    EXPECT_EQ(found, expected);
    EXPECT_EQ(static_cast<int>(found.size()), pairs.size()) << "a pair is there twice";
    m_pairs += found.size();
  }

  GpuLbvhBroadphase& m_broadphase;
  Stranger& m_stranger;
  btDefaultCollisionConfiguration m_configuration;
  btCollisionDispatcher m_dispatcher{&m_configuration};
  std::vector<btBroadphaseProxy*> m_proxies;
  std::size_t m_pairs = 0;
};

TEST_P(OwnRule, HoldsThroughRandomCallsWithoutACallThatDbvtDoesNotMake) {
  Random random(45);
  GpuLbvhOptions options;
  options.cacheHasGhosts = false;
  GpuLbvhBroadphase broadphase(options, &stranger.outer());
  Crowd crowd(broadphase, stranger);
  for (int call = 0; call < 8000 && !HasFailure(); ++call) {
    SCOPED_TRACE(call);
    crowd.act(random);
  }
  EXPECT_GT(crowd.pairs(), 10000u);
  crowd.finish();
  EXPECT_EQ(stranger.talk.others, 0);
  EXPECT_EQ(stranger.talk.questions, 0);
}

// An exception from a cache reaches the caller of the step, and the next step does the rest.
TEST_P(OwnRuleOfAWrapper, MayThrow) {
  Random random(46);
  GpuLbvhOptions options;
  options.cacheHasGhosts = false;
  GpuLbvhBroadphase broadphase(options, &stranger.outer());
  Crowd crowd(broadphase, stranger);
  int thrown = 0;
  for (int call = 0; call < 4000 && !HasFailure(); ++call) {
    SCOPED_TRACE(call);
    stranger.talk.addsLeft = static_cast<int>(1 + random.below(20));
    try {
      crowd.act(random);
    } catch (const strangers::Thrown&) {
      ++thrown;
      stranger.talk.addsLeft = 0;
      crowd.step(crowd.dispatcher());
    }
  }
  EXPECT_GT(thrown, 50);
  crowd.finish();
  EXPECT_EQ(stranger.talk.others, 0);
  EXPECT_EQ(stranger.talk.questions, 0);
}

// A box has left a ghost before the step, and the step is interrupted before it removes their pair.
TEST_P(OwnRuleOfAWrapper, MayThrowWhilePairsOfGhostsAreConfirmed) {
  GpuLbvhBroadphase broadphase(&stranger.outer());
  btGhostObject ghost;
  btCollisionObject stays, leaves;
  std::vector<btBroadphaseProxy*> proxies;
  for (btCollisionObject* object : {static_cast<btCollisionObject*>(&ghost), &stays, &leaves})
    proxies.push_back(broadphase.createProxy(kLow, kHigh, 0, object, 1, 1, nullptr));
  broadphase.setAabb(proxies[2], kHigh * 5, kHigh * 6, nullptr);
  stranger.talk.addsLeft = 2;  // the step adds one pair, and then confirms it
  bool hasThrown = false;
  try {
    broadphase.calculateOverlappingPairs(nullptr);
  } catch (const strangers::Thrown&) {
    hasThrown = true;
  }
  EXPECT_EQ(hasThrown, std::get<0>(GetParam()) == Kind::wrapped && !isDeferred());
  stranger.talk.addsLeft = 0;
  broadphase.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(stranger.inner().getNumOverlappingPairs(), 1);
  for (btBroadphaseProxy* proxy : proxies) broadphase.destroyProxy(proxy, nullptr);
  EXPECT_EQ(stranger.talk.others + stranger.talk.questions, 0);
}

// A refused pair is offered again when one of its boxes changes. After refilter() all refused
// pairs are offered again, and the cache is asked again about the pairs that it has.
TEST_P(OwnRule, MayChangeItsMind) {
  GpuLbvhBroadphase broadphase({}, &stranger.outer());
  btCollisionObject objects[4];
  btBroadphaseProxy* proxies[4];
  for (int i = 0; i < 4; ++i)
    proxies[i] = broadphase.createProxy(kLow, kHigh, 0, &objects[i], 1, 1, nullptr);
  const auto pairsAfterAStep = [&] {
    broadphase.calculateOverlappingPairs(nullptr);
    return stranger.inner().getNumOverlappingPairs();
  };
  stranger.talk.isShut = true;
  EXPECT_EQ(pairsAfterAStep(), 0);
  stranger.talk.isShut = false;
  EXPECT_EQ(pairsAfterAStep(), 0) << "nothing has moved";
  broadphase.setAabb(proxies[0], kLow, kHigh * 2, nullptr);
  EXPECT_EQ(pairsAfterAStep(), 3);
  broadphase.refilter();
  EXPECT_EQ(pairsAfterAStep(), 6);
  stranger.talk.isShut = true;
  EXPECT_EQ(pairsAfterAStep(), 6);
  EXPECT_EQ(stranger.talk.questions > 0, std::get<0>(GetParam()) != Kind::derived);
  broadphase.refilter();
  EXPECT_EQ(pairsAfterAStep(), 0);
  EXPECT_EQ(stranger.talk.others, 0);
  for (btBroadphaseProxy* proxy : proxies) broadphase.destroyProxy(proxy, nullptr);
}

}  // namespace

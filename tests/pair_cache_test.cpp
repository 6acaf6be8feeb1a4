// The own pair cache beside btHashedOverlappingPairCache: the same calls, the same array, the same
// callbacks; and what it does better.
#include "pair_cache.h"

#include <btBulletCollisionCommon.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "no_algorithm.h"
#include "support.h"

namespace {

using lbvh::test::Random;

/// An algorithm that only exists, with a number.
struct NumberedAlgorithm : NoAlgorithm {
  int number = 0;
};

/// Hands algorithms out, and writes down which come back.
class Dispatcher : public btCollisionDispatcher {
 public:
  Dispatcher(btCollisionConfiguration& configuration, std::string& log)
      : btCollisionDispatcher(&configuration), log_(log) {}
  ~Dispatcher() override {
    for (const auto& one : numbers_) delete static_cast<NumberedAlgorithm*>(one.first);
  }

  NumberedAlgorithm* make() {
    auto* algorithm = new NumberedAlgorithm;
    algorithm->number = ++made_;
    numbers_[algorithm] = made_;
    return algorithm;
  }
  void freeCollisionAlgorithm(void* algorithm) override {
    log_.append("f").append(std::to_string(numbers_.at(algorithm)));
    numbers_.erase(algorithm);
    ::operator delete(algorithm);
  }
  std::size_t living() const { return numbers_.size(); }

 private:
  std::map<void*, int> numbers_;  // of those that live
  int made_ = 0;
  std::string& log_;
};

struct Ghost : btOverlappingPairCallback {
  explicit Ghost(std::string& l) : log(l) {}
  void write(const char* what, const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
    log.append(what).append(std::to_string(a->m_uniqueId)).append("-");
    log.append(std::to_string(b->m_uniqueId));
  }
  btBroadphasePair* addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override {
    write("+", a, b);
    return nullptr;
  }
  void* removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b, btDispatcher*) override {
    write("-", a, b);
    return nullptr;
  }
  void removeOverlappingPairsContainingProxy(btBroadphaseProxy*, btDispatcher*) override {}
  std::string& log;
};

/// Removes every third pair that it meets, and writes down all.
struct EveryThird : btOverlapCallback {
  explicit EveryThird(std::string& l) : log(l) {}
  bool processOverlap(btBroadphasePair& pair) override {
    log.append("p").append(std::to_string(pair.m_pProxy0->m_uniqueId)).append("-");
    log.append(std::to_string(pair.m_pProxy1->m_uniqueId));
    return ++count % 3 == 0;
  }
  std::string& log;
  int count = 0;
};

/// One cache with all that watches it.
struct Side {
  Side(btOverlappingPairCache& c, bool hasGhost)
      : cache(c), dispatcher(configuration, log), ghost(log) {
    if (hasGhost) cache.setInternalGhostPairCallback(&ghost);
  }
  btOverlappingPairCache& cache;
  std::string log;
  btDefaultCollisionConfiguration configuration;
  Dispatcher dispatcher;
  Ghost ghost;

  std::string contents() {
    std::string text;
    const btBroadphasePairArray& pairs = cache.getOverlappingPairArray();
    for (int i = 0; i < pairs.size(); ++i) {
      text.append(std::to_string(pairs[i].m_pProxy0->m_uniqueId)).append("-");
      text.append(std::to_string(pairs[i].m_pProxy1->m_uniqueId));
      if (pairs[i].m_algorithm != nullptr)
        text.append("a").append(
            std::to_string(static_cast<NumberedAlgorithm*>(pairs[i].m_algorithm)->number));
      text.append(" ");
    }
    return text;
  }
};

std::vector<btBroadphaseProxy> makeProxies(int n, int everyone = -1) {
  std::vector<btBroadphaseProxy> proxies(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    btBroadphaseProxy& proxy = proxies[static_cast<std::size_t>(i)];
    proxy.m_uniqueId = (i * 37) % n + 1;  // so that addresses and ids differ in order
    proxy.m_collisionFilterGroup = 1 << (i % 3);
    proxy.m_collisionFilterMask = everyone;
  }
  return proxies;
}

TEST(PairCache, IsElementForElementBulletsHashedCache) {
  for (const bool hasGhost : {false, true}) {
    Random random(61);
    std::vector<btBroadphaseProxy> proxies = makeProxies(60);
    for (std::size_t i = 0; i < proxies.size(); i += 7) proxies[i].m_collisionFilterMask = 3;
    GpuLbvhPairCache own;
    btHashedOverlappingPairCache hashed;
    Side sides[] = {Side(own, hasGhost), Side(hashed, hasGhost)};
    const auto pick = [&] { return &proxies[random.below(60)]; };
    for (int call = 0; call < 20000; ++call) {
      btBroadphaseProxy *a = pick(), *b = pick();
      const std::uint32_t what = random.below(100);
      const bool isFull = own.getNumOverlappingPairs() > 300;
      if (a == b) continue;
      for (Side& side : sides) {
        if (what < (isFull ? 30 : 60)) {
          btBroadphasePair* pair = side.cache.addOverlappingPair(a, b);
          ASSERT_EQ(pair != nullptr, side.cache.needsBroadphaseCollision(a, b));
          if (pair != nullptr && pair->m_algorithm == nullptr && what % 2 == 0)
            pair->m_algorithm = side.dispatcher.make();
          if (pair != nullptr) pair->m_internalInfo1 = a;
        } else if (what < 90) {
          side.log.append(side.cache.removeOverlappingPair(a, b, &side.dispatcher) == a ? "mine"
                                                                                        : "other");
        } else if (what < 93) {
          side.cache.removeOverlappingPairsContainingProxy(a, &side.dispatcher);
        } else if (what < 95) {
          side.cache.cleanProxyFromPairs(a, &side.dispatcher);
        } else if (what < 96) {
          EveryThird callback(side.log);
          side.cache.processAllOverlappingPairs(&callback, &side.dispatcher);
        } else {
          side.log.append(side.cache.findPair(a, b) != nullptr ? "found" : "none");
        }
      }
      ASSERT_EQ(sides[0].log, sides[1].log) << "call " << call;
      ASSERT_EQ(sides[0].contents(), sides[1].contents()) << "call " << call;
      sides[0].log.clear();
      sides[1].log.clear();
    }
    EXPECT_GT(own.getNumOverlappingPairs(), 50);
    EXPECT_EQ(sides[0].dispatcher.living(), sides[1].dispatcher.living());
  }
}

TEST(PairCache, SortingKeepsTheAlgorithmsAndTheLinks) {
  Random random(62);
  std::vector<btBroadphaseProxy> proxies = makeProxies(40);
  GpuLbvhPairCache cache;
  Side side(cache, false);
  std::map<std::pair<int, int>, btCollisionAlgorithm*> expected;
  for (int i = 0; i < 300; ++i) {
    btBroadphaseProxy *a = &proxies[random.below(40)], *b = &proxies[random.below(40)];
    if (a == b) continue;
    btBroadphasePair* pair = cache.addOverlappingPair(a, b);
    if (pair->m_algorithm == nullptr) pair->m_algorithm = side.dispatcher.make();
    expected[{pair->m_pProxy0->m_uniqueId, pair->m_pProxy1->m_uniqueId}] = pair->m_algorithm;
  }
  cache.sortOverlappingPairs(&side.dispatcher);
  EXPECT_EQ(side.log, "") << "nothing was freed";
  int at = 0;
  for (auto it = expected.rbegin(); it != expected.rend(); ++it, ++at) {
    const btBroadphasePair& pair = cache.getOverlappingPairArray()[at];
    EXPECT_EQ(std::pair(pair.m_pProxy0->m_uniqueId, pair.m_pProxy1->m_uniqueId), it->first);
    EXPECT_EQ(pair.m_algorithm, it->second);
  }
  for (btBroadphaseProxy& proxy : proxies)
    cache.removeOverlappingPairsContainingProxy(&proxy, &side.dispatcher);
  EXPECT_EQ(cache.getNumOverlappingPairs(), 0);
  EXPECT_EQ(side.dispatcher.living(), 0);
}

TEST(PairCache, TheDeterministicOptionVisitsEachPairOnceInDescendingOrder) {
  std::vector<btBroadphaseProxy> proxies = makeProxies(20);
  GpuLbvhPairCache cache;
  Side side(cache, false);
  for (btBroadphaseProxy& a : proxies)
    for (btBroadphaseProxy& b : proxies)
      if (&a < &b) cache.addOverlappingPair(&a, &b);
  std::string expected;
  for (int a = 19; a >= 1; --a)
    for (int b = 20; b > a; --b)
      expected.append("p").append(std::to_string(a)).append("-").append(std::to_string(b));
  btDispatcherInfo info;
  info.m_deterministicOverlappingPairs = true;
  EveryThird callback(side.log);
  cache.processAllOverlappingPairs(&callback, &side.dispatcher, info);
  EXPECT_EQ(side.log, expected);
  EXPECT_EQ(cache.getNumOverlappingPairs(), 190 - 190 / 3);
}

/// Removes pairs while it is told of pairs: all of the one proxy's, the pair at hand included.
struct RemovesOthers : btOverlapCallback {
  bool processOverlap(btBroadphasePair& pair) override {
    ++visits;
    if (pair.m_pProxy0 != victim && pair.m_pProxy1 != victim) return false;
    cache->removeOverlappingPairsContainingProxy(victim, nullptr);
    return true;
  }
  btOverlappingPairCache* cache = nullptr;
  btBroadphaseProxy* victim = nullptr;
  int visits = 0;
};

TEST(PairCache, CallbacksMayRemovePairs) {
  for (const bool sorted : {false, true}) {
    std::vector<btBroadphaseProxy> proxies = makeProxies(12);
    GpuLbvhPairCache cache;
    for (btBroadphaseProxy& a : proxies)
      for (btBroadphaseProxy& b : proxies)
        if (&a < &b) cache.addOverlappingPair(&a, &b);
    RemovesOthers callback;
    callback.cache = &cache;
    callback.victim = &proxies[5];
    btDispatcherInfo info;
    info.m_deterministicOverlappingPairs = sorted;
    cache.processAllOverlappingPairs(&callback, nullptr, info);
    EXPECT_EQ(cache.getNumOverlappingPairs(), 66 - 11);
    for (int i = 0; i < cache.getNumOverlappingPairs(); ++i) {
      EXPECT_NE(cache.getOverlappingPairArray()[i].m_pProxy0, &proxies[5]);
      EXPECT_NE(cache.getOverlappingPairArray()[i].m_pProxy1, &proxies[5]);
    }
    if (sorted) EXPECT_EQ(callback.visits, 55 + 1);
  }
}

TEST(PairCache, ServesOtherBroadPhases) {
  GpuLbvhPairCache own;
  btHashedOverlappingPairCache hashed;
  btDbvtBroadphase ours(&own), theirs(&hashed);
  Random random(63);
  std::vector<btBroadphaseProxy*> proxies[2];
  int number = 0;
  for (int step = 0; step < 100; ++step) {
    const btVector3 at(random.uniform(0, 9), random.uniform(0, 9), random.uniform(0, 9));
    const std::uint32_t which = random.bits();
    for (const int side : {0, 1}) {
      btDbvtBroadphase& broadphase = side == 0 ? ours : theirs;
      auto& list = proxies[side];
      list.push_back(
          broadphase.createProxy(at, at + btVector3(2, 2, 2), 0, &number, 1, -1, nullptr));
      broadphase.setAabb(list[which % list.size()], at, at + btVector3(3, 1, 1), nullptr);
      if (step % 4 == 0) {
        broadphase.destroyProxy(list[which % list.size()], nullptr);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(which % list.size()));
      }
      broadphase.calculateOverlappingPairs(nullptr);
    }
    ASSERT_EQ(own.getNumOverlappingPairs(), hashed.getNumOverlappingPairs());
    for (int i = 0; i < own.getNumOverlappingPairs(); ++i) {
      const auto &a = own.getOverlappingPairArray()[i], &b = hashed.getOverlappingPairArray()[i];
      ASSERT_EQ(a.m_pProxy0->m_uniqueId, b.m_pProxy0->m_uniqueId);
      ASSERT_EQ(a.m_pProxy1->m_uniqueId, b.m_pProxy1->m_uniqueId);
    }
  }
  EXPECT_GT(own.getNumOverlappingPairs(), 10);
  for (btBroadphaseProxy* proxy : proxies[0]) ours.destroyProxy(proxy, nullptr);
  for (btBroadphaseProxy* proxy : proxies[1]) theirs.destroyProxy(proxy, nullptr);
  EXPECT_EQ(own.getNumOverlappingPairs(), 0);
}

TEST(PairCache, OfNothingIsSafe) {
  GpuLbvhPairCache cache;
  std::vector<btBroadphaseProxy> proxies = makeProxies(2);
  EXPECT_EQ(cache.findPair(&proxies[0], &proxies[1]), nullptr);
  EXPECT_EQ(cache.removeOverlappingPair(&proxies[0], &proxies[1], nullptr), nullptr);
  cache.removeOverlappingPairsContainingProxy(&proxies[0], nullptr);
  cache.cleanProxyFromPairs(&proxies[0], nullptr);
  cache.sortOverlappingPairs(nullptr);
  EXPECT_EQ(cache.getNumOverlappingPairs(), 0);
  EXPECT_EQ(cache.getOverlappingPairArrayPtr(), nullptr);
  EXPECT_FALSE(cache.hasDeferredRemoval());
}

// Addresses in all distances, so that searches collide, and gaps are closed across others' homes.
TEST(ProxyTable, FindsWhatItHoldsWhateverWasForgotten) {
  Random random(64);
  std::vector<btBroadphaseProxy> proxies(700);
  std::map<std::size_t, std::uint32_t> expected;
  GpuLbvhProxyTable table;
  for (int call = 0; call < 30000; ++call) {
    const std::size_t i = random.below(call < 20000 ? 700 : 20);
    if (random.below(2) == 0) {
      table.forget(&proxies[i]);
      expected.erase(i);
    } else {
      table.reserveTwo();
      expected[i] = table.at(&proxies[i]) = random.below(1000);
    }
    const std::size_t other = random.below(700);
    const auto it = expected.find(other);
    ASSERT_EQ(table.get(&proxies[other]),
              it == expected.end() ? GpuLbvhProxyTable::kNone : it->second)
        << call;
  }
  EXPECT_GT(expected.size(), 100u);
}

}  // namespace

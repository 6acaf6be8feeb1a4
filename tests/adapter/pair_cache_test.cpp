// SPDX-License-Identifier: Zlib
// Compares our own pair cache with btHashedOverlappingPairCache: the same calls lead to the same
// array and callbacks. Also tests features that only our cache has.
#include "integration/pair_cache.h"

#include <btBulletCollisionCommon.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "no_algorithm.h"
#include "support.h"

namespace {

using lbvh::test::Random;

struct NumberedAlgorithm : NoAlgorithm {
  int number = 0;
};

/// Creates algorithms, and logs which are freed.
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
  std::map<void*, int> numbers_;  // the numbers of algorithms that are not freed yet
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

/// Removes every third pair that it visits, and logs all pairs.
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

struct Own {
  explicit Own(int n) : cache(owner, true) {
    for (int i = 0; i < n; ++i) {
      GpuLbvhProxy* proxy = owner.create(btVector3(0, 0, 0), btVector3(1, 1, 1), nullptr, 1, -1);
      proxy->m_uniqueId = (i * 37) % n + 1;  // so that slots and ids have different orders
      proxy->m_collisionFilterGroup = 1 << (i % 3);
      proxies.push_back(proxy);
    }
  }
  GpuLbvhProxies owner;
  std::vector<GpuLbvhProxy*> proxies;
  GpuLbvhPairCache cache;
  void addAllPairs() {
    for (GpuLbvhProxy* a : proxies)
      for (GpuLbvhProxy* b : proxies)
        if (a->m_slot < b->m_slot) cache.addOverlappingPair(a, b);
  }
};

TEST(PairCache, EqualsBulletsHashedCacheElementForElement) {
  for (const bool hasGhost : {false, true}) {
    Random random(61);
    Own owner(60);
    GpuLbvhPairCache& own = owner.cache;
    for (std::size_t i = 0; i < 60; i += 7) owner.proxies[i]->m_collisionFilterMask = 3;
    btHashedOverlappingPairCache hashed;
    Side sides[] = {Side(own, hasGhost), Side(hashed, hasGhost)};
    const auto pick = [&] { return owner.proxies[random.below(60)]; };
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

// After a step that adds a few pairs, the next removal must not build the list of all partners
// again.
TEST(PairCache, FewAddedPairsAreAddedToTheListOfPartners) {
  Own own(60);
  own.addAllPairs();
  GpuLbvhPairCache& cache = own.cache;
  GpuLbvhProxy *a = own.proxies[3], *b = own.proxies[20];
  const lbvh::Pair pair = slotsOf(a, b);
  const auto partnersOf = [&](const GpuLbvhProxy* proxy) {
    std::size_t count = 0;
    cache.partners().forEachOf(proxy->m_slot, [&](std::uint32_t) { ++count; });
    return count;
  };
  cache.removeOverlappingPairsContainingProxy(a, nullptr);
  for (int k = 0; k < 100; ++k) {
    ASSERT_TRUE(cache.add({&pair, 1}));
    ASSERT_EQ(cache.getNumOverlappingPairs(), 59 * 58 / 2 + 1) << k;
    ASSERT_TRUE(cache.partners().isValid()) << k;
    cache.removeOverlappingPairsContainingProxy(a, nullptr);
    ASSERT_EQ(cache.getNumOverlappingPairs(), 59 * 58 / 2) << k;
    ASSERT_LT(partnersOf(a), 62u) << k;
  }
  cache.cleanProxyFromPairs(b, nullptr);
  EXPECT_EQ(partnersOf(b), 58u)
      << "a pair that was added and removed repeatedly is listed more than once";
}

TEST(PairCache, SortingKeepsTheAlgorithmsAndTheLinks) {
  Random random(62);
  Own own(40);
  GpuLbvhPairCache& cache = own.cache;
  Side side(cache, false);
  std::map<std::pair<int, int>, btCollisionAlgorithm*> expected;
  for (int i = 0; i < 300; ++i) {
    GpuLbvhProxy *a = own.proxies[random.below(40)], *b = own.proxies[random.below(40)];
    if (a == b) continue;
    btBroadphasePair* pair = cache.addOverlappingPair(a, b);
    if (pair->m_algorithm == nullptr) pair->m_algorithm = side.dispatcher.make();
    expected[{pair->m_pProxy0->m_uniqueId, pair->m_pProxy1->m_uniqueId}] = pair->m_algorithm;
  }
  cache.sortOverlappingPairs(&side.dispatcher);
  EXPECT_EQ(side.log, "") << "an algorithm was freed";
  int at = 0;
  for (auto it = expected.rbegin(); it != expected.rend(); ++it, ++at) {
    const btBroadphasePair& pair = cache.getOverlappingPairArray()[at];
    EXPECT_EQ(std::pair(pair.m_pProxy0->m_uniqueId, pair.m_pProxy1->m_uniqueId), it->first);
    EXPECT_EQ(pair.m_algorithm, it->second);
    EXPECT_EQ(cache.findPair(pair.m_pProxy1, pair.m_pProxy0), &pair);
  }
  for (GpuLbvhProxy* proxy : own.proxies)
    cache.removeOverlappingPairsContainingProxy(proxy, &side.dispatcher);
  EXPECT_EQ(cache.getNumOverlappingPairs(), 0);
  EXPECT_EQ(side.dispatcher.living(), 0);
}

TEST(PairCache, SettlingTheOrderKeepsTheAlgorithmsAndTheLinks) {
  Random random(63);
  Own own(40);
  GpuLbvhPairCache& cache = own.cache;
  Side side(cache, false);
  std::map<std::pair<int, int>, btCollisionAlgorithm*> expected;
  for (int round = 0; round < 300; ++round) {
    for (std::uint32_t changes = random.below(round % 10 == 0 ? 400 : 8); changes > 0; --changes) {
      GpuLbvhProxy *a = own.proxies[random.below(40)], *b = own.proxies[random.below(40)];
      if (a->m_uniqueId > b->m_uniqueId) std::swap(a, b);
      if (a == b) continue;
      if (random.below(2) == 0) {
        cache.removeOverlappingPair(a, b, &side.dispatcher);
        expected.erase({a->m_uniqueId, b->m_uniqueId});
        continue;
      }
      btBroadphasePair* pair = cache.addOverlappingPair(a, b);
      if (pair->m_algorithm == nullptr) pair->m_algorithm = side.dispatcher.make();
      expected[{a->m_uniqueId, b->m_uniqueId}] = pair->m_algorithm;
    }
    cache.settleOrder();
    ASSERT_EQ(cache.getNumOverlappingPairs(), static_cast<int>(expected.size()));
    int at = 0;
    for (const auto& [ids, algorithm] : expected) {
      const btBroadphasePair& pair = cache.getOverlappingPairArray()[at++];
      ASSERT_EQ(std::pair(pair.m_pProxy0->m_uniqueId, pair.m_pProxy1->m_uniqueId), ids) << round;
      ASSERT_EQ(pair.m_algorithm, algorithm) << round;
      ASSERT_EQ(cache.findPair(pair.m_pProxy1, pair.m_pProxy0), &pair) << round;
    }
  }
  for (GpuLbvhProxy* proxy : own.proxies)
    cache.removeOverlappingPairsContainingProxy(proxy, &side.dispatcher);
  EXPECT_EQ(side.dispatcher.living(), 0);
}

TEST(PairCache, TheDeterministicOptionVisitsEachPairOnceInDescendingOrder) {
  Own own(20);
  GpuLbvhPairCache& cache = own.cache;
  Side side(cache, false);
  own.addAllPairs();
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

/// At the first pair of the victim, removes all pairs of the victim, including that one.
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
    Own own(12);
    GpuLbvhPairCache& cache = own.cache;
    own.addAllPairs();
    RemovesOthers callback;
    callback.cache = &cache;
    callback.victim = own.proxies[5];
    btDispatcherInfo info;
    info.m_deterministicOverlappingPairs = sorted;
    cache.processAllOverlappingPairs(&callback, nullptr, info);
    EXPECT_EQ(cache.getNumOverlappingPairs(), 66 - 11);
    for (int i = 0; i < cache.getNumOverlappingPairs(); ++i) {
      EXPECT_NE(cache.getOverlappingPairArray()[i].m_pProxy0, own.proxies[5]);
      EXPECT_NE(cache.getOverlappingPairArray()[i].m_pProxy1, own.proxies[5]);
    }
    if (sorted) EXPECT_EQ(callback.visits, 55 + 1);
  }
}

/// When the first pair is removed, removes all pairs of the victim, too.
struct RemovesMore : btOverlappingPairCallback {
  btBroadphasePair* addOverlappingPair(btBroadphaseProxy*, btBroadphaseProxy*) override {
    return nullptr;
  }
  void* removeOverlappingPair(btBroadphaseProxy*, btBroadphaseProxy*, btDispatcher*) override {
    if (btBroadphaseProxy* now = std::exchange(victim, nullptr))
      cache->removeOverlappingPairsContainingProxy(now, nullptr);
    return nullptr;
  }
  void removeOverlappingPairsContainingProxy(btBroadphaseProxy*, btDispatcher*) override {}
  btOverlappingPairCache* cache = nullptr;
  btBroadphaseProxy* victim = nullptr;
};

TEST(PairCache, AGhostCallbackMayRemoveOtherPairs) {
  Own own(12);
  own.addAllPairs();
  RemovesMore ghost;
  ghost.cache = &own.cache;
  ghost.victim = own.proxies[3];
  own.cache.setInternalGhostPairCallback(&ghost);
  own.cache.removeOverlappingPairsContainingProxy(own.proxies[8], nullptr);
  EXPECT_EQ(own.cache.getNumOverlappingPairs(), 66 - 11 - 10);
  for (GpuLbvhProxy* gone : {own.proxies[3], own.proxies[8]})
    for (GpuLbvhProxy* other : own.proxies) EXPECT_EQ(own.cache.findPair(gone, other), nullptr);
}

struct AskedAlgorithm : NoAlgorithm {
  void getAllContactManifolds(btManifoldArray&) override { ++asked; }
  int asked = 0;
};

/// How often processAllOverlappingPairs asks each pair's algorithm for its contacts, in three
/// steps. Only in the first step are the proxies treated as moved.
std::vector<int> askedForContacts(int proxies) {
  Own own(proxies);
  own.addAllPairs();
  std::vector<AskedAlgorithm> algorithms(
      static_cast<std::size_t>(own.cache.getNumOverlappingPairs()));
  for (std::size_t i = 0; i < algorithms.size(); ++i)
    own.cache.getOverlappingPairArray()[static_cast<int>(i)].m_algorithm = &algorithms[i];
  struct Nothing : btOverlapCallback {
    bool processOverlap(btBroadphasePair&) override { return false; }
  } nothing;
  for (int step = 0; step < 3; ++step) {
    own.owner.endStep();
    own.cache.processAllOverlappingPairs(&nothing, nullptr);
  }
  std::vector<int> asked;
  for (const AskedAlgorithm& algorithm : algorithms) asked.push_back(algorithm.asked);
  return asked;
}

TEST(PairCache, PrefetchesContactsOnlyForPairsThatMoved) {
  const std::vector<int> asked = askedForContacts(130);
  ASSERT_EQ(asked.size(), 130u * 129 / 2);
  for (std::size_t i = 0; i < asked.size(); ++i) ASSERT_EQ(asked[i], i < 3 ? 0 : 1) << i;
}

TEST(PairCache, PrefetchesNothingForFewPairs) {
  EXPECT_EQ(askedForContacts(127), std::vector<int>(127 * 126 / 2));
}

TEST(PairCache, EveryCallIsSafeOnAnEmptyCache) {
  Own own(2);
  GpuLbvhPairCache& cache = own.cache;
  EXPECT_EQ(cache.findPair(own.proxies[0], own.proxies[1]), nullptr);
  EXPECT_EQ(cache.removeOverlappingPair(own.proxies[0], own.proxies[1], nullptr), nullptr);
  cache.removeOverlappingPairsContainingProxy(own.proxies[0], nullptr);
  cache.cleanProxyFromPairs(own.proxies[0], nullptr);
  cache.sortOverlappingPairs(nullptr);
  EXPECT_EQ(cache.getNumOverlappingPairs(), 0);
  EXPECT_EQ(cache.getOverlappingPairArrayPtr(), nullptr);
  EXPECT_FALSE(cache.hasDeferredRemoval());
}

TEST(PairTable, ListsThePairsOfASlotThatWasAddedLater) {
  const btBroadphasePair any;
  GpuLbvhPairTable table;
  table.reserve(1000, 10);
  table.push({1, 2}, any);
  table.reserve(1, 5000);
  table.push({3, 4999}, any);
  const GpuLbvhPairTable::PlacesOf places(table, 4999);
  ASSERT_TRUE(places.areListed());
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0], 1u);
}

TEST(Partners, ListEveryPartnerOnceBuilt) {
  Random random(64);
  std::vector<lbvh::Pair> pairs;
  GpuLbvhPartners partners;
  int builds = 0, known = 0;
  for (std::uint32_t call = 0; call < 20000; ++call) {
    const std::uint32_t slots = 20 + call / 100;  // more and more proxies
    const std::uint32_t a = random.below(slots), b = random.below(slots);
    if (a == b) continue;
    pairs.push_back(lbvh::makePair(a, b));
    partners.add(pairs.back());
    if (random.below(200) == 0) pairs.clear(), partners.shrink(0, 0);
    if (!partners.isValid() && random.below(10) == 0) {
      partners.reserve(pairs.size() + 10, slots);
      partners.build(pairs.size(), [&](std::size_t i) { return pairs[i]; });
      ++builds;
    }
    if (!partners.isValid()) continue;
    ++known;
    std::set<std::uint32_t> expected, found;
    for (const lbvh::Pair pair : pairs) {
      if (pair.first == a) expected.insert(pair.second);
      if (pair.second == a) expected.insert(pair.first);
    }
    partners.forEachOf(a, [&](std::uint32_t partner) { found.insert(partner); });
    ASSERT_EQ(found, expected) << call;
  }
  EXPECT_GT(known, 5000);
  EXPECT_GT(builds, 50) << "too few lists were built again";
}

}  // namespace

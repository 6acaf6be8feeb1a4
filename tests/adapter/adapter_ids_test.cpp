// SPDX-License-Identifier: Zlib
// Tests the unique ids that a program chooses, and the order of pairs, which depends on them.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace {

using namespace twins;

int createWithNextId(GpuLbvhBroadphase& broadphase) {
  const btVector3 corner(0, 0, 0);
  return broadphase.createProxy(corner, corner, 0, nullptr, 1, -1, nullptr)->m_uniqueId;
}

TEST(AdapterIds, NewIdsContinueFromTheLargestId) {
  GpuLbvhBroadphase broadphase;
  EXPECT_EQ(createWithNextId(broadphase), 1);
  EXPECT_TRUE(broadphase.setNextUniqueId(7));
  EXPECT_EQ(createWithNextId(broadphase), 7);
  EXPECT_TRUE(broadphase.setNextUniqueId(3));
  EXPECT_EQ(createWithNextId(broadphase), 3);
  EXPECT_EQ(createWithNextId(broadphase), 8);
  EXPECT_TRUE(broadphase.setNextUniqueId(5));
  EXPECT_TRUE(broadphase.setNextUniqueId(0)) << "cancels the previous call";
  EXPECT_EQ(createWithNextId(broadphase), 9);
  EXPECT_TRUE(broadphase.setNextUniqueId(1 << 30));
  EXPECT_EQ(createWithNextId(broadphase), 1 << 30);
  EXPECT_EQ(createWithNextId(broadphase), (1 << 30) + 1);
}

TEST(AdapterIds, AWrongIdIsRefusedAndUndoesTheCallBefore) {
  GpuLbvhBroadphase broadphase;
  EXPECT_TRUE(broadphase.setNextUniqueId(4));
  EXPECT_EQ(createWithNextId(broadphase), 4);
  int counted = 4;
  for (const int wrong :
       {4, -1, (1 << 30) + 1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    EXPECT_TRUE(broadphase.setNextUniqueId(2));
    EXPECT_FALSE(broadphase.setNextUniqueId(wrong)) << wrong;
    EXPECT_EQ(createWithNextId(broadphase), ++counted) << wrong;
  }
}

TEST(AdapterIds, TheIdOfADestroyedProxyMayBeGivenAgain) {
  GpuLbvhBroadphase broadphase;
  const btVector3 corner(0, 0, 0);
  createWithNextId(broadphase);
  btBroadphaseProxy* second = broadphase.createProxy(corner, corner, 0, nullptr, 1, -1, nullptr);
  EXPECT_FALSE(broadphase.setNextUniqueId(2));
  broadphase.destroyProxy(second, nullptr);
  EXPECT_TRUE(broadphase.setNextUniqueId(2));
  EXPECT_EQ(createWithNextId(broadphase), 2);
}

TEST(AdapterIds, ResetPoolForgetsAChosenId) {
  GpuLbvhBroadphase broadphase;
  EXPECT_TRUE(broadphase.setNextUniqueId(9));
  broadphase.resetPool(nullptr);
  EXPECT_EQ(createWithNextId(broadphase), 1);
}

/// Replaces an object, once, by one that is far away and has the same id.
struct Replacer {
  /// @return whether it replaced `a` or `b`
  bool replace(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
    if (victim == nullptr || (a != victim && b != victim)) return false;
    btBroadphaseProxy* const gone = std::exchange(victim, nullptr);
    const int id = gone->m_uniqueId;
    void* const client = gone->m_clientObject;
    broadphase->destroyProxy(gone, nullptr);
    EXPECT_TRUE(broadphase->setNextUniqueId(id));
    const btVector3 far(50, 50, 50);
    EXPECT_EQ(broadphase->createProxy(far, far, 0, client, 1, -1, nullptr), gone);
    EXPECT_EQ(gone->m_uniqueId, id);
    return true;
  }
  GpuLbvhBroadphase* broadphase = nullptr;
  btBroadphaseProxy* victim = nullptr;
};

struct ReplacingFilter : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    return !replacer->replace(a, b) || accepts;
  }
  Replacer* replacer = nullptr;
  bool accepts = false;
};

struct ReplacingGhost : btOverlappingPairCallback {
  btBroadphasePair* addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override {
    replacer->replace(a, b);
    return nullptr;
  }
  void* removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b, btDispatcher*) override {
    if (replacer->replace(a, b)) cache->addOverlappingPair(a, b);
    return nullptr;
  }
  void removeOverlappingPairsContainingProxy(btBroadphaseProxy*, btDispatcher*) override {}
  Replacer* replacer = nullptr;
  btOverlappingPairCache* cache = nullptr;
};

enum class Calls { refusingFilter, acceptingFilter, ghost };

/// Six objects overlap. A callback of the first step replaces one of them.
void replaceInAStep(Calls calls, btOverlappingPairCache* cache) {
  GpuLbvhBroadphase broadphase(cache);
  Replacer replacer;
  ReplacingFilter filter;
  ReplacingGhost ghost;
  filter.replacer = ghost.replacer = &replacer;
  btOverlappingPairCache& used = *broadphase.getOverlappingPairCache();
  filter.accepts = calls == Calls::acceptingFilter;
  if (calls != Calls::ghost) used.setOverlapFilterCallback(&filter);
  if (calls == Calls::ghost) used.setInternalGhostPairCallback(&ghost);
  std::vector<btCollisionObject> objects(6);
  std::vector<btBroadphaseProxy*> proxies;
  for (btCollisionObject& object : objects)
    proxies.push_back(
        broadphase.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, &object, 1, -1, nullptr));
  replacer = {&broadphase, proxies[2]};
  for (int step = 0; step < 2; ++step) {
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(replacer.victim, nullptr);
    EXPECT_EQ(used.getNumOverlappingPairs(), 10) << step;
  }
  broadphase.destroyProxies(proxies.data(), 6, nullptr);
}

TEST(AdapterIds, AnObjectThatReplacesAnotherOneWithinACallbackHasNoneOfItsPairs) {
  for (const Calls calls : {Calls::refusingFilter, Calls::acceptingFilter, Calls::ghost})
    replaceInAStep(calls, nullptr);
  btHashedOverlappingPairCache hashed;
  replaceInAStep(Calls::refusingFilter, &hashed);
}

TEST(AdapterIds, RemovingAPairKeepsAPairThatACallbackAddedForAnObjectInTheSameProxy) {
  GpuLbvhBroadphase broadphase;
  Replacer replacer;
  ReplacingGhost ghost;
  ghost.replacer = &replacer;
  ghost.cache = broadphase.getOverlappingPairCache();
  ghost.cache->setInternalGhostPairCallback(&ghost);
  const btVector3 low(0, 0, 0), high(1, 1, 1);
  btBroadphaseProxy* const first = broadphase.createProxy(low, high, 0, nullptr, 1, -1, nullptr);
  btBroadphaseProxy* const second = broadphase.createProxy(low, high, 0, nullptr, 1, -1, nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  replacer = {&broadphase, second};
  ghost.cache->removeOverlappingPair(first, second, nullptr);
  EXPECT_EQ(replacer.victim, nullptr);
  EXPECT_NE(ghost.cache->findPair(first, second), nullptr);
  for (btBroadphaseProxy* proxy : {first, second}) broadphase.destroyProxy(proxy, nullptr);
}

/// A filter that acts when it is called for a pair of the second client. It replaces the first or
/// the second client's object by an object that is far away. Then it may throw.
struct ReplacingNewcomerFilter : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    btBroadphaseProxy* const last = a->m_uniqueId > b->m_uniqueId ? a : b;
    if (last->m_clientObject == clients[0]) first = last;
    if (last->m_clientObject != clients[1]) return true;
    replacer.victim = replacesFirst ? first : last;
    replacer.replace(replacer.victim, nullptr);
    if (throws) throw 1;
    return true;
  }
  mutable Replacer replacer;
  mutable btBroadphaseProxy* first = nullptr;
  const void* clients[2] = {};
  bool replacesFirst = false, throws = false;
};

struct CountAll : btBroadphaseAabbCallback {
  bool process(const btBroadphaseProxy*) override { return ++count > 0; }
  int count = 0;
};

/// A ghost. Objects are created at its position, and the filter replaces one of them.
struct GhostWithNewcomers {
  GhostWithNewcomers() {
    cache.setInternalGhostPairCallback(&callback);
    cache.setOverlapFilterCallback(&filter);
    ghost.setBroadphaseHandle(broadphase.createProxy(low, high, 0, &ghost, 1, -1, nullptr));
    filter.replacer.broadphase = &broadphase;
    for (int i = 0; i < 2; ++i) filter.clients[i] = &clients[i];
  }
  ~GhostWithNewcomers() {
    broadphase.destroyProxy(ghost.getBroadphaseHandle(), nullptr);
    cache.setInternalGhostPairCallback(nullptr);
  }
  int countFarAway() {
    CountAll all;
    broadphase.aabbTest(btVector3(49, 49, 49), btVector3(51, 51, 51), all);
    return all.count;
  }
  const btVector3 low{0, 0, 0}, high{1, 1, 1};
  GpuLbvhBroadphase broadphase;
  btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
  btGhostPairCallback callback;
  ReplacingNewcomerFilter filter;
  btPairCachingGhostObject ghost;
  btCollisionObject clients[2];
};

TEST(AdapterIds, AnObjectThatReplacesANewcomerWithinItsCreationStays) {
  for (const bool throws : {false, true}) {
    GhostWithNewcomers world;
    world.filter.throws = throws;
    const auto create = [&] {
      return world.broadphase.createProxy(world.low, world.high, 0, &world.clients[1], 1, -1,
                                          nullptr);
    };
    if (throws)
      EXPECT_THROW(create(), int);
    else
      EXPECT_EQ(create(), nullptr) << "the object that was asked for is gone";
    EXPECT_EQ(world.countFarAway(), 1);
  }
}

TEST(AdapterIds, AnObjectThatReplacesANewcomerWithinAFailedBulkCreationStays) {
  GhostWithNewcomers world;
  world.filter.throws = world.filter.replacesFirst = true;
  GpuLbvhNewProxy asked[2];
  for (int i = 0; i < 2; ++i) asked[i] = {world.low, world.high, 0, &world.clients[i], 1, -1};
  btBroadphaseProxy* created[2] = {};
  EXPECT_THROW(world.broadphase.createProxies(asked, 2, created, nullptr), int);
  EXPECT_EQ(world.countFarAway(), 1);
}

/// The ids of the pairs, in the cache's order.
std::vector<std::pair<int, int>> orderOf(GpuLbvhBroadphase& broadphase) {
  std::vector<std::pair<int, int>> order;
  const btBroadphasePairArray& pairs =
      broadphase.getOverlappingPairCache()->getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i)
    order.emplace_back(pairs[i].m_pProxy0->m_uniqueId, pairs[i].m_pProxy1->m_uniqueId);
  return order;
}

// The program removes a pair, adds it again, and sorts the cache. Nothing else changes.
TEST(AdapterIds, EachStepSortsThePairsIfTheOptionIsSet) {
  for (const bool sorts : {false, true}) {
    GpuLbvhOptions options;
    options.sortsPairs = sorts;
    GpuLbvhBroadphase broadphase(options);
    std::vector<btBroadphaseProxy*> proxies;
    for (int i = 0; i < 8; ++i)
      proxies.push_back(broadphase.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, nullptr,
                                               1, -1, nullptr));
    broadphase.calculateOverlappingPairs(nullptr);
    const auto first = orderOf(broadphase);
    EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
    btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
    cache.removeOverlappingPair(proxies[0], proxies[3], nullptr);
    cache.addOverlappingPair(proxies[3], proxies[0]);
    EXPECT_NE(orderOf(broadphase), first);
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(orderOf(broadphase) == first, sorts);
    cache.sortOverlappingPairs(nullptr);
    EXPECT_EQ(orderOf(broadphase).front(), std::pair(7, 8)) << "descending, as in Bullet";
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(orderOf(broadphase) == first, sorts);
  }
}

}  // namespace

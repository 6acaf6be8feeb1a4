// SPDX-License-Identifier: Zlib
// Tests ghost objects with a filter callback that changes its answers while boxes overlap, or
// throws while an object is created.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace {

using namespace twins;

int indexOf(const btBroadphaseProxy* proxy) {
  return static_cast<const btCollisionObject*>(proxy->m_clientObject)->getUserIndex();
}

/// A filter whose answer depends on the two objects' indices and on their counters in mindOf.
struct Fickle : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    if (answersLeft > 0 && --answersLeft == 0) throw 1;
    return accepts(indexOf(a), indexOf(b));
  }
  bool accepts(int a, int b) const {
    const auto numbers = static_cast<std::uint32_t>(std::min(a, b) * 1009 + std::max(a, b));
    const std::uint32_t minds =
        mindOf[static_cast<std::size_t>(a)] + mindOf[static_cast<std::size_t>(b)];
    return ((numbers + minds) * 2654435769u >> 20) % 2 == 0;
  }
  std::vector<std::uint32_t> mindOf = std::vector<std::uint32_t>(100);
  mutable int answersLeft = 0;  ///< answers left; the last one throws; 0: never throws
};

/// A broad phase with ghosts and other objects, and a model of its pairs. The filter is called at
/// once for a ghost's new pairs, and again in the step. Only the step removes pairs.
class Ghosts {
 public:
  explicit Ghosts(btOverlappingPairCache* handedIn) : broadphase_({}, handedIn) {
    cache().setInternalGhostPairCallback(&callback_);
    cache().setOverlapFilterCallback(&filter);
  }
  ~Ghosts() {
    while (!objects_.empty()) destroy(objects_.begin()->first);
  }
  btOverlappingPairCache& cache() { return *broadphase_.getOverlappingPairCache(); }

  void create(int index, const Box& box) {
    Object one;
    if (index % 3 == 0)
      one.client = std::make_unique<btPairCachingGhostObject>();
    else
      one.client = std::make_unique<btCollisionObject>();
    one.client->setUserIndex(index);
    one.proxy = broadphase_.createProxy(box.min, box.max, 0, one.client.get(), 1, -1, nullptr);
    one.client->setBroadphaseHandle(one.proxy);
    objects_[index] = std::move(one);
    updateGhosts(index);
  }
  void move(int index, const Box& box) {
    Object& one = objects_.at(index);
    if (one.proxy->m_aabbMin == box.min && one.proxy->m_aabbMax == box.max) return;
    one.hasChanged = true;
    broadphase_.setAabb(one.proxy, box.min, box.max, nullptr);
    updateGhosts(index);
  }
  void nudge(int index) {
    const btVector3 by(btScalar(0.0625), 0, btScalar(0.0625));
    const btBroadphaseProxy* proxy = objects_.at(index).proxy;
    move(index, {proxy->m_aabbMin + by, proxy->m_aabbMax + by});
  }
  void destroy(int index) {
    broadphase_.destroyProxy(objects_.at(index).proxy, nullptr);
    objects_.erase(index);
    std::erase_if(accepts_, [&](const auto& pair) {
      return pair.first.first == index || pair.first.second == index;
    });
  }
  /// Makes the next step call the filter for the object's refused pairs, even if nothing moves.
  void clean(int index) {
    cache().cleanProxyFromPairs(objects_.at(index).proxy, nullptr);
    objects_.at(index).hasChanged = true;
  }
  bool has(int index) const { return objects_.count(index) != 0; }
  std::size_t size() const { return objects_.size(); }

  void step() {
    broadphase_.calculateOverlappingPairs(nullptr);
    for (auto a = objects_.begin(); a != objects_.end(); ++a)
      for (auto b = std::next(a); b != objects_.end(); ++b)
        updateInStep(a->first, b->first, a->second.hasChanged || b->second.hasChanged);
    for (auto& [index, one] : objects_) one.hasChanged = false;
    PairSet found;
    for (int i = 0; i < cache().getNumOverlappingPairs(); ++i) {
      const btBroadphasePair& pair = cache().getOverlappingPairArray()[i];
      const int a = indexOf(pair.m_pProxy0), b = indexOf(pair.m_pProxy1);
      found.insert({std::min(a, b), std::max(a, b)});
    }
    PairSet expected;
    for (const auto& [pair, isIn] : accepts_)
      if (isIn) expected.insert(pair);
    ASSERT_EQ(found, expected);
    pairs += found.size();
  }
  void check() const {
    for (const auto& [index, one] : objects_) {
      if (index % 3 != 0) continue;
      const auto& ghost = static_cast<const btGhostObject&>(*one.client);
      std::set<int> found, expected;
      for (int i = 0; i < ghost.getNumOverlappingObjects(); ++i)
        found.insert(ghost.getOverlappingObject(i)->getUserIndex());
      for (const auto& [pair, isIn] : accepts_)
        if (isIn && (pair.first == index || pair.second == index))
          expected.insert(pair.first == index ? pair.second : pair.first);
      ASSERT_EQ(found, expected) << index;
    }
  }

  Fickle filter;
  std::size_t pairs = 0;

 private:
  struct Object {
    std::unique_ptr<btCollisionObject> client;
    btBroadphaseProxy* proxy = nullptr;
    bool hasChanged = true;
  };

  void updateGhosts(int index) {
    for (const auto& [other, one] : objects_)
      if (other != index && (index % 3 == 0 || other % 3 == 0)) update(index, other, true);
  }
  void updateInStep(int a, int b, bool asksAgain) {
    if (!overlap(objects_.at(a).proxy, objects_.at(b).proxy))
      accepts_.erase({std::min(a, b), std::max(a, b)});
    update(a, b, asksAgain);
  }
  void update(int a, int b, bool asksAgain) {
    const std::pair<int, int> key(std::min(a, b), std::max(a, b));
    if (!overlap(objects_.at(a).proxy, objects_.at(b).proxy)) return;
    const auto before = accepts_.find(key);
    if (before == accepts_.end() || (asksAgain && !before->second))
      accepts_[key] = filter.accepts(a, b);
  }

  btGhostPairCallback callback_;
  GpuLbvhBroadphase broadphase_;
  std::map<int, Object> objects_;
  std::map<std::pair<int, int>, bool> accepts_;  ///< the answer for each overlapping pair
};

TEST(GhostFilters, FollowTheRuleThroughRandomCalls) {
  for (const bool handedIn : {false, true}) {
    Random random(151);
    btHashedOverlappingPairCache hashed;
    Ghosts ghosts(handedIn ? &hashed : nullptr);
    for (int call = 0; call < 4000 && !HasFailure(); ++call) {
      SCOPED_TRACE(call);
      const int index = static_cast<int>(random.below(40));
      const std::uint32_t what = random.below(32);
      const Box box = randomBox(random, 6, 3);
      if (!ghosts.has(index))
        ghosts.create(index, box);
      else if (what == 0)
        ghosts.destroy(index);
      else if (what < 6)
        ghosts.move(index, box);
      else if (what < 20)
        ghosts.nudge(index);
      else if (what == 20 && !handedIn)
        ghosts.clean(index);
      else if (what < 29)
        ++ghosts.filter.mindOf[static_cast<std::size_t>(index)];
      else
        ghosts.step();
      ghosts.check();
    }
    EXPECT_GT(ghosts.pairs, 5000u);
  }
}

struct Refuses : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
    return false;
  }
};

// The filter is set in both steps. Between them, without the filter, the ghosts begin to overlap.
TEST(GhostFilters, AreAskedAboutPairsThatWereFoundWithoutThem) {
  GpuLbvhBroadphase broadphase;
  btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
  btGhostPairCallback callback;
  Refuses filter;
  cache.setInternalGhostPairCallback(&callback);
  cache.setOverlapFilterCallback(&filter);
  broadphase.calculateOverlappingPairs(nullptr);
  cache.setOverlapFilterCallback(nullptr);
  btGhostObject ghosts[2];
  btBroadphaseProxy* proxies[2];
  for (int i = 0; i < 2; ++i) {
    proxies[i] = broadphase.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, &ghosts[i], 1,
                                        -1, nullptr);
    ghosts[i].setBroadphaseHandle(proxies[i]);
  }
  EXPECT_EQ(cache.getNumOverlappingPairs(), 1);
  cache.setOverlapFilterCallback(&filter);
  broadphase.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(cache.getNumOverlappingPairs(), 0);
  for (btBroadphaseProxy* proxy : proxies) broadphase.destroyProxy(proxy, nullptr);
}

/// A ghost and an object whose pair the program removed from the cache. Then the ghost moved a
/// little. The filter refuses the pair now.
class Removed {
 public:
  struct Filter : btOverlapFilterCallback {
    bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
      if (const auto once = std::exchange(meddle, nullptr)) once();
      return accepts;
    }
    mutable std::function<void()> meddle;
    bool accepts = true;
  };

  Removed() {
    cache().setInternalGhostPairCallback(&callback_);
    cache().setOverlapFilterCallback(&filter);
    first = create(low, ghost_);
    second = create(low, object_);
    ghost_.setBroadphaseHandle(first);
    EXPECT_EQ(pairsAfterAStep(), 1);
    filter.accepts = false;
    cache().removeOverlappingPair(first, second, nullptr);
    broadphase.setAabb(first, low, high * 2, nullptr);
  }
  ~Removed() {
    for (btBroadphaseProxy* proxy : {first, second}) broadphase.destroyProxy(proxy, nullptr);
  }
  btOverlappingPairCache& cache() { return *broadphase.getOverlappingPairCache(); }
  int pairsAfterAStep() {
    broadphase.calculateOverlappingPairs(nullptr);
    return cache().getNumOverlappingPairs();
  }
  /// Destroys the second object. Creates an object far away, which reuses the slot.
  void replaceSecond() {
    broadphase.destroyProxy(second, nullptr);
    second = create(far, object_);
  }

  const btVector3 low{0, 0, 0}, high{1, 1, 1}, far{50, 50, 50};
  Filter filter;
  GpuLbvhBroadphase broadphase;
  btBroadphaseProxy *first = nullptr, *second = nullptr;

 private:
  btBroadphaseProxy* create(const btVector3& at, btCollisionObject& client) {
    return broadphase.createProxy(at, at + high, 0, &client, 1, -1, nullptr);
  }

  btGhostPairCallback callback_;
  btGhostObject ghost_;
  btCollisionObject object_;
};

TEST(GhostFilters, ARefusalInAStepIsRemembered) {
  Removed two;
  EXPECT_EQ(two.pairsAfterAStep(), 0);
  two.filter.accepts = true;
  EXPECT_EQ(two.pairsAfterAStep(), 0);
  two.cache().cleanProxyFromPairs(two.second, nullptr);
  EXPECT_EQ(two.pairsAfterAStep(), 1);
}

TEST(GhostFilters, MayDestroyWhatTheStepAsksAbout) {
  Removed two;
  two.filter.meddle = [&] { two.replaceSecond(); };
  EXPECT_EQ(two.pairsAfterAStep(), 0);
  EXPECT_FALSE(two.filter.meddle) << "the filter was not asked";
  two.filter.accepts = true;
  two.broadphase.setAabb(two.second, two.far, two.far + two.high * 2, nullptr);
  EXPECT_EQ(two.pairsAfterAStep(), 0);
}

struct Count : btBroadphaseAabbCallback {
  bool process(const btBroadphaseProxy*) override { return ++count > 0; }
  int count = 0;
};

// If createProxy() throws, the caller gets no proxy and deletes the client object. So the broad
// phase must not keep it.
TEST(GhostFilters, AnObjectWhoseCreationThrowsIsNotAdded) {
  for (const bool handedIn : {false, true})
    for (const int objects : {1, 3})  // 1 uses createProxy, 3 uses createProxies
      for (int question = 1; question <= 3 * objects; ++question) {
        SCOPED_TRACE(question);
        btHashedOverlappingPairCache hashed;
        GpuLbvhBroadphase broadphase({}, handedIn ? &hashed : nullptr);
        btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
        btGhostPairCallback callback;
        Fickle filter;
        cache.setInternalGhostPairCallback(&callback);
        const btVector3 low(0, 0, 0), high(1, 1, 1);
        btPairCachingGhostObject ghosts[3];
        std::vector<btBroadphaseProxy*> proxies;
        for (btGhostObject& ghost : ghosts) {
          ghost.setUserIndex(0);
          proxies.push_back(broadphase.createProxy(low, high, 0, &ghost, 1, -1, nullptr));
          ghost.setBroadphaseHandle(proxies.back());
        }
        cache.setOverlapFilterCallback(&filter);
        filter.answersLeft = question;
        {
          std::vector<btCollisionObject> clients(static_cast<std::size_t>(objects));
          std::vector<GpuLbvhNewProxy> asked;
          for (btCollisionObject& client : clients) {
            client.setUserIndex(0);
            asked.push_back({low, high, 0, &client, 1, -1});
          }
          std::vector<btBroadphaseProxy*> created(clients.size());
          if (objects == 1)
            EXPECT_THROW(broadphase.createProxy(low, high, 0, &clients[0], 1, -1, nullptr), int);
          else
            EXPECT_THROW(broadphase.createProxies(asked.data(), objects, created.data(), nullptr),
                         int);
        }
        for (int step = 0; step < 2; ++step) {
          for (const btGhostObject& ghost : ghosts) EXPECT_EQ(ghost.getNumOverlappingObjects(), 2);
          EXPECT_EQ(cache.getNumOverlappingPairs(), 3);
          Count all;
          broadphase.aabbTest(low, high, all);
          EXPECT_EQ(all.count, 3);
          broadphase.calculateOverlappingPairs(nullptr);
        }
        for (btBroadphaseProxy* proxy : proxies) broadphase.destroyProxy(proxy, nullptr);
        broadphase.resetPool(nullptr);
        EXPECT_EQ(broadphase.createProxy(low, high, 0, &ghosts[0], 1, -1, nullptr)->m_uniqueId, 1)
            << "a proxy remained";
        broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(nullptr);
      }
}

/// Refuses all pairs until `accepts` is set. Calls whenAsked at its first call after that.
struct Turning : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
    if (accepts && whenAsked) std::exchange(whenAsked, nullptr)();
    return accepts;
  }
  bool accepts = false;
  mutable std::function<void()> whenAsked;
};

// The step has found the ghost's pairs. Before the step offers these pairs, a callback moves the
// ghost away.
TEST(AdapterGhostFilter, AGhostThatACallbackMovesAwayKeepsItsPairsUntilTheNextStep) {
  Turning filter;
  btGhostPairCallback callback;
  btCollisionObject a, b;
  btPairCachingGhostObject ghost;
  GpuLbvhBroadphase broadphase;
  btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
  cache.setInternalGhostPairCallback(&callback);
  cache.setOverlapFilterCallback(&filter);
  const btVector3 low(0, 0, 0), high(1, 1, 1), away(50, 50, 50);
  for (btCollisionObject* object : {&a, &b, static_cast<btCollisionObject*>(&ghost)})
    object->setBroadphaseHandle(broadphase.createProxy(low, high, 0, object, 1, -1, nullptr));
  broadphase.setAabb(b.getBroadphaseHandle(), -away, -away + high, nullptr);
  broadphase.setAabb(b.getBroadphaseHandle(), low, high, nullptr);
  filter.accepts = true;
  filter.whenAsked = [&] {
    broadphase.setAabb(ghost.getBroadphaseHandle(), away, away + high, nullptr);
  };
  broadphase.calculateOverlappingPairs(nullptr);
  EXPECT_FALSE(filter.whenAsked);
  EXPECT_EQ(ghost.getNumOverlappingObjects(), 2);
  broadphase.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ghost.getNumOverlappingObjects(), 0);
  EXPECT_EQ(cache.getNumOverlappingPairs(), 1) << "only the pair without the ghost";
  for (btCollisionObject* object : {&a, &b, static_cast<btCollisionObject*>(&ghost)})
    broadphase.destroyProxy(object->getBroadphaseHandle(), nullptr);
}

}  // namespace

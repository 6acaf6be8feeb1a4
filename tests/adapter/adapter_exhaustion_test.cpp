// SPDX-License-Identifier: Zlib
// Tests the adapter when memory runs out. Each allocation of a call fails in turn. No call throws,
// and the next step has all pairs. Replaces this process's operator new.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include "GpuLbvhBroadphase.h"
#include "failing_new.h"
#include "twins.h"

namespace {

using namespace twins;
using failing_new::callWith;

/// Allows f() only n allocations, for n = 0, 1, ... until none fails. Returns the last n.
template <class Make, class F, class Check>
int failEach(const Make& make, const F& f, const Check& check) {
  for (long n = 0; n < 1000; ++n) {
    SCOPED_TRACE(n);
    auto scene = make();
    bool hasFailed = true;
    EXPECT_NO_THROW(hasFailed = callWith(n, [&] { f(*scene); }));
    check(*scene);
    if (!hasFailed) return static_cast<int>(n);
    if (testing::Test::HasFailure()) break;
  }
  ADD_FAILURE() << "allocations still fail after 1,000 calls, or a check failed";
  return -1;
}

/// Ghosts, objects and a plane after one step. Each pair contains the plane.
struct Scene {
  explicit Scene(btOverlappingPairCache* cache)
      : isHandedIn(cache != nullptr), broadphase(optionsOf(), cache) {
    broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
    for (std::size_t i = 0; i < kCount; ++i) {
      if (i % 10 == 0) objects.push_back(std::make_unique<btPairCachingGhostObject>());
      if (i % 10 != 0) objects.push_back(std::make_unique<btCollisionObject>());
      create(btVector3(btScalar(3 * i), 0, 0));
    }
    const btVector3 far(100, 100, 100);
    broadphase.setAabb(proxies[0], -far, far, nullptr);
    broadphase.setPlane(proxies[0], btVector3(0, 1, 0), 2);
    broadphase.calculateOverlappingPairs(nullptr);
  }
  ~Scene() {
    for (btBroadphaseProxy* proxy : proxies) broadphase.destroyProxy(proxy, nullptr);
  }

  static GpuLbvhOptions optionsOf() {
    GpuLbvhOptions options;
    options.threads = 1;  // oneTBB does not expect its own allocations to fail
    options.backend = lbvh::Backend::host;
    options.sortsPairs = true;
    return options;
  }

  void create(const btVector3& at) {
    btBroadphaseProxy* proxy = broadphase.createProxy(
        at, at + btVector3(1, 1, 1), 0, objects[proxies.size() % kCount].get(), 1, -1, nullptr);
    if (proxy != nullptr) proxies.push_back(proxy);
  }
  void move() {
    for (std::size_t i = 1; i < kCount; i += 2) {
      const Box box = randomBox(random, 6, 2);
      broadphase.setAabb(proxies[i], box.min, box.max, nullptr);
    }
  }

  void checkAfterAStep() {
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_STREQ(broadphase.error(), "");
    std::set<std::pair<int, int>> expected;
    std::vector<std::pair<int, int>> found;
    for (std::size_t i = 0; i < proxies.size(); ++i)
      for (std::size_t j = i + 1; j < proxies.size(); ++j)
        if (overlap(proxies[i], proxies[j]) && (i != 0 || proxies[j]->m_aabbMin.y() <= 2))
          expected.insert({proxies[i]->m_uniqueId, proxies[j]->m_uniqueId});
    const btBroadphasePairArray& array =
        broadphase.getOverlappingPairCache()->getOverlappingPairArray();
    for (int i = 0; i < array.size(); ++i)
      found.emplace_back(array[i].m_pProxy0->m_uniqueId, array[i].m_pProxy1->m_uniqueId);
    if (isHandedIn) std::sort(found.begin(), found.end());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()))
        << "wrong pairs, or in a wrong order";
  }

  static constexpr std::size_t kCount = 300;
  const bool isHandedIn;
  Random random{95};
  btGhostPairCallback callback;
  std::vector<std::unique_ptr<btCollisionObject>> objects;
  GpuLbvhBroadphase broadphase;
  std::vector<btBroadphaseProxy*> proxies;
};

TEST(AdapterExhaustion, StepAfterAFailedAllocationHasAllPairs) {
  for (const bool handedIn : {false, true}) {
    btHashedOverlappingPairCache cache;
    const auto make = [&] { return std::make_unique<Scene>(handedIn ? &cache : nullptr); };
    const int allocations = failEach(
        make,
        [](Scene& scene) {
          scene.move();
          scene.broadphase.calculateOverlappingPairs(nullptr);
        },
        [](Scene& scene) { scene.checkAfterAStep(); });
    EXPECT_GT(allocations, 5) << "too few allocations to test anything";
  }
}

TEST(AdapterExhaustion, RefilterIsRepeatedAfterAFailedAllocation) {
  const int allocations = failEach([] { return std::make_unique<Scene>(nullptr); },
                                   [](Scene& scene) {
                                     scene.broadphase.refilter();
                                     scene.broadphase.calculateOverlappingPairs(nullptr);
                                   },
                                   [](Scene& scene) { scene.checkAfterAStep(); });
  EXPECT_GT(allocations, 2);
}

// Some programs free their bodies before their world. The world's destructor then reads the bodies'
// proxy pointers in freed memory. This works only if nothing was allocated since.
TEST(AdapterExhaustion, DestructionAllocatesNothing) {
  // The memory for 4,000 objects consists of whole pages. For 100 it comes from operator new.
  for (const auto [count, apart] : {std::pair(100, 1), std::pair(4000, 1), std::pair(4000, 20)}) {
    SCOPED_TRACE(testing::Message() << count << " objects, finally " << apart << " apart");
    GpuLbvhBroadphase broadphase(Scene::optionsOf());
    btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
    std::vector<btBroadphaseProxy*> row;
    const btVector3 side(40, 1, 1);
    for (int i = 0; i < count; ++i) {
      const btVector3 corner(btScalar(i), 0, 0);
      row.push_back(broadphase.createProxy(corner, corner + side, 0, nullptr, 1, -1, nullptr));
    }
    for (int step = 0; step < 3; ++step) {  // when the pairs become fewer, memory is given back
      broadphase.calculateOverlappingPairs(nullptr);
      for (int i = 0; i < count; ++i) {
        const btVector3 corner(btScalar(i * apart), 0, 0);
        broadphase.setAabb(row[std::size_t(i)], corner, corner + side, nullptr);
      }
    }
    EXPECT_GE(cache.getNumOverlappingPairs(), 2 * count - 3);
    EXPECT_FALSE(callWith(0, [&] {
      for (btBroadphaseProxy* proxy : row) {  // as in btCollisionWorld's destructor
        cache.cleanProxyFromPairs(proxy, nullptr);
        broadphase.destroyProxy(proxy, nullptr);
      }
    }));
    EXPECT_EQ(cache.getNumOverlappingPairs(), 0);
  }
}

// An allocation fails in a step, or in destroyProxy, which lists the object's refused pairs.
TEST(AdapterExhaustion, RefusedPairsAreNotForgotten) {
  struct Switch : btOverlapFilterCallback {
    bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
      return isOn;
    }
    bool isOn = false;
  } filter;
  for (const bool destroys : {false, true}) {
    const int allocations = failEach(
        [&] {
          filter.isOn = false;
          auto scene = std::make_unique<Scene>(nullptr);
          scene->broadphase.getOverlappingPairCache()->setOverlapFilterCallback(&filter);
          scene->move();
          scene->broadphase.calculateOverlappingPairs(nullptr);
          EXPECT_EQ(scene->broadphase.getOverlappingPairCache()->getNumOverlappingPairs(), 0);
          return scene;
        },
        [&](Scene& scene) {
          if (!destroys) scene.move();
          if (!destroys) return scene.broadphase.calculateOverlappingPairs(nullptr);
          scene.broadphase.destroyProxy(scene.proxies.back(), nullptr);
          scene.proxies.pop_back();
        },
        [&](Scene& scene) {
          filter.isOn = true;
          const btVector3 by(btScalar(0.125), 0, 0);
          for (std::size_t i = 1; i < scene.proxies.size(); ++i) {
            btBroadphaseProxy* proxy = scene.proxies[i];
            scene.broadphase.setAabb(proxy, proxy->m_aabbMin + by, proxy->m_aabbMax + by, nullptr);
          }
          scene.checkAfterAStep();
        });
    EXPECT_GT(allocations, destroys ? 1 : 5);
  }
}

TEST(AdapterExhaustion, CreateProxiesMakesAllOrNone) {
  std::vector<GpuLbvhNewProxy> objects(3000);
  btCollisionObject client;
  for (GpuLbvhNewProxy& object : objects) {
    object.aabbMin = object.aabbMax = btVector3(3, 5, 3);
    object.client = &client;
  }
  std::vector<btBroadphaseProxy*> created(objects.size());
  bool isCreated = false;
  const int allocations = failEach(
      [] { return std::make_unique<Scene>(nullptr); },
      [&](Scene& scene) {
        isCreated = scene.broadphase.createProxies(objects.data(), 3000, created.data(), nullptr);
      },
      [&](Scene& scene) {
        if (isCreated) scene.broadphase.destroyProxies(created.data(), 3000, nullptr);
        scene.checkAfterAStep();
      });
  EXPECT_GT(allocations, 5);
}

TEST(AdapterExhaustion, QueriesAndRemovalsDoNotNeedMemory) {
  struct Hits : btBroadphaseAabbCallback {
    bool process(const btBroadphaseProxy*) override { return ++count > 0; }
    int count = 0;
  };
  const auto make = [] {
    auto scene = std::make_unique<Scene>(nullptr);
    for (int i = 0; i < 2000; ++i) scene->create(btVector3(btScalar(2 * i), 5, 0));
    return scene;
  };
  failEach(
      make,
      [](Scene& scene) {
        Hits hits;
        const btVector3 far(9999, 9999, 9999);
        scene.broadphase.aabbTest(-far, far, hits);
        EXPECT_EQ(hits.count, static_cast<int>(scene.proxies.size()));
        for (int i = 0; i < 100; ++i) {
          scene.broadphase.destroyProxy(scene.proxies.back(), nullptr);
          scene.proxies.pop_back();
        }
      },
      [](Scene& scene) { scene.checkAfterAStep(); });
}

}  // namespace

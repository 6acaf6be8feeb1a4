// SPDX-License-Identifier: Zlib
// Tests that rayTest and aabbTest find all proxies and see every change immediately.
#include <btBulletCollisionCommon.h>
#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <thread>

#include "GpuLbvhBroadphase.h"
#include "support.h"

namespace {

using lbvh::test::Random;
using Proxies = std::set<const btBroadphaseProxy*>;

struct AabbHits : btBroadphaseAabbCallback {
  bool process(const btBroadphaseProxy* proxy) override {
    EXPECT_TRUE(hits.insert(proxy).second) << "visited twice";
    return true;
  }
  Proxies hits;
};

struct RayHits : btBroadphaseRayCallback {
  RayHits(const btVector3& from, const btVector3& to) {
    const btVector3 way = to - from, direction = way.normalized();
    for (int i = 0; i < 3; ++i) {
      m_rayDirectionInverse[i] =
          direction[i] == 0 ? btScalar(BT_LARGE_FLOAT) : btScalar(1) / direction[i];
      m_signs[i] = m_rayDirectionInverse[i] < 0;
    }
    m_lambda_max = direction.dot(way);
  }
  bool process(const btBroadphaseProxy* proxy) override {
    EXPECT_TRUE(hits.insert(proxy).second) << "visited twice";
    return true;
  }
  Proxies hits;
};

class Query : public testing::Test {
 protected:
  void create(int n) {
    for (int i = 0; i < n; ++i) {
      const btVector3 lo = point();
      proxies.push_back(ours.createProxy(lo, lo + extent(), 0, &number, 1, -1, nullptr));
    }
  }

  void move(std::size_t i) {
    const btVector3 lo = point();
    ours.setAabb(proxies[i], lo, lo + extent(), nullptr);
  }

  void destroy(std::size_t i) {
    ours.destroyProxy(proxies[i], nullptr);
    proxies.erase(proxies.begin() + static_cast<long>(i));
  }

  btVector3 point() {
    return {random.uniform(0, 20), random.uniform(0, 20), random.uniform(0, 20)};
  }
  btVector3 extent() { return {random.uniform(0, 3), random.uniform(0, 3), random.uniform(0, 3)}; }

  void expectBoxesRight() {
    const btVector3 lo = point(), hi = lo + extent() * 2;
    AabbHits found;
    ours.aabbTest(lo, hi, found);
    Proxies expected;
    for (const btBroadphaseProxy* p : proxies)
      if (TestAabbAgainstAabb2(lo, hi, p->m_aabbMin, p->m_aabbMax)) expected.insert(p);
    ASSERT_EQ(found.hits, expected);
  }

  // Every proxy that Bullet's own test accepts must be visited. At most one other may be visited.
  void expectRaysRight(const btVector3& swept) {
    const btVector3 from = point(), to = point();
    RayHits found(from, to);
    ours.rayTest(from, to, found, -swept, swept);
    std::size_t expected = 0;
    for (const btBroadphaseProxy* p : proxies) {
      const btVector3 bounds[2] = {p->m_aabbMin - swept, p->m_aabbMax + swept};
      btScalar tmin = 1;
      if (!btRayAabb2(from, found.m_rayDirectionInverse, found.m_signs, bounds, tmin, 0,
                      found.m_lambda_max))
        continue;
      ++expected;
      ASSERT_EQ(found.hits.count(p), 1u);
    }
    ASSERT_LE(found.hits.size(), expected + 1);
  }

  void expectRight() {
    for (int i = 0; i < 5; ++i) {
      expectBoxesRight();
      expectRaysRight(btVector3(0, 0, 0));
      expectRaysRight(btVector3(1, btScalar(0.5), btScalar(0.25)));
    }
  }

  Random random{61};
  int number = 0;
  GpuLbvhBroadphase ours;
  std::vector<btBroadphaseProxy*> proxies;
};

TEST_F(Query, SeesEveryChangeAtOnce) {
  expectRight();
  create(3);
  expectRight();
  create(300);
  expectRight();
  for (int round = 0; round < 60; ++round) {
    if (round % 4 == 3) ours.calculateOverlappingPairs(nullptr);
    for (std::uint32_t i = random.below(round % 5 == 0 ? 200 : 10); i > 0; --i)
      move(random.below(static_cast<std::uint32_t>(proxies.size())));
    create(static_cast<int>(random.below(4)));
    for (std::uint32_t i = random.below(4); i > 0; --i)
      destroy(random.below(static_cast<std::uint32_t>(proxies.size())));
    expectRight();
  }
}

// Queries follow steps in which the host searched only for the pairs of moved boxes.
TEST_F(Query, FindsBothRestingAndMovingBoxes) {
  create(400);
  const btVector3 far(btScalar(1e30), btScalar(1e30), btScalar(1e30));
  proxies.push_back(ours.createProxy(-far, far, 0, &number, 1, -1, nullptr));
  ours.calculateOverlappingPairs(nullptr);
  expectRight();
  int restingSteps = 0;
  for (int round = 0; round < 12; ++round) {
    for (std::uint32_t i = 0; i < 8; ++i) move(random.below(380));
    ours.calculateOverlappingPairs(nullptr);
    restingSteps += ours.stats().searched < 400;
    expectRight();
    move(random.below(380));
    destroy(random.below(380));
    create(1);
    expectRight();
  }
  if (ours.stats().backend == "host") EXPECT_GE(restingSteps, 8);
}

// Few or many boxes change between two queries. After enough changes, a query packs all boxes
// again.
TEST_F(Query, FindsWhatHasChangedSinceTheLastStep) {
  create(3000);
  const btScalar nan = std::numeric_limits<btScalar>::quiet_NaN();
  const btVector3 far(btScalar(1e30), btScalar(1e30), btScalar(1e30)), away(1000, 1000, 1000);
  btBroadphaseProxy* const odd = ours.createProxy(away, away, 0, &number, 1, -1, nullptr);
  proxies.push_back(ours.createProxy(-far, far, 0, &number, 1, -1, nullptr));
  ours.calculateOverlappingPairs(nullptr);
  for (const std::uint32_t most : {1u, 5u, 40u, 90u, 300u}) {
    SCOPED_TRACE(most);
    for (int round = 0; round < 40; ++round) {
      for (std::uint32_t i = random.below(most) + 1; i > 0; --i) move(random.below(400));
      const btVector3 lo = round % 3 == 0 ? btVector3(nan, 0, 0) : away * btScalar(round + 1);
      ours.setAabb(odd, lo, away * btScalar(round + 1), nullptr);
      if (round % 4 == 0) destroy(random.below(2000));
      if (round % 4 == 1) create(1);
      ASSERT_NO_FATAL_FAILURE(expectRight());
    }
    ours.calculateOverlappingPairs(nullptr);
  }
}

/// Calls `change` at the first hit.
struct MovingHits : AabbHits {
  explicit MovingHits(std::function<void()> f) : change(std::move(f)) {}
  bool process(const btBroadphaseProxy* proxy) override {
    AabbHits::process(proxy);
    if (hits.size() == 1) change();
    return true;
  }
  const std::function<void()> change;
};

TEST_F(Query, ACallbackMayMoveManyBoxesAndQueryAgain) {
  create(500);
  for (const std::size_t before : {0u, 20u, 100u}) {
    SCOPED_TRACE(before);
    ours.calculateOverlappingPairs(nullptr);
    for (std::size_t i = 0; i < before; ++i) move(i);
    expectBoxesRight();
    MovingHits outer([this] {
      for (std::size_t i = 50; i < 150; ++i) move(i);
      expectRight();
    });
    ours.aabbTest(btVector3(0, 0, 0), btVector3(30, 30, 30), outer);
    EXPECT_GE(outer.hits.size(), 400u) << "boxes that did not move";
    expectRight();
  }
}

TEST_F(Query, ParallelRaysAlongAFaceHit) {
  create(0);
  proxies.push_back(
      ours.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, &number, 1, -1, nullptr));
  const btVector3 from(-5, 1, btScalar(0.5)), to(5, 1, btScalar(0.5));
  RayHits along(from, to);
  ours.rayTest(from, to, along);
  EXPECT_EQ(along.hits.size(), 1u) << "touching counts";
}

/// A ray whose inverse direction is computed as in the callbacks of btCollisionWorld. With
/// `divides`, the inverse of a zero or a denormal is infinite, as in programs that do the division
/// themselves.
struct EdgeRay : RayHits {
  EdgeRay(const btVector3& direction, btScalar length, bool divides)
      : RayHits(btVector3(0, 0, 0), btVector3(1, 0, 0)) {
    for (int i = 0; i < 3; ++i) {
      m_rayDirectionInverse[i] =
          direction[i] == 0 && !divides ? btScalar(BT_LARGE_FLOAT) : btScalar(1) / direction[i];
      m_signs[i] = m_rayDirectionInverse[i] < 0;
    }
    m_lambda_max = length;
  }
};

bool bulletHits(const EdgeRay& ray, const btVector3& from, const btBroadphaseProxy* box,
                btScalar by = 0) {
  const btVector3 fat(by, by, by);
  const btVector3 bounds[2] = {box->m_aabbMin - fat, box->m_aabbMax + fat};
  btScalar tmin = 1;
  return btRayAabb2(from, ray.m_rayDirectionInverse, ray.m_signs, bounds, tmin, 0,
                    ray.m_lambda_max + by);
}

// Origins are on faces, closer to a face than a float can resolve, or far away. Directions include
// zeros of both signs and denormals, and lengths include 0 and infinity. The rays must hit all
// boxes that Bullet's test hits, and also boxes that they only touch.
TEST_F(Query, EdgeRaysHitAllThatBulletsTestHits) {
  using Limits = std::numeric_limits<btScalar>;
  const btScalar places[] = {btScalar(-3),   btScalar(-1e-18), -Limits::denorm_min(),
                             btScalar(-0.0), btScalar(0),      Limits::denorm_min(),
                             btScalar(0.5),  btScalar(1),      1 + Limits::epsilon(),
                             btScalar(5)};
  const btScalar ways[] = {btScalar(0),           btScalar(-0.0),  Limits::denorm_min(),
                           -Limits::denorm_min(), btScalar(1e-20), btScalar(1),
                           btScalar(-1),          btScalar(0.6)};
  const btScalar lengths[] = {0,           Limits::denorm_min(),     btScalar(0.5),
                              btScalar(9), btScalar(BT_LARGE_FLOAT), Limits::infinity()};
  const btVector3 boxes[][2] = {
      {{0, 0, 0}, {1, 1, 1}}, {{1, 0, 0}, {2, 1, 0}}, {{0, 0, 0}, {0, 0, 0}}};
  for (const auto& box : boxes)
    proxies.push_back(ours.createProxy(box[0], box[1], 0, &number, 1, -1, nullptr));
  ours.calculateOverlappingPairs(nullptr);
  int hits = 0, touched = 0;
  for (int i = 0; i < 200000; ++i) {
    btVector3 from, way;
    for (int axis = 0; axis < 3; ++axis) {
      from[axis] = places[random.below(std::size(places))];
      way[axis] = ways[random.below(std::size(ways))];
    }
    EdgeRay ray(way, lengths[random.below(std::size(lengths))], random.below(2) == 0);
    ours.rayTest(from, from + way, ray);
    for (const btBroadphaseProxy* box : proxies) {
      const bool isHit = ray.hits.count(box) != 0, bullets = bulletHits(ray, from, box);
      ASSERT_TRUE(isHit || !bullets) << i;
      // Bullet's test misses boxes on some endless rays, because it treats 1e18 as infinity.
      if (isHit && ray.m_lambda_max < 10)
        ASSERT_TRUE(bulletHits(ray, from, box, btScalar(0.01))) << i;
      hits += bullets;
      touched += isHit && !bullets;
    }
  }
  EXPECT_GT(hits, 10000);
  EXPECT_GT(touched, 1000);
}

TEST_F(Query, RaysHitNothingBehindOrBeyondTheirEnds) {
  proxies.push_back(
      ours.createProxy(btVector3(10, 0, 0), btVector3(11, 1, 1), 0, &number, 1, -1, nullptr));
  const btVector3 from(0, btScalar(0.5), btScalar(0.5));
  for (const bool stepped : {false, true}) {
    if (stepped) ours.calculateOverlappingPairs(nullptr);
    RayHits shortRay(from, btVector3(9, btScalar(0.5), btScalar(0.5)));
    ours.rayTest(from, btVector3(9, btScalar(0.5), btScalar(0.5)), shortRay);
    EXPECT_TRUE(shortRay.hits.empty());
    RayHits behind(from, btVector3(-30, btScalar(0.5), btScalar(0.5)));
    ours.rayTest(from, btVector3(-30, btScalar(0.5), btScalar(0.5)), behind);
    EXPECT_TRUE(behind.hits.empty());
    RayHits longRay(from, btVector3(12, btScalar(0.5), btScalar(0.5)));
    ours.rayTest(from, btVector3(12, btScalar(0.5), btScalar(0.5)), longRay);
    EXPECT_EQ(longRay.hits.size(), 1u);
  }
}

TEST_F(Query, ZeroLengthRaysHitWhatContainsThem) {
  create(200);
  for (const bool stepped : {false, true}) {
    if (stepped) ours.calculateOverlappingPairs(nullptr);
    for (int i = 0; i < 20; ++i) {
      const btVector3 at = point();
      RayHits found(at, at);
      for (int axis = 0; axis < 3; ++axis)
        found.m_rayDirectionInverse[axis] = std::numeric_limits<btScalar>::quiet_NaN();
      found.m_lambda_max = 0;
      ours.rayTest(at, at, found);
      Proxies expected;
      for (const btBroadphaseProxy* p : proxies)
        if (TestAabbAgainstAabb2(at, at, p->m_aabbMin, p->m_aabbMax)) expected.insert(p);
      EXPECT_EQ(found.hits, expected);
    }
  }
}

TEST_F(Query, OddBoxesAreMissedBeforeAndAfterAStep) {
  const btScalar nan = std::numeric_limits<btScalar>::quiet_NaN(), huge = btScalar(1e18);
  ours.createProxy(btVector3(nan, 0, 0), btVector3(1, 1, 1), 0, &number, 1, -1, nullptr);
  ours.createProxy(btVector3(huge, huge, huge), btVector3(-huge, -huge, -huge), 0, &number, 1, -1,
                   nullptr);
  const btBroadphaseProxy* plane = ours.createProxy(
      btVector3(-huge, -huge, -huge), btVector3(huge, huge, huge), 0, &number, 1, -1, nullptr);
  const btVector3 from(-5, -5, -5), to(5, 5, 5);
  for (const bool stepped : {false, true}) {
    if (stepped) ours.calculateOverlappingPairs(nullptr);
    RayHits ray(from, to);
    ours.rayTest(from, to, ray);
    EXPECT_EQ(ray.hits, Proxies{plane}) << "stepped " << stepped;
    AabbHits box;
    ours.aabbTest(from, to, box);
    EXPECT_EQ(box.hits, Proxies{plane}) << "stepped " << stepped;
  }
}

TEST_F(Query, NothingIsLeftAfterResetPool) {
  for (int i = 0; i < 5; ++i)
    proxies.push_back(ours.createProxy(btVector3(-1e18f, -1e18f, -1e18f),
                                       btVector3(1e18f, 1e18f, 1e18f), 0, &number, 1, -1, nullptr));
  create(20);
  ours.calculateOverlappingPairs(nullptr);
  while (!proxies.empty()) destroy(0);
  ours.resetPool(nullptr);
  AabbHits found;
  ours.aabbTest(btVector3(0, 0, 0), btVector3(9, 9, 9), found);
  EXPECT_TRUE(found.hits.empty());
  create(3);
  expectRight();
}

TEST_F(Query, IsRightAfterAFailedStep) {
  lbvh::Options options;
  options.maxPairs = 3;
  GpuLbvhBroadphase small(options);
  for (int i = 0; i < 100; ++i)
    small.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, &number, 1, -1, nullptr);
  small.calculateOverlappingPairs(nullptr);
  ASSERT_STRNE(small.error(), "");
  AabbHits found;
  small.aabbTest(btVector3(0, 0, 0), btVector3(9, 9, 9), found);
  EXPECT_EQ(found.hits.size(), 100u);
}

TEST_F(Query, IsSafeOnManyThreads) {
  create(3000);  // there was no step, so the first query packs all boxes, on any thread
  const std::size_t movedAfter[] = {10, 2000, 60, 100, 10, 300, 0};
  for (int round = 0; round < 7; ++round) {
    Proxies expected;
    const btVector3 lo(5, 5, 5), hi(9, 9, 9);
    for (const btBroadphaseProxy* p : proxies)
      if (TestAabbAgainstAabb2(lo, hi, p->m_aabbMin, p->m_aabbMax)) expected.insert(p);
    std::vector<AabbHits> found(4);
    std::vector<std::thread> threads;
    for (AabbHits& hits : found) threads.emplace_back([&] { ours.aabbTest(lo, hi, hits); });
    for (std::thread& thread : threads) thread.join();
    for (const AabbHits& hits : found) EXPECT_EQ(hits.hits, expected);
    for (std::size_t i = 0; i < movedAfter[round]; ++i) move(i);
  }
}

}  // namespace

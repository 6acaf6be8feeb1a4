// SPDX-License-Identifier: Zlib
// Tests pairs that float boxes cannot decide, planes that are given by an equation, and unusual
// boxes.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include <cmath>
#include <deque>
#include <limits>

#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace {

using namespace twins;

// With double-precision Bullet, the differences of 1e-9 are far below a float's resolution at these
// coordinates.
TEST(AdapterExact, PairsAreExactWhereFloatsCannotTell) {
  Random random(91);
  btHashedOverlappingPairCache hashed;
  btSortedOverlappingPairCache sorted;
  GpuLbvhOptions binary;
  binary.hierarchy = lbvh::Hierarchy::binary;
  GpuLbvhBroadphase ours, withHashed({}, &hashed), withSorted({}, &sorted), overTree(binary);
  GpuLbvhBroadphase* all[] = {&ours, &withHashed, &withSorted, &overTree};
  std::vector<btBroadphaseProxy*> proxies[4];
  std::vector<int> numbers(60);
  const auto tiny = [&] { return btScalar(random.below(5)) * btScalar(1e-9); };
  const auto corner = [&] {
    return btVector3(1000 + btScalar(random.below(3)) + tiny(), tiny() - 2000, 7 + tiny());
  };
  std::size_t pairs = 0, changes = 0;
  PairSet last;
  for (int step = 0; step < 150; ++step) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (step > 0 && random.below(4) != 0) continue;
      numbers[i] = static_cast<int>(i);
      const btVector3 min = corner(), max = min + btVector3(1, 1, 1);
      const bool isNew = step == 0 || (step % 10 == 0 && random.below(4) == 0);
      for (std::size_t k = 0; k < 4; ++k) {
        if (isNew) {
          if (step > 0) all[k]->destroyProxy(proxies[k][i], nullptr);
          proxies[k].resize(numbers.size());
          proxies[k][i] = all[k]->createProxy(min, max, 0, &numbers[i], 1, -1, nullptr);
        } else {
          all[k]->setAabb(proxies[k][i], min, max, nullptr);
        }
      }
    }
    for (GpuLbvhBroadphase* broadphase : all) broadphase->calculateOverlappingPairs(nullptr);
    const PairSet expected = bruteForce(proxies[0]);
    for (GpuLbvhBroadphase* broadphase : all) ASSERT_EQ(pairsOf(*broadphase), expected) << step;
    pairs += expected.size();
    changes += expected != last;
    last = expected;
  }
  EXPECT_GT(pairs, 1000u);
  EXPECT_GT(changes, 100u);
}

struct HalfSpace {
  btVector3 normal;
  btScalar constant;
  bool meets(const btBroadphaseProxy* box) const {
    double lowest = -double(constant);
    for (int axis = 0; axis < 3; ++axis)
      lowest += double(normal[axis]) *
                double(normal[axis] > 0 ? box->m_aabbMin[axis] : box->m_aabbMax[axis]);
    return lowest <= 0;
  }
};

/// Puts the same planes and boxes into three broad phases, each with a different kind of cache.
class WithPlanes : public testing::Test {
 protected:
  btBroadphaseProxy* create(const btVector3& min, const btVector3& max) {
    numbers.push_back(static_cast<int>(numbers.size()));
    for (std::size_t k = 0; k < 3; ++k)
      proxies[k].push_back(all[k]->createProxy(min, max, 0, &numbers.back(), 1, -1, nullptr));
    return proxies[0].back();
  }
  void setPlane(std::size_t i, const HalfSpace& plane) {
    planes[i] = plane;
    for (std::size_t k = 0; k < 3; ++k)
      ASSERT_TRUE(all[k]->setPlane(proxies[k][i], plane.normal, plane.constant));
  }
  void step() {
    for (GpuLbvhBroadphase* broadphase : all) broadphase->calculateOverlappingPairs(nullptr);
  }
  bool isPair(std::size_t i, std::size_t j) const {
    if (!overlap(proxies[0][i], proxies[0][j])) return false;
    const auto p = planes.find(i), q = planes.find(j);
    return (p == planes.end() || p->second.meets(proxies[0][j])) &&
           (q == planes.end() || q->second.meets(proxies[0][i]));
  }
  PairSet expected() const {
    PairSet pairs;
    for (std::size_t i = 0; i < proxies[0].size(); ++i)
      for (std::size_t j = i + 1; j < proxies[0].size(); ++j)
        if (isPair(i, j)) pairs.insert({static_cast<int>(i), static_cast<int>(j)});
    return pairs;
  }

  Random random{92};
  std::deque<int> numbers;
  btHashedOverlappingPairCache hashed;
  btSortedOverlappingPairCache sorted;
  GpuLbvhBroadphase ours, withHashed{{}, &hashed}, withSorted{{}, &sorted};
  GpuLbvhBroadphase* all[3] = {&ours, &withHashed, &withSorted};
  std::vector<btBroadphaseProxy*> proxies[3];
  std::map<std::size_t, HalfSpace> planes;
};

TEST_F(WithPlanes, PlanesPairWithBoxesThatReachIntoThem) {
  const btScalar endless = btScalar(1e18);
  const btVector3 far(endless, endless, endless);
  create(-far, far);  // the floor
  for (int i = 0; i < 120; ++i) {
    const Box box = randomBox(random, 12, 2);
    create(box.min, box.max);
  }
  create(-far, far);  // a slope
  const HalfSpace slopes[] = {{btVector3(1, 2, btScalar(-0.5)), 3}, {btVector3(-3, 1, 0), -4}};
  std::size_t refused = 0;
  for (int round = 0; round < 80; ++round) {
    if (round == 10) setPlane(0, {btVector3(0, 1, 0), 2});
    if (round >= 20 && round % 10 == 0) setPlane(121, slopes[round / 10 % 2]);
    if (round == 65) {
      planes.erase(0);
      for (std::size_t k = 0; k < 3; ++k) all[k]->clearPlane(proxies[k][0]);
    }
    if (round % 3 != 2)  // in the other rounds nothing moves
      for (int moves = 0; moves < 15; ++moves) {
        const std::size_t i = 1 + random.below(120);
        const Box box = randomBox(random, 12, 2);
        for (std::size_t k = 0; k < 3; ++k)
          all[k]->setAabb(proxies[k][i], box.min, box.max, nullptr);
      }
    step();
    const PairSet pairs = expected();
    for (GpuLbvhBroadphase* broadphase : all) ASSERT_EQ(pairsOf(*broadphase), pairs) << round;
    refused += ours.stats().pairs - pairs.size();
  }
  EXPECT_GT(refused, 1000u);
}

TEST_F(WithPlanes, ASlotReusedAfterAPlaneIsNoPlane) {
  const btVector3 far(100, 100, 100);
  create(-far, far);
  create(btVector3(0, 1, 0), btVector3(1, 2, 1));
  setPlane(0, {btVector3(0, 1, 0), 0});
  step();
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 0);
  for (std::size_t k = 0; k < 3; ++k) {
    all[k]->destroyProxy(proxies[k][0], nullptr);
    proxies[k].erase(proxies[k].begin());
  }
  create(-far, far);  // reuses the plane's slot
  step();
  for (GpuLbvhBroadphase* broadphase : all)
    EXPECT_EQ(broadphase->getOverlappingPairCache()->getNumOverlappingPairs(), 1);
}

TEST(AdapterExact, TheMarginAppliesToPlanes) {
  GpuLbvhOptions options;
  options.margin = btScalar(0.5);
  GpuLbvhBroadphase broadphase(options);
  const btVector3 far(100, 100, 100), one(1, 1, 1), up(0, 1, 0);
  btBroadphaseProxy* plane = broadphase.createProxy(-far, far, 0, nullptr, 1, -1, nullptr);
  btBroadphaseProxy* box = broadphase.createProxy(one, one + one, 0, nullptr, 1, -1, nullptr);
  for (const btScalar height : {btScalar(0.4), btScalar(0.5), btScalar(0.7)}) {
    ASSERT_TRUE(broadphase.setPlane(plane, up, height));
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(broadphase.getOverlappingPairCache()->findPair(plane, box) != nullptr, height >= 0.5);
  }
}

TEST(AdapterExact, GhostsAboveAPlaneDoNotOverlapIt) {
  GpuLbvhBroadphase broadphase;
  btGhostPairCallback callback;
  broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  btCollisionObject floor;
  btGhostObject ghost;
  const btVector3 far(100, 100, 100), one(1, 1, 1);
  btBroadphaseProxy* plane = broadphase.createProxy(-far, far, 0, &floor, 1, -1, nullptr);
  ASSERT_TRUE(broadphase.setPlane(plane, btVector3(0, 1, 0), 0));
  btBroadphaseProxy* proxy = broadphase.createProxy(one, one + one, 0, &ghost, 1, -1, nullptr);
  EXPECT_EQ(ghost.getNumOverlappingObjects(), 0);
  broadphase.setAabb(proxy, btVector3(0, 0, 0), one, nullptr);
  EXPECT_EQ(ghost.getNumOverlappingObjects(), 1) << "touching counts";
  broadphase.setAabb(proxy, one, one + one, nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ghost.getNumOverlappingObjects(), 0);
  broadphase.destroyProxy(proxy, nullptr);
  broadphase.destroyProxy(plane, nullptr);
}

// Uses boxes such as broken simulations produce, and boxes of infinite shapes. The pairs must
// equal those of brute force, and NaN and oversized boxes must be counted.
TEST(AdapterExact, OddBoxesAreSafeExactAndCounted) {
  const btScalar inf = std::numeric_limits<btScalar>::infinity();
  const btScalar nan = std::numeric_limits<btScalar>::quiet_NaN();
  const btScalar huge = std::numeric_limits<btScalar>::max();
  const auto cube = [](btScalar half) { return Box{{-half, -half, -half}, {half, half, half}}; };
  std::vector<Box> odd = {cube(btScalar(1e18)),
                          cube(btScalar(1e30)),
                          cube(huge),
                          cube(inf),
                          cube(-1),
                          cube(-inf),
                          cube(nan),
                          {{nan, 0, 0}, {3, 3, 3}},
                          {{0, 0, 0}, {inf, 1, 1}},
                          {{5, 0, 0}, {1, 9, 9}},
                          {{huge, 0, 0}, {huge, 9, 9}},
                          {{inf, 0, 0}, {inf, 9, 9}},
                          {{-inf, 0, 0}, {-huge, 9, 9}}};
  Random random(93);
  GpuLbvhBroadphase ours;
  std::vector<int> numbers(100 + odd.size());
  std::vector<btBroadphaseProxy*> proxies;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<int>(i);
    const Box box = i < odd.size() ? odd[i] : randomBox(random, 12, 2);
    proxies.push_back(ours.createProxy(box.min, box.max, 0, &numbers[i], 1, -1, nullptr));
  }
  for (int step = 0; step < 60; ++step) {
    ours.calculateOverlappingPairs(nullptr);
    ASSERT_EQ(pairsOf(ours), bruteForce(proxies)) << step;
    ASSERT_STREQ(ours.error(), "");
    std::size_t nans = 0;
    for (const btBroadphaseProxy* proxy : proxies) {
      bool isNan = false;
      for (int axis = 0; axis < 3; ++axis)
        isNan |= std::isnan(proxy->m_aabbMin[axis]) || std::isnan(proxy->m_aabbMax[axis]);
      nans += isNan;
    }
    EXPECT_EQ(ours.stats().nanBoxes, nans);
    if (step == 0) EXPECT_GE(ours.stats().oversizedBoxes, 4u);
    const std::size_t i = random.below(static_cast<std::uint32_t>(proxies.size()));
    const Box box = odd[random.below(static_cast<std::uint32_t>(odd.size()))];
    ours.setAabb(proxies[i], box.min, box.max, nullptr);
    const std::size_t j = random.below(static_cast<std::uint32_t>(odd.size()));
    const Box back = randomBox(random, 12, 2);
    if (step % 2 == 0) ours.setAabb(proxies[j], back.min, back.max, nullptr);
  }
}

}  // namespace

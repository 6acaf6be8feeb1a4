// SPDX-License-Identifier: Zlib
// Tests the parts of the viewer that need a world but no OpenGL: picking, changes of pairs, data of
// graphs, overlays, sessions, and the check of swapped broad phases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "verify.h"
#include "view.h"
#include "world_box.h"

namespace {

SessionOptions smallScene(const char* scene, int objects, const char* broadphase = "gpu-lbvh") {
  SessionOptions options;
  options.scene = scene;
  options.objects = objects;
  options.broadphase = broadphase;
  options.finder.threads = 1;
  return options;
}

/// A world of two boxes of side 2, `distance` apart, without gravity.
struct TwoBoxes {
  World world{makeBroadphase("gpu-lbvh", {})};
  btBoxShape shape{{1, 1, 1}};
  btRigidBody& a = world.addMoving(shape, 1, at(0, 0, 0));
  btRigidBody& b = world.addMoving(shape, 1, at(5, 0, 0));

  TwoBoxes() { world.bullet().setGravity({0, 0, 0}); }

  void stepAt(btScalar distance) {
    for (btRigidBody* body : {&a, &b}) {
      body->setWorldTransform(at(body == &b ? distance : 0, 0, 0));
      body->setLinearVelocity({0, 0, 0});
      body->setAngularVelocity({0, 0, 0});
    }
    world.step();
  }
};

TEST(ViewerPicking, FindsTheObjectAndItsPairs) {
  TwoBoxes two;
  two.stepAt(btScalar(1.9));
  const PickRay ray{{0, 0, 10}, {0, 0, -1}};
  ASSERT_EQ(pick(two.world, ray), &two.a);
  const std::vector<Partner> partners = partnersOf(two.world, two.a);
  ASSERT_EQ(partners.size(), 1u);
  EXPECT_EQ(partners[0].object, &two.b);
  EXPECT_GT(partners[0].contacts, 0);
  EXPECT_EQ(pick(two.world, {{0, 5, 10}, {0, 0, -1}}), nullptr);
  EXPECT_NE(pick(two.world, ray, {&two.a}), &two.a) << "an object that is passed as transparent";
  two.stepAt(5);
  EXPECT_TRUE(partnersOf(two.world, two.a).empty());
}

TEST(ViewerChanges, FlashWhenAPairIsAddedOrRemoved) {
  TwoBoxes two;
  PairChanges changes;
  two.stepAt(5);
  changes.update(two.world);
  EXPECT_TRUE(changes.flashes().empty());
  two.stepAt(btScalar(1.9));
  changes.update(two.world);
  ASSERT_EQ(changes.flashes().size(), 1u);
  EXPECT_TRUE(changes.flashes()[0].isAdded);
  EXPECT_EQ(changes.added(), 1u);
  two.stepAt(5);
  changes.update(two.world);
  ASSERT_EQ(changes.flashes().size(), 2u);
  EXPECT_FALSE(changes.flashes()[1].isAdded);
  EXPECT_EQ(changes.flashes()[0].age, 1);
  EXPECT_EQ(changes.removed(), 1u);
  for (int i = 1; i < PairChanges::kLifetime; ++i) changes.update(two.world);
  EXPECT_EQ(changes.flashes().size(), 1u) << "the first flash has ended";
  changes.update(two.world);
  EXPECT_TRUE(changes.flashes().empty());
  two.stepAt(btScalar(1.9));
  changes.reset(two.world);
  changes.update(two.world);
  EXPECT_TRUE(changes.flashes().empty()) << "pairs from before the reset do not flash";
}

TEST(ViewerGraphs, KeepTheLastStepsAndEndOnRoundNumbers) {
  History history;
  EXPECT_EQ(history.last(), nullptr);
  for (int i = 0; i < 300; ++i) {
    StepRecord record;
    record.pairs = i;
    history.add(record);
  }
  EXPECT_EQ(history.size(), History::kSteps);
  EXPECT_EQ(history[0].pairs, 300 - int(History::kSteps));
  EXPECT_EQ(history.last()->pairs, 299);
  for (const auto& [value, end] :
       {std::pair(0.0, 1.0), {0.3, 0.5}, {1.0, 1.0}, {1.1, 2.0}, {4.0, 5.0}, {76134.0, 100000.0}})
    EXPECT_NEAR(niceCeiling(value), end, 1e-9 * end) << value;
}

TEST(ViewerGraphs, ASlowStepDoesNotFlattenTheRest) {
  History history;
  for (int i = 0; i < 100; ++i) {
    StepRecord record;
    record.times.solver = i == 50 ? 1000 : 4;
    history.add(record);
  }
  const std::vector<Series> solver = {
      {"solver", {}, [](const StepRecord& record) { return record.times.solver; }}};
  EXPECT_DOUBLE_EQ(reachOf(history, solver, true), 10);
  EXPECT_DOUBLE_EQ(reachOf(history, solver, false), 1000);
  EXPECT_DOUBLE_EQ(reachOf({}, solver, true), 0);
}

TEST(ViewerOverlays, DrawLinesForEveryBoxPairAndChange) {
  View view(smallScene("pile", 60));
  for (int i = 0; i < 40; ++i) view.step();
  World& world = view.session().world();
  ASSERT_GT(world.pairs(), 20);
  const std::size_t plain = view.draw().lines.size();  // the lines are outlines of walls
  view.switches.boxes = true;
  EXPECT_EQ(view.draw().lines.size() - plain, 12u * std::size_t(world.objects()));
  view.switches = {};
  view.switches.pairs = true;
  EXPECT_EQ(view.draw().linesBetween.size(), std::size_t(world.pairs()));
  view.switches = {};
  view.switches.changes = true;
  EXPECT_EQ(view.draw().linesBetween.size(), view.session().changes().flashes().size());
}

/// Number of lines that the overlay `tree` draws.
std::size_t treeLines(View& view, int level) {
  view.switches = {};
  const std::size_t plain = view.draw().lines.size();  // the lines are outlines of walls
  view.switches.tree = true;
  view.switches.treeLevel = level;
  return view.draw().lines.size() - plain;
}

TEST(ViewerOverlays, DrawTheHierarchyThatFindsThePairs) {
  View view(smallScene("pile", 60));
  for (int i = 0; i < 40; ++i) view.step();
  const auto objects = std::size_t(view.session().world().objects());
  const std::size_t blocks = (objects + 15) / 16;
  ASSERT_GT(blocks, 2u);
  view.swap("gpu-lbvh", {});
  EXPECT_EQ(treeLines(view, 0), 12u);
  EXPECT_EQ(treeLines(view, 1), 12 * blocks) << "wide: the leaf blocks below the root";
  EXPECT_EQ(treeLines(view, 2), 12 * objects);
  EXPECT_EQ(treeLines(view, kMaxTreeLevel), 12 * objects);
  lbvh::Options binary;
  binary.hierarchy = lbvh::Hierarchy::binary;
  view.swap("gpu-lbvh", binary);
  EXPECT_EQ(treeLines(view, 0), 12u);
  EXPECT_EQ(treeLines(view, 1), 12u * 2);
  EXPECT_EQ(treeLines(view, kMaxTreeLevel), 12 * objects);
  view.swap("dbvt", {});
  EXPECT_EQ(treeLines(view, kMaxTreeLevel), 12 * objects);
  EXPECT_LE(treeLines(view, 1), 12u * 4) << "Bullet has a second tree, for static objects";
}

TEST(ViewerOverlays, ShowBoxesThatAreTestedOneByOne) {
  View view(smallScene("stack", 20));
  view.switches.oversized = true;
  view.draw();
  const std::size_t before = view.overlays().oversizedBoxes();
  btStaticPlaneShape plane({0, 1, 0}, 0);
  btRigidBody ground(0, nullptr, &plane);
  view.session().world().bullet().addRigidBody(&ground);
  EXPECT_EQ(view.draw().linesOnTop.size(), 12u * (before + 1));
  EXPECT_EQ(view.overlays().oversizedBoxes(), before + 1);
  view.session().world().bullet().removeRigidBody(&ground);
}

TEST(ViewerScene, WallsInFrontAreOutlines) {
  World world(makeBroadphase("gpu-lbvh", {}));
  btBoxShape small({1, 1, 1}), wall({10, 10, btScalar(0.1)}), floor({10, btScalar(0.1), 10});
  world.addMoving(small, 1, at(-3, 1, 0));
  world.addMoving(small, 1, at(3, 1, 0));
  const btRigidBody& front = world.addStatic(wall, at(0, 5, 5));
  world.addStatic(wall, at(0, 5, -5));
  world.addStatic(floor, at(0, -1, 0));
  const btRigidBody& ceiling = world.addStatic(floor, at(0, 30, 0));
  Camera camera;
  camera.yaw = 0;
  camera.pitch = 10;
  camera.target.setValue(0, 1, 0);
  const auto found = blockers(world, extentOf(world), camera);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], &front);
  EXPECT_EQ(found[1], &ceiling);
}

TEST(ViewerVerify, DetectsALostPairAnExtraPairAndALostObject) {
  TwoBoxes two;
  two.stepAt(btScalar(1.9));
  World& world = two.world;
  EXPECT_EQ(verifyWorld(world, 2, PairPromise::exact), "");
  EXPECT_NE(verifyWorld(world, 3, PairPromise::exact), "");
  btOverlappingPairCache& cache = *world.broadphase().getOverlappingPairCache();
  btBroadphaseProxy *a = two.a.getBroadphaseHandle(), *b = two.b.getBroadphaseHandle();
  cache.removeOverlappingPair(a, b, world.bullet().getDispatcher());
  EXPECT_NE(verifyWorld(world, 2, PairPromise::superset), "") << "a pair is missing";
  a->m_collisionFilterMask = 0;
  EXPECT_EQ(verifyWorld(world, 2, PairPromise::exact), "") << "the mask refuses the pair";
  a->m_collisionFilterMask = -1;
  two.stepAt(5);
  EXPECT_EQ(verifyWorld(world, 2, PairPromise::exact), "");
  cache.addOverlappingPair(a, b);
  EXPECT_NE(verifyWorld(world, 2, PairPromise::exact), "") << "a pair too many";
  EXPECT_EQ(verifyWorld(world, 2, PairPromise::superset), "");
  cache.removeOverlappingPair(a, b, world.bullet().getDispatcher());
  two.a.setBroadphaseHandle(nullptr);
  EXPECT_NE(verifyWorld(world, 2, PairPromise::exact), "") << "a proxy is lost";
  two.a.setBroadphaseHandle(a);
}

TEST(ViewerSession, SwapsBetweenAllBroadPhases) {
  for (const std::string& first : broadphaseNames()) {
    Session session(smallScene("pile", 80, first.c_str()));
    const int objects = session.world().objects();
    for (const std::string& next : broadphaseNames()) {
      for (int i = 0; i < 10; ++i) session.step();
      session.swap(next, {});
      EXPECT_EQ(verifyWorld(session.world(), objects, promiseOf(next)), "") << first << next;
      session.step();
      EXPECT_EQ(session.history().last()->swappedTo, next);
      EXPECT_EQ(verifyWorld(session.world(), objects, promiseOf(next)), "") << first << next;
    }
  }
}

TEST(ViewerSession, OffersTheBroadPhasesThatCanHoldTheObjects) {
  EXPECT_EQ(Session(smallScene("stack", 20, "dbvt")).broadphases(), broadphaseNames());
  EXPECT_EQ(Session(smallScene("stack", 3000, "dbvt")).broadphases(),
            (std::vector<std::string>{"gpu-lbvh", "dbvt", "axis-sweep"}));
}

TEST(ViewerSession, EverySceneContinuesAfterSwaps) {
  for (const Scene& scene : scenes()) {
    Session session(smallScene(scene.name, 120, "dbvt"));
    for (const char* next : {"gpu-lbvh", "axis-sweep", "gpu-lbvh"}) {
      for (int i = 0; i < 8; ++i) session.step();
      const int objects = session.world().objects();
      session.swap(next, {});
      EXPECT_EQ(verifyWorld(session.world(), objects, promiseOf(next)), "") << scene.name << next;
      session.step();
      EXPECT_EQ(verifyWorld(session.world(), session.world().objects(), promiseOf(next)), "")
          << scene.name << next;
    }
  }
}

TEST(ViewerSession, GhostsListTheirPairsAfterASwap) {
  World world(makeBroadphase("gpu-lbvh", {}));
  world.bullet().setGravity({0, 0, 0});
  btBoxShape shape({1, 1, 1});
  btRigidBody& body = world.addMoving(shape, 1, at(5, 0, 0));
  const btPairCachingGhostObject& ghost =
      world.addGhost(shape, at(0, 0, 0), btCollisionObject::CF_NO_CONTACT_RESPONSE,
                     btBroadphaseProxy::SensorTrigger, btBroadphaseProxy::AllFilter);
  for (const char* next : {"dbvt", "gpu-lbvh"}) {
    world.setBroadphase(makeBroadphase(next, {}));
    for (const btScalar distance : {btScalar(1), btScalar(5)}) {
      body.setWorldTransform(at(distance, 0, 0));
      world.step();
      EXPECT_EQ(ghost.getNumOverlappingObjects(), distance < 2 ? 1 : 0) << next;
    }
  }
}

TEST(ViewerSession, TheOldestShotIsReusedAtTheLimit) {
  for (const char* broadphase : {"gpu-lbvh", "axis-sweep"}) {
    Session session(smallScene("stack", 20, broadphase));
    const int before = session.world().objects();
    for (int i = 0; i < Session::kShots + 5; ++i) {
      session.shoot({{0, 30, btScalar(2 * i)}, {1, 0, 0}});
      if (i % 20 == 0) session.step();
    }
    session.step();
    EXPECT_EQ(session.world().objects(), before + Session::kShots);
    EXPECT_EQ(verifyWorld(session.world(), before + Session::kShots, promiseOf(broadphase)), "");
    session.restart(session.options());
    EXPECT_EQ(session.world().objects(), before);
  }
}

}  // namespace

// SPDX-License-Identifier: Zlib
// removal: removes all objects of a world one by one through btCollisionWorld, and prints
// milliseconds. Uses our broad phase with our pair cache and with Bullet's, and btDbvtBroadphase.
// The unit boxes are in rows, and each overlaps three others on either side. Times the removal with
// and without the contact points of a narrow phase. Bullet frees the contact points pair by pair.
#include <GpuLbvhBroadphase.h>
#include <btBulletCollisionCommon.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "support/command_line.h"
#include "support/timing.h"

namespace {

struct Removal {
  double milliseconds = 0;
  int pairs = 0;
};

Removal removeAll(int side, bool hasContacts, btBroadphaseInterface& broadphase) {
  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher(&configuration);
  btCollisionWorld world(&dispatcher, &broadphase, &configuration);
  btBoxShape box(btVector3(btScalar(0.5), btScalar(0.5), btScalar(0.5)));
  std::vector<btCollisionObject> objects(static_cast<std::size_t>(side * side * side));
  int at = 0;
  for (btCollisionObject& object : objects) {
    const int inRow = at % (2 * side), row = at / (2 * side);
    object.getWorldTransform().setOrigin(btVector3(
        btScalar(0.3) * btScalar(inRow), btScalar(2 * (row % side)), btScalar(2 * (row / side))));
    object.setCollisionShape(&box);
    world.addCollisionObject(&object);
    ++at;
  }
  world.updateAabbs();
  world.computeOverlappingPairs();
  if (hasContacts) world.performDiscreteCollisionDetection();
  Removal result;
  result.pairs = broadphase.getOverlappingPairCache()->getNumOverlappingPairs();
  const Stopwatch watch;
  for (btCollisionObject& object : objects) world.removeCollisionObject(&object);
  result.milliseconds = watch.milliseconds();
  return result;
}

void compare(int side, bool hasContacts) {
  std::vector<double> own, hashed, dbvt;
  int pairs = 0;
  for (int round = 0; round < 3; ++round) {
    GpuLbvhBroadphase withOwn;
    const Removal result = removeAll(side, hasContacts, withOwn);
    own.push_back(result.milliseconds);
    pairs = result.pairs;
    btHashedOverlappingPairCache cache;
    GpuLbvhBroadphase withHashed({}, &cache);
    hashed.push_back(removeAll(side, hasContacts, withHashed).milliseconds);
    btDbvtBroadphase theirs;
    dbvt.push_back(removeAll(side, hasContacts, theirs).milliseconds);
  }
  std::printf("removing %d objects with %d pairs one by one, %s contacts, milliseconds\n",
              side * side * side, pairs, hasContacts ? "with" : "without");
  const auto print = [&](const char* name, const std::vector<double>& times) {
    std::printf("  %-45s %10.2f %8.1f x\n", name, median(times), median(times) / median(own));
  };
  print("gpu-lbvh with its own cache", own);
  print("gpu-lbvh with btHashedOverlappingPairCache", hashed);
  print("btDbvtBroadphase", dbvt);
}

}  // namespace

int main(int argc, char** argv) {
  int side = 28;
  CommandLine line("Removes all objects of a world, one by one, with each pair cache.", "removal");
  line.add("SIDE", side, "cube root of the number of boxes").range(1, 60).showDefault();
  return runProgram(line, argc, argv, [&side] {
    compare(side, false);
    compare(side, true);
    return 0;
  });
}

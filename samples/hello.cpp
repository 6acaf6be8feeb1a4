// SPDX-License-Identifier: Zlib
// The smallest example: a Bullet program with one changed line, which is marked below.
// Boxes fall on the ground, and the program prints where the first one came to rest.
#include <GpuLbvhBroadphase.h>
#include <btBulletDynamicsCommon.h>
#include <gpulbvh/version.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

// Answers --help, --version and wrong arguments. The program has no options.
static int answer(const std::string& argument) {
  if (argument == "--version") {
    std::printf("hello (GpuLbvhBroadphase) %s\n", lbvh::version());
    return 0;
  }
  const bool isAsked = argument == "--help";
  std::fputs("Usage: hello [--help | --version]\n", isAsked ? stdout : stderr);
  return isAsked ? 0 : 2;
}

int main(int argc, char** argv) {
  if (argc > 1) return answer(argv[1]);

  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher(&configuration);
  GpuLbvhBroadphase broadphase;  // was: btDbvtBroadphase broadphase;
  btSequentialImpulseConstraintSolver solver;
  btDiscreteDynamicsWorld world(&dispatcher, &broadphase, &solver, &configuration);

  btBoxShape ground(btVector3(10, 1, 10));
  btBoxShape box(btVector3(0.5, 0.5, 0.5));
  std::vector<std::unique_ptr<btRigidBody>> bodies;
  const auto add = [&](btScalar mass, btCollisionShape& shape, const btVector3& place) {
    btVector3 inertia(0, 0, 0);
    if (mass > 0) shape.calculateLocalInertia(mass, inertia);
    btRigidBody::btRigidBodyConstructionInfo info(mass, nullptr, &shape, inertia);
    info.m_startWorldTransform.setOrigin(place);
    bodies.push_back(std::make_unique<btRigidBody>(info));
    world.addRigidBody(bodies.back().get());
  };
  add(0, ground, btVector3(0, -1, 0));
  for (int i = 0; i < 5; ++i) add(1, box, btVector3(0, btScalar(1 + 1.5 * i), 0));

  for (int step = 0; step < 120; ++step) world.stepSimulation(btScalar(1) / 60, 0);

  std::printf("the first box rests at a height of %.2f m; %d overlapping pairs\n",
              double(bodies[1]->getWorldTransform().getOrigin().y()),
              broadphase.getOverlappingPairCache()->getNumOverlappingPairs());

  // A Bullet world does not own its bodies, and they must be removed before they are destroyed.
  for (const auto& body : bodies) world.removeRigidBody(body.get());
}

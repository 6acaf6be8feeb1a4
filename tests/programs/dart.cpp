// SPDX-License-Identifier: Zlib
// A DART program that does not name our broad phase. A hundred boxes fall on a plate, and
// DART's Bullet detector finds their contacts. Prints results that no broad phase may change.
#include <dart/collision/bullet/BulletCollisionDetector.hpp>
#include <dart/constraint/ConstraintSolver.hpp>
#include <dart/dynamics/BoxShape.hpp>
#include <dart/dynamics/FreeJoint.hpp>
#include <dart/dynamics/Skeleton.hpp>
#include <dart/dynamics/WeldJoint.hpp>
#include <dart/simulation/World.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

using namespace dart::dynamics;

namespace {

constexpr int kRow = 10;

template <class Joint>
BodyNode* addBox(dart::simulation::World& world, const Eigen::Vector3d& size,
                 const Eigen::Vector3d& place) {
  const SkeletonPtr skeleton = Skeleton::create(std::to_string(world.getNumSkeletons()));
  const auto [joint, body] = skeleton->createJointAndBodyNodePair<Joint>();
  body->template createShapeNodeWith<CollisionAspect, DynamicsAspect>(
      std::make_shared<BoxShape>(size));
  joint->setTransformFromParentBodyNode(Eigen::Isometry3d(Eigen::Translation3d(place)));
  world.addSkeleton(skeleton);
  return body;
}

}  // namespace

int main() {
  const dart::simulation::WorldPtr world = dart::simulation::World::create();
  world->getConstraintSolver()->setCollisionDetector(
      dart::collision::BulletCollisionDetector::create());
  addBox<WeldJoint>(*world, {40, 40, 1}, {0, 0, -0.5});
  std::vector<BodyNode*> boxes;
  for (int i = 0; i < kRow * kRow; ++i)
    boxes.push_back(addBox<FreeJoint>(*world, {0.5, 0.5, 0.5},
                                      {double(i % kRow), double(i / kRow), 0.5 + 0.001 * i}));
  for (int step = 0; step < 1000; ++step) world->step();

  double height = 0;
  for (const BodyNode* box : boxes) height += box->getWorldTransform().translation().z();
  std::printf("%zu contacts, mean height %.4f\n", world->getLastCollisionResult().getNumContacts(),
              height / double(boxes.size()));
}

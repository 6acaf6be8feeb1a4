// SPDX-License-Identifier: Zlib
// The ragdolls scene: people with eleven limbs each tumble down a stepped pyramid. Limbs always
// overlap at their joints, and a filter callback keeps these pairs out of the cache.
#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

enum class Joint { cone, hinge };

/// A capsule along y. Positions are relative to the person, whose feet are at the origin.
struct Limb {
  int parent;            ///< index of the parent, less than the limb's own; -1: none
  btScalar radius;       // m
  btScalar length;       // m, length without the caps
  btVector3 middle;      // m
  btVector3 joint;       // m, position of the joint with the parent
  Joint kind;            ///< a hinge turns about x
  btScalar least, most;  ///< rad; a hinge's minimum and maximum, or a cone's swing and twist
};

btScalar m(double metres) { return btScalar(metres); }

const std::vector<Limb>& limbs() {
  static const std::vector<Limb> table = [] {
    std::vector<Limb> list = {
        {-1, m(.13), m(.12), {0, m(1.00), 0}, {0, 0, 0}, Joint::cone, 0, 0},               // pelvis
        {0, m(.15), m(.20), {0, m(1.33), 0}, {0, m(1.14), 0}, Joint::cone, m(.5), m(.4)},  // chest
        {1, m(.11), m(.06), {0, m(1.72), 0}, {0, m(1.57), 0}, Joint::cone, m(.6), m(.8)},  // head
    };
    for (const btScalar side : {btScalar(-1), btScalar(1)}) {
      const int leg = static_cast<int>(list.size());
      const btScalar hip = side * m(.11);
      const btScalar shoulder = side * m(.23);
      list.push_back(  // thigh
          {0, m(.08), m(.28), {hip, m(.70), 0}, {hip, m(.90), 0}, Joint::cone, m(.9), m(.3)});
      list.push_back(  // shin
          {leg, m(.06), m(.30), {hip, m(.27), 0}, {hip, m(.49), 0}, Joint::hinge, 0, m(2)});
      list.push_back(  // upper arm
          {1,
           m(.06),
           m(.20),
           {shoulder, m(1.32), 0},
           {shoulder, m(1.47), 0},
           Joint::cone,
           m(1.4),
           m(.5)});
      list.push_back(  // forearm
          {leg + 2,
           m(.05),
           m(.20),
           {shoulder, m(1.01), 0},
           {shoulder, m(1.16), 0},
           Joint::hinge,
           m(-2),
           0});
    }
    return list;
  }();
  return table;
}

/// Refuses pairs of bodies that a joint connects.
struct LimbsApart : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    const bool groupsMeet = (a->m_collisionFilterGroup & b->m_collisionFilterMask) != 0 &&
                            (b->m_collisionFilterGroup & a->m_collisionFilterMask) != 0;
    return groupsMeet && objectOf(a).checkCollideWith(&objectOf(b));
  }
  static btCollisionObject& objectOf(const btBroadphaseProxy* proxy) {
    return *static_cast<btCollisionObject*>(proxy->m_clientObject);
  }
};

/// The joint's axes relative to the person. A cone's x axis points down the limb, and a hinge's z
/// axis is the person's x axis.
btTransform jointFrame(const Limb& limb) {
  const btQuaternion turn = limb.kind == Joint::cone
                                ? btQuaternion(btVector3(0, 0, 1), -SIMD_HALF_PI)
                                : btQuaternion(btVector3(0, 1, 0), SIMD_HALF_PI);
  return btTransform(turn, limb.joint);
}

std::unique_ptr<btTypedConstraint> makeJoint(const Limb& limb, btRigidBody& parent,
                                             btRigidBody& body) {
  const btVector3 parentMiddle = limbs()[static_cast<std::size_t>(limb.parent)].middle;
  btTransform inParent = jointFrame(limb);
  btTransform inBody = jointFrame(limb);
  inParent.getOrigin() -= parentMiddle;
  inBody.getOrigin() -= limb.middle;
  if (limb.kind == Joint::hinge) {
    auto hinge = std::make_unique<btHingeConstraint>(parent, body, inParent, inBody);
    hinge->setLimit(limb.least, limb.most);
    return hinge;
  }
  auto cone = std::make_unique<btConeTwistConstraint>(parent, body, inParent, inBody);
  cone->setLimit(limb.least, limb.least, limb.most);
  return cone;
}

/// Adds at most `most` limbs of a person, parents first.
void addPerson(World& world, const std::vector<btCollisionShape*>& shapes, const btTransform& place,
               std::size_t most) {
  std::vector<btRigidBody*> bodies;
  for (std::size_t i = 0; i < std::min(most, limbs().size()); ++i) {
    const Limb& limb = limbs()[i];
    const btScalar mass = 1000 * SIMD_PI * limb.radius * limb.radius * (limb.length + limb.radius);
    btTransform start = place;
    start.setOrigin(place * limb.middle);
    btRigidBody& body = world.addMoving(*shapes[i], mass, start);
    body.setDamping(btScalar(0.05), btScalar(0.6));
    body.setFriction(btScalar(0.6));
    bodies.push_back(&body);
    if (limb.parent >= 0)
      world.add(makeJoint(limb, *bodies[static_cast<std::size_t>(limb.parent)], body));
  }
}

constexpr int kTerraces = 8;
constexpr btScalar kStep = btScalar(0.9);             // m, height of a terrace
constexpr btScalar kRagdollsSpacing = btScalar(2.4);  // m, distance from person to person
constexpr int kRagdollsLayers = 3;

/// Adds a pyramid as wide as the crowd above it, and a ground that catches the people.
void addPyramid(World& world, btScalar half) {
  addGround(world, half + 8, half + 8);
  for (int i = 0; i < kTerraces; ++i) {
    const btScalar side = half * (1 - btScalar(i) / btScalar(kTerraces));
    auto& terrace = world.make<btBoxShape>(btVector3(side, kStep / 2, side));
    world.addStatic(terrace, at(0, (btScalar(i) + btScalar(0.5)) * kStep, 0));
  }
}

}  // namespace

void buildRagdolls(World& world, const SceneOptions& options) {
  Random random(options.seed);
  world.setFilter(std::make_unique<LimbsApart>());
  std::vector<btCollisionShape*> shapes;
  for (const Limb& limb : limbs())
    shapes.push_back(&world.make<btCapsuleShape>(limb.radius, limb.length));

  const int perPerson = static_cast<int>(limbs().size());
  const int people = (options.objects + perPerson - 1) / perPerson;
  const int perLayer = (people + kRagdollsLayers - 1) / kRagdollsLayers;
  const int side = std::max(1, static_cast<int>(std::ceil(std::sqrt(double(perLayer)))));
  const btScalar half = btScalar(side) * kRagdollsSpacing / 2;
  addPyramid(world, half);

  for (int i = 0; i < people; ++i) {
    const btVector3 cell(btScalar(i % perLayer % side), btScalar(i / perLayer),
                         btScalar(i % perLayer / side));
    btVector3 place =
        (cell + btVector3(m(.5), 0, m(.5))) * kRagdollsSpacing - btVector3(half, 0, half);
    const btScalar inward = 1 - btMax(btFabs(place.x()), btFabs(place.z())) / half;
    place += btVector3(0, m(1.2) + inward * kStep * btScalar(kTerraces), 0);
    const btQuaternion turn(random.between(-SIMD_PI, SIMD_PI), random.between(m(-.5), m(.5)),
                            random.between(m(-.5), m(.5)));
    addPerson(world, shapes, btTransform(turn, place),
              static_cast<std::size_t>(options.objects - i * perPerson));
  }
}

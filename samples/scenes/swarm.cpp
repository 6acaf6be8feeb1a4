// SPDX-License-Identifier: Zlib
// The swarm scene: kinematic boxes fly in tilted circles around the middles of flocks. Every box
// changes in every step and little else happens, so setAabb and the search take most of the time.
#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

constexpr int kFlock = 500;            // boxes
constexpr btScalar kFlockRadius = 12;  // m
constexpr btScalar kSwarmSpeed = 6;    // m/s, speed along the circle
constexpr btScalar kApart = 16;        // m, distance from flock to flock
constexpr int kAll = btBroadphaseProxy::AllFilter;

/// A circle around the flock's middle.
struct Flight {
  btRigidBody* body = nullptr;
  btVector3 x, y;      ///< m; two radii at right angles
  btScalar phase = 0;  // rad
  btScalar turn = 0;   // rad/s
};

struct Flock {
  btVector3 home, drift;  // m
  btScalar phase;         // rad
  std::vector<Flight> flights;
};

btTransform placeOf(const Flight& one, const btVector3& middle, btScalar time) {
  const btScalar angle = one.phase + one.turn * time;
  const btVector3 out = one.x * std::cos(angle) + one.y * std::sin(angle);
  const btVector3 ahead = one.y * std::cos(angle) - one.x * std::sin(angle);
  const btQuaternion heading(btVector3(0, 1, 0), std::atan2(ahead.x(), ahead.z()));
  return btTransform(heading, middle + out);
}

btVector3 middleOf(const Flock& flock, btScalar time) {
  return flock.home + flock.drift * std::sin(flock.phase + time * btScalar(0.4));
}

/// Adds a box at its first position, because some broad phases immediately search for its pairs.
void addFlight(World& world, btCollisionShape& shape, Flock& flock, Random& random) {
  const btScalar radius = kFlockRadius * std::cbrt(random.between(btScalar(0.02), 1));
  const btVector3 axis = random.inCube() * btScalar(0.7) + btVector3(0, 1, 0);
  Flight flight;
  flight.x = axis.cross(btVector3(1, 0, 0)).normalized() * radius;
  flight.y = axis.normalized().cross(flight.x);
  flight.phase = random.between(0, SIMD_2_PI);
  flight.turn = kSwarmSpeed / radius;
  const btTransform start = placeOf(flight, middleOf(flock, 0), 0);
  flight.body = &world.addKinematic(shape, start, btBroadphaseProxy::DefaultFilter, kAll);
  flock.flights.push_back(flight);
}

}  // namespace

/// Lets kinematic bodies pair with each other and with the ground, unlike Bullet's default.
void buildSwarm(World& world, const SceneOptions& options) {
  Random random(options.seed);
  const int count = (options.objects + kFlock - 1) / kFlock;
  const int side = std::max(1, static_cast<int>(std::ceil(std::cbrt(double(count)))));
  const btScalar half = btScalar(side) * kApart / 2;
  addGround(world, half + 20, half + 20);

  auto& shape = world.make<btBoxShape>(btVector3(btScalar(0.4), btScalar(0.12), btScalar(0.5)));
  auto flocks = std::make_shared<std::vector<Flock>>();
  for (int i = 0; i < count; ++i) {
    const btVector3 cell(btScalar(i % side), btScalar(i / (side * side)),
                         btScalar(i / side % side));
    Flock flock;
    flock.home =
        (cell + btVector3(btScalar(0.5), 1, btScalar(0.5))) * kApart - btVector3(half, 0, half);
    flock.drift = random.inCube() * 8;
    flock.phase = random.between(0, SIMD_2_PI);
    for (int j = i * kFlock; j < std::min(options.objects, (i + 1) * kFlock); ++j)
      addFlight(world, shape, flock, random);
    flocks->push_back(std::move(flock));
  }
  world.beforeEachStep([flocks](int step) {
    const btScalar time = btScalar(step + 1) / 60;
    for (const Flock& flock : *flocks) {
      const btVector3 middle = middleOf(flock, time);
      for (const Flight& one : flock.flights)
        one.body->setWorldTransform(placeOf(one, middle, time));
    }
  });
}

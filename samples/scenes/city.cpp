// SPDX-License-Identifier: Zlib
// The city scene: blocks of houses, lamps and trees. Cars drive around the blocks, and people walk.
// Nine tenths of the objects never move, which is the best case for a tree kept between steps.
#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

constexpr btScalar kBlock = 36;   // m, side of a block including its pavement
constexpr btScalar kStreet = 12;  // m
constexpr btScalar kPitch = kBlock + kStreet;
constexpr btScalar kPavement = 4;  // m, width of the pavement around the houses
constexpr int kHouses = 9;         // houses per block, three by three
constexpr int kTrees = 9;          // trees per block, along the pavement
constexpr int kLamps = 9;          // lamps per block, along the pavement
constexpr int kStill = kHouses + kTrees + kLamps;
constexpr int kMoving = kStill / 9;  // moving objects per block: a tenth of all its objects
constexpr btScalar kLane = kBlock / 2 + btScalar(2.5);  // m, from the block's middle to the lane
constexpr btScalar kPath = kBlock / 2 - kPavement / 2;

/// A point on a path around a square with rounded corners, and the path's direction there.
struct Way {
  btVector3 place, ahead;
};
Way wayAround(btScalar half, btScalar corner, btScalar distance) {
  const btScalar straight = 2 * (half - corner);
  const btScalar arc = corner * SIMD_HALF_PI;
  const btScalar side = straight + arc;
  const btScalar run = std::fmod(distance, 4 * side);
  const int which = std::min(3, static_cast<int>(run / side));
  const btScalar along = run - btScalar(which) * side;
  btVector3 place(half, 0, -straight / 2 + along);  // on the side at +x; the arc comes after it
  btVector3 ahead(0, 0, 1);
  if (along > straight) {
    const btScalar angle = (along - straight) / corner;
    place = btVector3(half - corner + corner * std::cos(angle), 0,
                      straight / 2 + corner * std::sin(angle));
    ahead = btVector3(-std::sin(angle), 0, std::cos(angle));
  }
  const btScalar turn = -btScalar(which) * SIMD_HALF_PI;
  const btVector3 up(0, 1, 0);
  return {place.rotate(up, turn), ahead.rotate(up, turn)};
}

struct Traveller {
  btRigidBody* body;
  btVector3 middle;  ///< middle of the block
  btScalar start;    // m
  btScalar speed;    // m/s
  bool isCar;
};

void moveCar(const Traveller& car, btScalar time) {
  const Way way = wayAround(kLane, 4, car.start + car.speed * time);
  const btQuaternion heading(btVector3(0, 1, 0), std::atan2(way.ahead.x(), way.ahead.z()));
  car.body->setWorldTransform(
      btTransform(heading, car.middle + way.place + btVector3(0, btScalar(0.8), 0)));
}

/// Sets only the horizontal part of a person's velocity, so that people fall and collide by
/// Bullet's rules.
void walk(const Traveller& person, btScalar time) {
  const Way way = wayAround(kPath, 1, person.start + person.speed * time);
  const btVector3 goal = person.middle + way.place + way.ahead;
  btVector3 velocity = goal - person.body->getWorldTransform().getOrigin();
  velocity.setY(0);
  if (velocity.length2() > person.speed * person.speed)
    velocity *= person.speed / velocity.length();
  velocity.setY(person.body->getLinearVelocity().y());
  person.body->setLinearVelocity(velocity);
}

class Builder {
 public:
  Builder(World& world, const SceneOptions& options)
      : world_(world),
        random_(options.seed),
        moving_(options.objects / 10),
        still_(options.objects - moving_),
        blocks_((still_ + kStill - 1) / kStill) {
    side_ = static_cast<int>(std::ceil(std::sqrt(double(blocks_))));
    rows_ = (blocks_ + side_ - 1) / side_;
    const btScalar x = btScalar(side_) * kPitch / 2 + kStreet;
    const btScalar z = btScalar(rows_) * kPitch / 2 + kStreet;
    addGround(world_, x, z);
  }

  void build() {
    for (int i = 0; i < still_; ++i) addStill(i / kStill, i % kStill);
    for (int i = 0; i < moving_; ++i)
      addTraveller(i / kMoving % blocks_, i % kMoving + kMoving * (i / kMoving / blocks_));
  }

  std::vector<Traveller> travellers;

 private:
  btVector3 middleOf(int block) const {
    const btScalar column = btScalar(block % side_) - btScalar(side_ - 1) / 2;
    const btScalar row = btScalar(block / side_) - btScalar(rows_ - 1) / 2;
    return {column * kPitch, 0, row * kPitch};
  }

  void addStill(int block, int which) {
    const btVector3 middle = middleOf(block);
    if (which < kHouses) return addHouse(middle, which);
    const bool tree = which < kHouses + kTrees;
    const int number = which - kHouses;
    const btScalar around = 8 * (kBlock / 2 - 1) / btScalar(kTrees + kLamps) * btScalar(number);
    const Way way = wayAround(kBlock / 2 - btScalar(0.7), btScalar(0.5), around);
    const btVector3 place = middle + way.place;
    world_.addStatic(tree ? tree_ : lamp_, at(place.x(), tree ? 2 : 3, place.z()));
  }

  void addHouse(const btVector3& middle, int which) {
    const btScalar lot = (kBlock - 2 * kPavement) / 3;
    const btVector3 place =
        middle + btVector3(btScalar(which % 3 - 1), 0, btScalar(which / 3 - 1)) * lot;
    const btScalar radius = btScalar(side_) * kBlock / 3;
    const btScalar centre = std::exp(-place.length2() / (radius * radius));
    const btScalar height = random_.between(4, 12) + centre * random_.unit() * 45;
    const btVector3 half(lot * random_.between(btScalar(0.35), btScalar(0.48)), height / 2,
                         lot * random_.between(btScalar(0.35), btScalar(0.48)));
    world_.addStatic(world_.make<btBoxShape>(half), at(place.x(), height / 2, place.z()));
  }

  /// The first of every three travellers is a car, and the others are people.
  void addTraveller(int block, int which) {
    const bool isCar = which % 3 == 0;
    const btScalar speed = isCar ? 9 : random_.between(1, 2);
    const btScalar start = isCar ? btScalar(which) * 5 : random_.between(0, 100);
    const Way way = wayAround(isCar ? kLane : kPath, isCar ? 4 : 1, start);
    const btVector3 place = middleOf(block) + way.place;
    btRigidBody& body =
        isCar ? world_.addKinematic(car_, at(place.x(), btScalar(0.8), place.z()))
              : world_.addMoving(person_, 70, at(place.x(), btScalar(0.95), place.z()));
    if (!isCar) {
      body.setAngularFactor(0);
      body.setActivationState(DISABLE_DEACTIVATION);
    }
    travellers.push_back({&body, middleOf(block), start, speed, isCar});
  }

  World& world_;
  Random random_;
  int moving_, still_, blocks_;
  int side_ = 0, rows_ = 0;  // blocks
  btCollisionShape& tree_ = world_.make<btConeShape>(btScalar(1.2), btScalar(4));
  btCollisionShape& lamp_ =
      world_.make<btCylinderShape>(btVector3(btScalar(0.1), 3, btScalar(0.1)));
  btCollisionShape& car_ = world_.make<btBoxShape>(btVector3(btScalar(0.9), btScalar(0.7), 2));
  btCollisionShape& person_ = world_.make<btCapsuleShape>(btScalar(0.3), btScalar(1.2));
};

}  // namespace

void buildCity(World& world, const SceneOptions& options) {
  Builder builder(world, options);
  builder.build();
  world.beforeEachStep([travellers = std::move(builder.travellers)](int step) {
    const btScalar time = btScalar(step + 1) / 60;
    for (const Traveller& one : travellers) one.isCar ? moveCar(one, time) : walk(one, time);
  });
}

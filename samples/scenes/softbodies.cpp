// SPDX-License-Identifier: Zlib
// The softbodies scene: rigid bodies fall on soft blobs, and on sheets of cloth that hang by their
// corners. Soft bodies set their boxes twice per step, and the boxes change their size.
#include <BulletSoftBody/btSoftBodyHelpers.h>

#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

constexpr btScalar kSoftbodiesTile = 6;              // m
constexpr btScalar kSoftbodiesHalf = btScalar(2.2);  // m, half a sheet's side
constexpr btScalar kHang = 3;                        // m, the sheets' height
constexpr int kNodes = 13;                           // nodes along a sheet's side
constexpr int kPerTile = 20;                         // bodies per tile, one of which is soft

void addSheet(World& world, const btVector3& middle) {
  const auto corner = [&](btScalar x, btScalar z) {
    return middle + btVector3(x * kSoftbodiesHalf, kHang, z * kSoftbodiesHalf);
  };
  constexpr int kAllCorners = 1 + 2 + 4 + 8;
  std::unique_ptr<btSoftBody> sheet(
      btSoftBodyHelpers::CreatePatch(world.softInfo(), corner(-1, -1), corner(1, -1), corner(-1, 1),
                                     corner(1, 1), kNodes, kNodes, kAllCorners, true));
  sheet->getCollisionShape()->setMargin(btScalar(0.1));
  sheet->m_materials[0]->m_kLST = btScalar(0.5);
  sheet->m_cfg.piterations = 3;
  sheet->setTotalMass(12);
  world.add(std::move(sheet));
}

void addBlob(World& world, const btVector3& middle, Random& random) {
  const btScalar radius = random.between(btScalar(0.8), btScalar(1.3));
  std::unique_ptr<btSoftBody> blob(btSoftBodyHelpers::CreateEllipsoid(
      world.softInfo(), middle + btVector3(0, radius + btScalar(0.3), 0),
      btVector3(radius, radius, radius), 96));
  blob->m_materials[0]->m_kLST = btScalar(0.4);
  blob->m_cfg.kDF = 1;
  blob->m_cfg.kPR = 60;  // pressure keeps the blob round
  blob->setTotalMass(15, true);
  world.add(std::move(blob));
}

}  // namespace

void buildSoftBodies(World& world, const SceneOptions& options) {
  Random random(options.seed);
  const int soft = std::max(1, options.objects / kPerTile);
  const int side = static_cast<int>(std::ceil(std::sqrt(double(soft))));
  const btScalar half = btScalar(side) * kSoftbodiesTile / 2;
  addGround(world, half + 10, half + 10);
  const auto middleOf = [&](int tile) {
    return btVector3((btScalar(tile % side) + btScalar(0.5)) * kSoftbodiesTile - half, 0,
                     (btScalar(tile / side) + btScalar(0.5)) * kSoftbodiesTile - half);
  };
  for (int i = 0; i < soft; ++i)
    i % 3 == 2 ? addBlob(world, middleOf(i), random) : addSheet(world, middleOf(i));

  btCollisionShape* const shapes[] = {
      &world.make<btBoxShape>(btVector3(btScalar(0.35), btScalar(0.25), btScalar(0.3))),
      &world.make<btSphereShape>(btScalar(0.35)),
      &world.make<btCapsuleShape>(btScalar(0.2), btScalar(0.5))};
  for (int i = soft; i < options.objects; ++i) {
    const btVector3 jitter = random.inCube() * btScalar(1.5);
    const btVector3 place = middleOf((i - soft) % soft) + btVector3(jitter.x(), 0, jitter.z());
    const btScalar height = kHang + btScalar(1.5) + btScalar((i - soft) / soft) * btScalar(0.8);
    world.addMoving(*shapes[random.below(3)], btScalar(0.8), at(place.x(), height, place.z()));
  }
}

// SPDX-License-Identifier: Zlib
// The stack scene: flat pyramids and towers of boxes, which must stay standing. If a broad phase
// removes pairs that still overlap, their contact points are lost and the boxes fall.
#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"

namespace {

constexpr btScalar kStackHalf = btScalar(0.5);  // m, half the side of a box
constexpr btScalar kSide = btScalar(1.02);      // m, distance from box to box in a row
constexpr int kBase = 10;                       // boxes in a pyramid's lowest row
constexpr int kPyramid = kBase * (kBase + 1) / 2;
constexpr int kStackTower = 10;                 // boxes
constexpr int kGroup = kPyramid + kStackTower;  // each group is a pyramid and a tower
constexpr btScalar kAcross = 16;                // m, distance from group to group
constexpr btScalar kAlong = 4;

/// The position of box `index` of a group, relative to the group's middle. The pyramid's boxes come
/// first, from the bottom.
btVector3 placeInGroup(int index) {
  if (index >= kPyramid) {
    return {(btScalar(kBase) / 2 + 1) * kSide, btScalar(2 * (index - kPyramid) + 1) * kStackHalf,
            0};
  }
  int row = 0;
  while (index >= kBase - row) index -= kBase - row++;
  const btScalar first = -btScalar(kBase - row - 1) / 2;
  return {(first + btScalar(index)) * kSide, btScalar(2 * row + 1) * kStackHalf, 0};
}

}  // namespace

/// Does not use the seed, because nothing here is random.
void buildStack(World& world, const SceneOptions& options) {
  const int groups = (options.objects + kGroup - 1) / kGroup;
  const int across = std::max(1, static_cast<int>(std::sqrt(double(groups)) / 2));
  const int along = (groups + across - 1) / across;
  const btVector3 half(btScalar(across) * kAcross / 2, 1, btScalar(along) * kAlong / 2 + kAlong);
  addGround(world, half.x(), half.z());

  auto& box = world.make<btBoxShape>(btVector3(kStackHalf, kStackHalf, kStackHalf));
  for (int i = 0; i < options.objects; ++i) {
    const int group = i / kGroup;
    const btVector3 middle((btScalar(group % across) + kStackHalf) * kAcross - half.x(), 0,
                           (btScalar(group / across) + 1) * kAlong - half.z() + kAlong / 2);
    const btVector3 place = middle + placeInGroup(i % kGroup);
    world.addMoving(box, 1, at(place.x(), place.y(), place.z()));
  }
}

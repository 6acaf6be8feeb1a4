// SPDX-License-Identifier: Zlib
// The stack scene: flat pyramids and towers of boxes, which stay standing.
// A broad phase that loses or re-makes living pairs loses their contact points, and they fall.
#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"

namespace {

constexpr btScalar kHalf = btScalar(0.5);   // m, of a box
constexpr btScalar kSide = btScalar(1.02);  // m, from box to box in a row
constexpr int kBase = 10;                   // boxes in a pyramid's lowest row
constexpr int kPyramid = kBase * (kBase + 1) / 2;
constexpr int kTower = 10;                 // boxes
constexpr int kGroup = kPyramid + kTower;  // a tower beside each pyramid
constexpr btScalar kAcross = 16;           // m, from group to group
constexpr btScalar kAlong = 4;

/// Where box `index` of a group is, from the group's middle; the pyramid first, from the bottom.
btVector3 placeInGroup(int index) {
  if (index >= kPyramid) {
    return {(btScalar(kBase) / 2 + 1) * kSide, btScalar(2 * (index - kPyramid) + 1) * kHalf, 0};
  }
  int row = 0;
  while (index >= kBase - row) index -= kBase - row++;
  const btScalar first = -btScalar(kBase - row - 1) / 2;
  return {(first + btScalar(index)) * kSide, btScalar(2 * row + 1) * kHalf, 0};
}

}  // namespace

/// Nothing here is random, so the seed is not used.
void buildStack(World& world, const SceneOptions& options) {
  const int groups = (options.objects + kGroup - 1) / kGroup;
  const int across = std::max(1, static_cast<int>(std::sqrt(double(groups)) / 2));
  const int along = (groups + across - 1) / across;
  const btVector3 half(btScalar(across) * kAcross / 2, 1, btScalar(along) * kAlong / 2 + kAlong);
  addGround(world, half.x(), half.z());

  auto& box = world.make<btBoxShape>(btVector3(kHalf, kHalf, kHalf));
  for (int i = 0; i < options.objects; ++i) {
    const int group = i / kGroup;
    const btVector3 middle((btScalar(group % across) + kHalf) * kAcross - half.x(), 0,
                           (btScalar(group / across) + 1) * kAlong - half.z() + kAlong / 2);
    const btVector3 place = middle + placeInGroup(i % kGroup);
    world.addMoving(box, 1, at(place.x(), place.y(), place.z()));
  }
}

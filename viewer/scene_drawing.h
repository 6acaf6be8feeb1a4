// SPDX-License-Identifier: Zlib
// Turns a world into a Drawing: each object's shape, coloured by what the object does.
// Does not draw overlays (overlays.h) nor with OpenGL (renderer.h).
#pragma once

#include <memory>
#include <vector>

#include "drawing.h"
#include "picking.h"
#include "shape_meshes.h"

/// The box around what moves, without its 2 % of stragglers; around all if nothing moves.
struct Extent {
  btVector3 low{-5, 0, -5}, high{5, 5, 5};
  btScalar objectSize = 1;  ///< half the diagonal of a usual object's box
};
Extent extentOf(World& world);

/// Large static objects in front of the scene as seen from `camera`, around it, or above the scene:
/// walls and ceilings. They are drawn as outlines.
std::vector<const btCollisionObject*> blockers(World& world, const Extent& extent,
                                               const Camera& camera);

class SceneDrawing {
 public:
  /// Drops the shapes of a world that is about to be destroyed.
  void clear();

  /// Fills `drawing` with every object of the world.
  /// @param picked drawn white, its partners in their colour; may be null
  /// @param dims all others are dark, where lines matter more
  void draw(World& world, const Camera& camera, const btCollisionObject* picked,
            const std::vector<Partner>& partners, bool dims, Drawing& drawing);

  const std::vector<const btCollisionObject*>& seenThrough() const { return seenThrough_; }

 private:
  void drawBody(const btCollisionObject& object, Colour colour, Drawing& drawing);

  std::unique_ptr<ShapeMeshes> meshes_ = std::make_unique<ShapeMeshes>();
  std::uint64_t generation_ = 0;  ///< of the meshes
  std::vector<const btCollisionObject*> seenThrough_;
};

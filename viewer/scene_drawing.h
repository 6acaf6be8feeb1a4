// SPDX-License-Identifier: Zlib
// Makes a Drawing of a world: the shape of each object, with a colour for the object's state.
// Does not draw overlays (overlays.h), and does not use OpenGL (renderer.h).
#pragma once

#include <memory>
#include <vector>

#include "drawing.h"
#include "picking.h"
#include "shape_meshes.h"

/// The bounds of all moving objects, without the outermost 1 % on each side. If nothing moves,
/// these are the bounds of all objects.
struct Extent {
  btVector3 low{-5, 0, -5}, high{5, 5, 5};
  btScalar objectSize = 1;  ///< the median of half the diagonal of the objects' boxes
};
Extent extentOf(World& world);

/// Large static objects, such as walls and ceilings, that are between the camera and the scene,
/// around the camera, or above the scene. They are drawn as outlines.
std::vector<const btCollisionObject*> blockers(World& world, const Extent& extent,
                                               const Camera& camera);

class SceneDrawing {
 public:
  /// Forgets the shapes of a world that is about to be destroyed.
  void clear();

  /// Fills `drawing` with every object of the world.
  /// @param picked object that is drawn white; may be null
  /// @param partners the partners of `picked`; those that are not static have the colour `partner`
  /// @param dims whether all other objects are darkened, so that lines stand out
  void draw(World& world, const Camera& camera, const btCollisionObject* picked,
            const std::vector<Partner>& partners, bool dims, Drawing& drawing);

  const std::vector<const btCollisionObject*>& seenThrough() const { return seenThrough_; }

 private:
  void drawBody(const btCollisionObject& object, Colour colour, Drawing& drawing);

  std::unique_ptr<ShapeMeshes> meshes_ = std::make_unique<ShapeMeshes>();
  std::uint64_t generation_ = 0;  ///< changes when all meshes change
  std::vector<const btCollisionObject*> seenThrough_;
};

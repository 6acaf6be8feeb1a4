// SPDX-License-Identifier: Zlib
// Triangles for any of Bullet's collision shapes. Boxes, spheres, cylinders and cones share unit
// meshes that are scaled; other shapes get one mesh each. Does not draw.
#pragma once

#include <btBulletCollisionCommon.h>

#include <deque>
#include <map>
#include <vector>

#include "drawing.h"

/// A mesh, and where it lies in the shape's own space; the basis may scale.
struct ShapePart {
  std::size_t mesh;
  btTransform place;
};

class ShapeMeshes {
 public:
  ShapeMeshes();

  /// The shape must live as long as this and not change, but for its local scaling.
  const std::vector<ShapePart>& partsOf(const btCollisionShape& shape);

  std::size_t size() const { return meshes_.size(); }
  const Mesh& operator[](std::size_t mesh) const { return meshes_[mesh]; }

 private:
  void append(std::vector<ShapePart>& parts, const btCollisionShape& shape,
              const btTransform& place);
  std::size_t add(Mesh mesh);

  std::deque<Mesh> meshes_;  ///< their addresses stay
  std::map<const btCollisionShape*, std::vector<ShapePart>> parts_;
};

/// Half the side of the square that is shown of an endless plane, in metres.
inline constexpr btScalar kPlaneReach = 200;

// SPDX-License-Identifier: Zlib
// Makes triangles for any of Bullet's collision shapes. All boxes share one mesh, which is scaled
// and rotated. Spheres, cylinders, cones and planes also have one shared mesh per kind. Every other
// shape has its own mesh. Does not draw.
#pragma once

#include <btBulletCollisionCommon.h>

#include <deque>
#include <map>
#include <vector>

#include "drawing.h"

/// A mesh and its transform in the shape's coordinates; the transform may contain a scale.
struct ShapePart {
  std::size_t mesh;
  btTransform place;
};

class ShapeMeshes {
 public:
  ShapeMeshes();

  /// The meshes of a shape, valid until the next call for the same shape. The shape must outlive
  /// this object. A hull or a mesh of triangles is made in the first call. Later changes of such a
  /// shape are ignored.
  const std::vector<ShapePart>& partsOf(const btCollisionShape& shape);

  std::size_t size() const { return meshes_.size(); }
  const Mesh& operator[](std::size_t mesh) const { return meshes_[mesh]; }

 private:
  void append(std::vector<ShapePart>& parts, const btCollisionShape& shape,
              const btTransform& place);
  std::size_t add(Mesh mesh);

  std::deque<Mesh> meshes_;  ///< a deque, so that addresses stay valid
  std::map<const btCollisionShape*, std::vector<ShapePart>> parts_;
};

/// Half the side, in metres, of the square that is drawn for an infinite plane.
inline constexpr btScalar kPlaneReach = 200;

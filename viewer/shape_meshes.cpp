// SPDX-License-Identifier: Zlib
#include "shape_meshes.h"

#include <BulletCollision/CollisionShapes/btShapeHull.h>
#include <LinearMath/btConvexHullComputer.h>

#include <algorithm>
#include <cmath>

namespace {

enum UnitMesh : std::size_t { kBox, kSphere, kCylinder, kCone, kPlane };

constexpr int kRound = 16;  // sides of round shapes

Vertex vertexOf(const btVector3& place, const btVector3& normal = {0, 0, 0}) {
  return {{float(place.x()), float(place.y()), float(place.z())},
          {float(normal.x()), float(normal.y()), float(normal.z())}};
}

void addTriangle(Mesh& mesh, int a, int b, int c) {
  for (const int corner : {a, b, c}) mesh.triangles.push_back(std::uint32_t(corner));
}

/// Reorders the corners of a convex mesh so that all triangles are counterclockwise from outside.
Mesh closed(Mesh mesh) {
  const auto at = [&](std::uint32_t corner) {
    const float(&place)[3] = mesh.vertices[corner].place;
    return btVector3(place[0], place[1], place[2]);
  };
  btVector3 middle(0, 0, 0);
  for (std::uint32_t i = 0; i < mesh.vertices.size(); ++i) middle += at(i);
  middle /= btScalar(mesh.vertices.size());
  for (std::size_t i = 0; i < mesh.triangles.size(); i += 3) {
    const btVector3 a = at(mesh.triangles[i]);
    std::uint32_t &b = mesh.triangles[i + 1], &c = mesh.triangles[i + 2];
    if ((at(b) - a).cross(at(c) - a).dot(a - middle) < 0) std::swap(b, c);
  }
  mesh.isClosed = true;
  return mesh;
}

/// A point of a profile that is rotated around the y axis.
struct Ring {
  btScalar radius, height, normalOut, normalUp;
};

/// Makes a solid by rotating a profile, given from bottom to top.
Mesh turned(const std::vector<Ring>& profile) {
  Mesh mesh;
  for (const Ring& ring : profile) {
    for (int side = 0; side < kRound; ++side) {
      const btScalar angle = SIMD_2_PI * btScalar(side) / kRound;
      const btVector3 out(std::cos(angle), 0, std::sin(angle));
      mesh.vertices.push_back(vertexOf(out * ring.radius + btVector3(0, ring.height, 0),
                                       out * ring.normalOut + btVector3(0, ring.normalUp, 0)));
    }
  }
  for (int i = 0; i + 1 < int(profile.size()); ++i) {
    for (int side = 0; side < kRound; ++side) {
      const int low = i * kRound + side, high = low + kRound;
      const int next = i * kRound + (side + 1) % kRound;
      addTriangle(mesh, low, high, next);
      addTriangle(mesh, next, high, next + kRound);
    }
  }
  return closed(std::move(mesh));
}

Mesh unitBox() {
  Mesh mesh;
  for (int i = 0; i < 8; ++i)
    mesh.vertices.push_back(
        vertexOf({btScalar((i & 1) * 2 - 1), btScalar((i & 2) - 1), btScalar((i & 4) / 2 - 1)}));
  for (const int axis : {1, 2, 4}) {
    const int u = axis == 4 ? 1 : 2 * axis, v = 7 - axis - u;
    for (const int side : {0, axis}) {
      addTriangle(mesh, side, side + u, side + v);
      addTriangle(mesh, side + u, side + v, side + u + v);
    }
  }
  return closed(std::move(mesh));
}

/// A capsule with a cylinder of height 2 * halfHeight; a sphere if halfHeight is 0.
Mesh capsule(btScalar radius, btScalar halfHeight) {
  std::vector<Ring> profile;
  for (int i = 0; i <= kRound; ++i) {
    // Each half has its own ring at the equator.
    if (i == kRound / 2 && halfHeight > 0) profile.push_back({radius, -halfHeight, 1, 0});
    const btScalar angle = SIMD_PI * (btScalar(i) / kRound - btScalar(0.5));
    const bool isPole = i == 0 || i == kRound;
    const btScalar out = isPole ? 0 : std::cos(angle), up = std::sin(angle);
    profile.push_back(
        {radius * out, radius * up + (2 * i < kRound ? -halfHeight : halfHeight), out, up});
  }
  return turned(profile);
}

Mesh unitCylinder() {
  return turned(
      {{0, -1, 0, -1}, {1, -1, 0, -1}, {1, -1, 1, 0}, {1, 1, 1, 0}, {1, 1, 0, 1}, {0, 1, 0, 1}});
}

/// A cone of radius 1, from the base at -1/2 to the tip at 1/2.
Mesh unitCone() {
  const btScalar half = btScalar(0.5), slope = btScalar(0.7071);
  return turned(
      {{0, -half, 0, -1}, {1, -half, 0, -1}, {1, -half, slope, slope}, {0, half, slope, slope}});
}

Mesh plane() {
  Mesh mesh;
  for (const btScalar x : {-kPlaneReach, kPlaneReach})
    for (const btScalar z : {-kPlaneReach, kPlaneReach})
      mesh.vertices.push_back(vertexOf({x, 0, z}));
  addTriangle(mesh, 0, 1, 2);
  addTriangle(mesh, 1, 3, 2);
  mesh.isClosed = true;  // so that it is invisible from below
  return mesh;
}

/// The faces of the convex hull of the points.
Mesh hull(const std::vector<btVector3>& points) {
  btConvexHullComputer computer;
  if (!points.empty())
    computer.compute(&points[0][0], sizeof(btVector3), static_cast<int>(points.size()), 0, 0);
  Mesh mesh;
  for (int i = 0; i < computer.vertices.size(); ++i)
    mesh.vertices.push_back(vertexOf(computer.vertices[i]));
  for (int face = 0; face < computer.faces.size(); ++face) {
    const auto* first = &computer.edges[computer.faces[face]];
    const int corner = first->getSourceVertex();
    const auto* edge = first->getNextEdgeOfFace();
    for (; edge->getTargetVertex() != corner; edge = edge->getNextEdgeOfFace())
      addTriangle(mesh, corner, edge->getSourceVertex(), edge->getTargetVertex());
  }
  return closed(std::move(mesh));
}

/// The corners of a convex shape, or about forty points on it if it has no corners.
std::vector<btVector3> pointsOf(const btConvexShape& shape) {
  std::vector<btVector3> points;
  if (shape.isPolyhedral()) {
    const auto& solid = static_cast<const btPolyhedralConvexShape&>(shape);
    for (int i = 0; i < solid.getNumVertices(); ++i) {
      points.emplace_back();
      solid.getVertex(i, points.back());
    }
  } else {
    btShapeHull sampled(&shape);
    sampled.buildHull(0);
    points.assign(sampled.getVertexPointer(), sampled.getVertexPointer() + sampled.numVertices());
  }
  return points;
}

/// All triangles of a concave shape, such as a mesh or a height field.
Mesh trianglesOf(const btConcaveShape& shape) {
  struct Collect : btTriangleCallback {
    void processTriangle(btVector3* corner, int, int) override {
      const int first = int(mesh.vertices.size());
      for (int i = 0; i < 3; ++i) mesh.vertices.push_back(vertexOf(corner[i]));
      addTriangle(mesh, first, first + 1, first + 2);
    }
    Mesh mesh;
  } collect;
  btVector3 low, high;
  shape.getAabb(btTransform::getIdentity(), low, high);
  shape.processAllTriangles(&collect, low, high);
  return std::move(collect.mesh);
}

btTransform scaled(const btTransform& place, const btVector3& scale) {
  return btTransform(place.getBasis().scaled(scale), place.getOrigin());
}

/// The rotation that turns the y axis into another axis.
btMatrix3x3 uprightTo(int axis) {
  btMatrix3x3 basis = btMatrix3x3::getIdentity();
  if (axis == 0) basis.setRotation(btQuaternion(btVector3(0, 0, 1), -SIMD_HALF_PI));
  if (axis == 2) basis.setRotation(btQuaternion(btVector3(1, 0, 0), SIMD_HALF_PI));
  return basis;
}

btTransform standing(const btTransform& place, int axis, btScalar radius, btScalar height) {
  const btTransform turn(uprightTo(axis), btVector3(0, 0, 0));
  return scaled(place * turn, btVector3(radius, height, radius));
}

}  // namespace

ShapeMeshes::ShapeMeshes() {
  add(unitBox());  // in the order of UnitMesh
  add(capsule(1, 0));
  add(unitCylinder());
  add(unitCone());
  add(plane());
}

std::size_t ShapeMeshes::add(Mesh mesh) {
  meshes_.push_back(std::move(mesh));
  return meshes_.size() - 1;
}

const std::vector<ShapePart>& ShapeMeshes::partsOf(const btCollisionShape& shape) {
  const auto [found, isNew] = parts_.try_emplace(&shape);
  std::vector<ShapePart>& parts = found->second;
  const bool areUnits = std::all_of(parts.begin(), parts.end(),
                                    [](const ShapePart& part) { return part.mesh <= kPlane; });
  if (isNew || areUnits) {  // the shape may have been scaled since the last call
    parts.clear();
    append(parts, shape, btTransform::getIdentity());
  }
  return parts;
}

void ShapeMeshes::append(std::vector<ShapePart>& parts, const btCollisionShape& shape,
                         const btTransform& place) {
  switch (shape.getShapeType()) {
    case BOX_SHAPE_PROXYTYPE: {
      const auto& box = static_cast<const btBoxShape&>(shape);
      parts.push_back({kBox, scaled(place, box.getHalfExtentsWithMargin())});
      break;
    }
    case SPHERE_SHAPE_PROXYTYPE: {
      const btScalar radius = static_cast<const btSphereShape&>(shape).getRadius();
      parts.push_back({kSphere, scaled(place, btVector3(radius, radius, radius))});
      break;
    }
    case CYLINDER_SHAPE_PROXYTYPE: {
      const auto& cylinder = static_cast<const btCylinderShape&>(shape);
      const int up = cylinder.getUpAxis();
      parts.push_back({kCylinder, standing(place, up, cylinder.getRadius(),
                                           cylinder.getHalfExtentsWithMargin()[up])});
      break;
    }
    case CONE_SHAPE_PROXYTYPE: {
      const auto& cone = static_cast<const btConeShape&>(shape);
      parts.push_back(
          {kCone, standing(place, cone.getConeUpIndex(), cone.getRadius(), cone.getHeight())});
      break;
    }
    case CAPSULE_SHAPE_PROXYTYPE: {
      const auto& one = static_cast<const btCapsuleShape&>(shape);
      parts.push_back({add(capsule(one.getRadius(), one.getHalfHeight())),
                       standing(place, one.getUpAxis(), 1, 1)});
      break;
    }
    case STATIC_PLANE_PROXYTYPE: {
      const auto& one = static_cast<const btStaticPlaneShape&>(shape);
      const btVector3& normal = one.getPlaneNormal();
      const btTransform lying(shortestArcQuat(btVector3(0, 1, 0), normal),
                              normal * one.getPlaneConstant());
      parts.push_back({kPlane, place * lying});
      break;
    }
    case COMPOUND_SHAPE_PROXYTYPE: {
      const auto& compound = static_cast<const btCompoundShape&>(shape);
      for (int i = 0; i < compound.getNumChildShapes(); ++i)
        append(parts, *compound.getChildShape(i), place * compound.getChildTransform(i));
      break;
    }
    default:
      if (shape.isConvex())
        parts.push_back({add(hull(pointsOf(static_cast<const btConvexShape&>(shape)))), place});
      else if (shape.isConcave())
        parts.push_back({add(trianglesOf(static_cast<const btConcaveShape&>(shape))), place});
      // The shape of a soft body has no triangles. scene_drawing.cpp draws the body's faces.
  }
}

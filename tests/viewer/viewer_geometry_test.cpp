// SPDX-License-Identifier: Zlib
// Tests the viewer's camera and meshes, which need no OpenGL.
#include <BulletCollision/CollisionShapes/btHeightfieldTerrainShape.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "view.h"
#include "world_box.h"

namespace {

/// The position of a point of the world in the picture, with coordinates from -1 to 1.
btVector3 project(const Matrix& m, const btVector3& point) {
  float clip[4];
  for (std::size_t row = 0; row < 4; ++row)
    clip[row] = m[row] * float(point.x()) + m[4 + row] * float(point.y()) +
                m[8 + row] * float(point.z()) + m[12 + row];
  return {clip[0] / clip[3], clip[1] / clip[3], clip[2] / clip[3]};
}

TEST(ViewerCamera, RaysPassThroughThePointsThatAreDrawnThere) {
  Camera camera;
  camera.target.setValue(3, -2, 5);
  for (const btScalar yaw : {btScalar(0), btScalar(75), btScalar(200)}) {
    camera.yaw = yaw;
    const Matrix matrix = camera.viewProjection(btScalar(1.5));
    const btVector3 middle = project(matrix, camera.target);
    EXPECT_NEAR(middle.x(), 0, 1e-4);
    EXPECT_NEAR(middle.y(), 0, 1e-4);
    for (const btScalar x : {btScalar(-0.8), btScalar(0.5)}) {
      const PickRay ray = camera.rayThrough(x, btScalar(0.3), btScalar(1.5));
      const btVector3 seen = project(matrix, ray.origin + ray.direction * 20);
      EXPECT_NEAR(seen.x(), x, 1e-3);
      EXPECT_NEAR(seen.y(), 0.3, 1e-3);
      EXPECT_LT(std::abs(seen.z()), 1) << "between the near and the far plane";
    }
  }
}

TEST(ViewerCamera, FramesABox) {
  Camera camera;
  const btVector3 low(10, 0, -3), high(14, 5, 2);
  camera.frame(low, high);
  const Matrix matrix = camera.viewProjection(btScalar(1.6));
  btScalar most = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const btVector3 point((corner & 1) != 0 ? low.x() : high.x(),
                          (corner & 2) != 0 ? low.y() : high.y(),
                          (corner & 4) != 0 ? low.z() : high.z());
    const btVector3 seen = project(matrix, point);
    most = std::max({most, std::abs(seen.x()), std::abs(seen.y())});
  }
  EXPECT_LT(most, 1) << "a part is outside the picture";
  EXPECT_GT(most, 0.4) << "the box is too small in the picture";
}

/// One shape of each kind, with its name.
struct Shapes {
  btBoxShape box{{1, 2, 3}};
  btSphereShape sphere{2};
  btCapsuleShape capsule{1, 4};
  btCapsuleShapeX capsuleX{1, 3};
  btCylinderShape cylinder{{1, 2, 1}};
  btCylinderShapeX cylinderX{{3, 1, 1}};
  btCylinderShapeZ cylinderZ{{1, 1, 2}};
  btConeShape cone{1, 3};
  btConeShapeX coneX{1, 2};
  btConeShapeZ coneZ{2, 2};
  btConvexHullShape hull;
  btTriangleMesh triangles;
  btCompoundShape compound;
  btMultiSphereShape multiSphere;
  std::vector<std::pair<const char*, btCollisionShape*>> all;

  Shapes() : multiSphere(spheres(), radii(), 2) {
    for (int i = 0; i < 6; ++i) {
      btVector3 point(0, 0, 0);
      point[i % 3] = i < 3 ? 2 : -1;
      hull.addPoint(point);
    }
    hull.setLocalScaling({1, 2, 1});
    compound.addChildShape(btTransform(btQuaternion({0, 0, 1}, SIMD_HALF_PI), {5, 0, 0}), &box);
    compound.addChildShape(btTransform(btQuaternion::getIdentity(), {-5, 1, 0}), &sphere);
    all = {{"box", &box},
           {"sphere", &sphere},
           {"capsule", &capsule},
           {"capsuleX", &capsuleX},
           {"cylinder", &cylinder},
           {"cylinderX", &cylinderX},
           {"cylinderZ", &cylinderZ},
           {"cone", &cone},
           {"coneX", &coneX},
           {"coneZ", &coneZ},
           {"hull", &hull},
           {"compound", &compound},
           {"multiSphere", &multiSphere}};
  }

  static const btVector3* spheres() {
    static const btVector3 places[] = {{0, 0, 0}, {0, 2, 0}};
    return places;
  }
  static const btScalar* radii() {
    static const btScalar list[] = {1, 1};
    return list;
  }
};

TEST(ViewerMeshes, FillTheBoundsOfEveryShape) {
  Shapes shapes;
  ShapeMeshes meshes;
  for (const auto& [name, shape] : shapes.all) {
    btVector3 low, high, seenLow(100, 100, 100), seenHigh(-100, -100, -100);
    shape->getAabb(btTransform::getIdentity(), low, high);
    std::size_t triangles = 0;
    for (const ShapePart& part : meshes.partsOf(*shape)) {
      for (const Vertex& vertex : meshes[part.mesh].vertices) {
        const btVector3 place =
            part.place * btVector3(vertex.place[0], vertex.place[1], vertex.place[2]);
        seenLow.setMin(place);
        seenHigh.setMax(place);
      }
      triangles += meshes[part.mesh].triangles.size() / 3;
    }
    EXPECT_GE(triangles, 8u) << name;
    for (int axis = 0; axis < 3; ++axis) {
      // Some shapes have a margin of 0.04 m, and round shapes are drawn with corners.
      EXPECT_NEAR(seenLow[axis], low[axis], 0.12) << name << axis;
      EXPECT_NEAR(seenHigh[axis], high[axis], 0.12) << name << axis;
    }
  }
}

/// A recording scales its boxes in each frame.
TEST(ViewerMeshes, AScaledBoxIsDrawnAtItsNewSize) {
  ShapeMeshes meshes;
  btBoxShape box(btVector3(1, 1, 1));
  box.setMargin(0);
  EXPECT_NEAR(meshes.partsOf(box).front().place.getBasis()[0][0], 1, 1e-6);
  box.setLocalScaling(btVector3(3, 1, 1));
  EXPECT_NEAR(meshes.partsOf(box).front().place.getBasis()[0][0], 3, 1e-6);
  EXPECT_EQ(meshes.partsOf(box).size(), 1u);
}

TEST(ViewerMeshes, NormalsOfRoundShapesPointOutward) {
  Shapes shapes;
  ShapeMeshes meshes;
  int round = 0;
  for (const auto& [name, shape] : shapes.all) {
    if (!shape->isConvex()) continue;
    const ShapePart& part = meshes.partsOf(*shape).front();
    const Mesh& mesh = meshes[part.mesh];
    btVector3 middle(0, 0, 0);
    for (const Vertex& v : mesh.vertices) middle += btVector3(v.place[0], v.place[1], v.place[2]);
    middle /= btScalar(mesh.vertices.size());
    for (const Vertex& v : mesh.vertices) {
      const btVector3 normal(v.normal[0], v.normal[1], v.normal[2]);
      if (normal.isZero()) continue;  // a vertex of flat faces
      ++round;
      const btVector3 out = btVector3(v.place[0], v.place[1], v.place[2]) - middle;
      EXPECT_GT(normal.dot(out), 0) << name;
      EXPECT_NEAR(normal.length(), 1, 1e-3) << name;
    }
  }
  EXPECT_GT(round, 500);
}

TEST(ViewerMeshes, ClosedMeshesAreCounterclockwiseFromOutside) {
  Shapes shapes;
  ShapeMeshes meshes;
  for (const auto& [name, shape] : shapes.all) {
    if (!shape->isConvex()) continue;
    const Mesh& mesh = meshes[meshes.partsOf(*shape).front().mesh];
    EXPECT_TRUE(mesh.isClosed) << name;
    // The sum of the triangles' signed volumes is the volume. It is negative if a mesh is inside
    // out.
    btScalar volume = 0, size = 0;
    for (std::size_t i = 0; i < mesh.triangles.size(); i += 3) {
      btVector3 corner[3];
      for (std::size_t k = 0; k < 3; ++k) {
        const float(&place)[3] = mesh.vertices[mesh.triangles[i + k]].place;
        corner[k].setValue(place[0], place[1], place[2]);
      }
      const btScalar part = corner[0].dot(corner[1].cross(corner[2])) / 6;
      volume += part;
      size += std::abs(part);
    }
    EXPECT_GT(volume, 0.5) << name;
    EXPECT_GT(volume, 0.7 * size) << name << ": some are inside out";
  }
}

TEST(ViewerMeshes, HaveEveryTriangleAndPlane) {
  ShapeMeshes meshes;
  btTriangleMesh triangles;
  triangles.addTriangle({0, 0, 0}, {1, 0, 0}, {0, 0, 1});
  triangles.addTriangle({5, 1, 0}, {6, 1, 0}, {5, 1, 1});
  btBvhTriangleMeshShape mesh(&triangles, true);
  const std::vector<ShapePart>& parts = meshes.partsOf(mesh);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(meshes[parts[0].mesh].triangles.size(), 6u);

  btStaticPlaneShape plane({1, 0, 0}, 7);
  const ShapePart& wall = meshes.partsOf(plane).front();
  for (const Vertex& v : meshes[wall.mesh].vertices)
    EXPECT_NEAR((wall.place * btVector3(v.place[0], v.place[1], v.place[2])).x(), 7, 1e-3);
  EXPECT_TRUE(meshes[wall.mesh].isClosed) << "a plane is invisible from behind";
  const std::size_t before = meshes.size();
  meshes.partsOf(mesh);
  EXPECT_EQ(meshes.size(), before) << "made once";
}

}  // namespace

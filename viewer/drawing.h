// SPDX-License-Identifier: Zlib
// Describes as plain data what is to be drawn: meshes with their instances, and lines.
// scene_drawing.h and overlays.h make this data, and renderer.h draws it. Depends on neither
// Bullet's worlds nor OpenGL.
#pragma once

#include <LinearMath/btTransform.h>

#include <cstdint>
#include <vector>

#include "camera.h"

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0, alpha = 255;

  Colour faded(float by) const { return {red, green, blue, std::uint8_t(float(alpha) * by)}; }
  Colour shaded(float by) const {
    const auto scaled = [by](std::uint8_t part) {
      const float value = float(part) * by;
      return std::uint8_t(value > 255 ? 255 : value);
    };
    return {scaled(red), scaled(green), scaled(blue), alpha};
  }
};

inline Colour mixed(Colour a, Colour b, float share) {
  const auto mix = [share](std::uint8_t x, std::uint8_t y) {
    return std::uint8_t(float(x) + (float(y) - float(x)) * share);
  };
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue), mix(a.alpha, b.alpha)};
}

/// The colours that have a meaning. The picture, its legend and the tests share them.
namespace colours {
inline constexpr Colour active{222, 160, 100}, sleeping{92, 122, 156}, fixed{122, 129, 140},
    kinematic{84, 178, 160}, soft{196, 98, 90}, picked{255, 255, 255}, partner{255, 92, 170};
inline constexpr Colour box{120, 190, 255, 150}, touchingPair{255, 214, 64, 255},
    nearPair{64, 200, 255, 255}, addedPair{80, 255, 110, 255}, removedPair{255, 72, 60, 255},
    oversizedBox{255, 140, 30, 255}, ghost{190, 120, 255, 200};
/// Nodes of the tree take these colours in turn, in the order of their leaves.
inline constexpr Colour treeNodes[] = {{90, 255, 170, 235},
                                       {130, 150, 255, 235},
                                       {255, 100, 220, 235},
                                       {90, 220, 255, 235},
                                       {255, 225, 110, 235}};
}  // namespace colours

struct Vertex {
  float place[3];
  float normal[3];  ///< has length 1; 0: the triangle's normal is used (flat shading)
};

/// A mesh with three indices per triangle.
struct Mesh {
  std::vector<Vertex> vertices;
  std::vector<std::uint32_t> triangles;
  bool isClosed = false;  ///< visible only from outside; corners are counterclockwise
};

/// A solid with this alpha is opaque. Its faces that point up show a grid with lines every metre.
inline constexpr std::uint8_t kGridAlpha = 128;

/// The transform and colour of a mesh. The columns of `model` are the three scaled axes and the
/// position.
struct Instance {
  float model[12];
  Colour colour;
};

struct Line {
  float from[3];
  Colour fromColour;
  float to[3];
  Colour toColour;
};

/// One mesh with its instances. The mesh is uploaded again only when `version` changes.
struct MeshInstances {
  const Mesh* mesh = nullptr;
  std::uint64_t version = 0;
  std::vector<Instance> instances;
};

/// All that is drawn in one picture.
struct Drawing {
  std::vector<MeshInstances> solids;
  Mesh softFaces;                  ///< faces of soft bodies, in the world's coordinates
  std::vector<Line> lines;         ///< faint where solids hide them
  std::vector<Line> linesBetween;  ///< hidden only by solids `objectSize` or more in front
  std::vector<Line> linesOnTop;    ///< never hidden
  float objectSize = 1;            ///< half the diagonal of a typical object's box, in metres
  btVector3 low{-1, -1, -1}, high{1, 1, 1};  ///< bounds of moving objects, for shadows
};

inline void addLine(std::vector<Line>& lines, const btVector3& from, const btVector3& to, Colour a,
                    Colour b) {
  lines.push_back({{float(from.x()), float(from.y()), float(from.z())},
                   a,
                   {float(to.x()), float(to.y()), float(to.z())},
                   b});
}

inline void addLine(std::vector<Line>& lines, const btVector3& from, const btVector3& to,
                    Colour colour) {
  addLine(lines, from, to, colour, colour);
}

/// The twelve edges of a box.
inline void addBox(std::vector<Line>& lines, const btVector3& low, const btVector3& high,
                   Colour colour) {
  const auto corner = [&](int bits) {
    return btVector3((bits & 1) != 0 ? high.x() : low.x(), (bits & 2) != 0 ? high.y() : low.y(),
                     (bits & 4) != 0 ? high.z() : low.z());
  };
  for (int from = 0; from < 8; ++from)
    for (const int axis : {1, 2, 4})
      if ((from & axis) == 0) addLine(lines, corner(from), corner(from | axis), colour);
}

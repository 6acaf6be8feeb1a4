// SPDX-License-Identifier: Zlib
// Draws a Drawing with OpenGL 3.3: first the solids, then the lines. Each mesh takes one instanced
// draw call. One sun lights the solids and casts shadows. Needs a current context (window.h,
// headless.h).
#pragma once

#include <cstdint>
#include <vector>

#include "drawing.h"

/// A part of the picture, in pixels from the lower left corner.
struct Area {
  int x = 0, y = 0, width = 0, height = 0;

  btScalar aspect() const { return btScalar(width) / btScalar(height); }
};

class Renderer {
 public:
  Renderer();
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  /// Clears the current framebuffer and draws into a part of it.
  void draw(const Drawing& drawing, const Camera& camera, const Area& area);

 private:
  /// A mesh on the GPU, and a buffer for its instances.
  struct Buffers {
    unsigned array = 0, vertices = 0, triangles = 0, instances = 0;
    int count = 0;
    bool isClosed = false;
    std::uint64_t version = 0;
  };
  void fill(Buffers& buffers, const Mesh& mesh, std::uint64_t version);
  void drawSolids(const Drawing& drawing);
  void drawSolid(Buffers& buffers, const std::vector<Instance>& instances);
  void drawShadows(const Drawing& drawing);
  void drawLines(const std::vector<Line>& lines, float opacity, float lift);

  unsigned solidProgram_, shadowProgram_, lineProgram_, backgroundProgram_;
  unsigned shadowTexture_ = 0, shadowFramebuffer_ = 0;
  unsigned lineArray_ = 0, lineBuffer_ = 0, emptyArray_ = 0;
  Matrix light_{};
  std::vector<Buffers> solids_;
  Buffers soft_;
};

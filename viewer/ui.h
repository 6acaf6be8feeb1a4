// SPDX-License-Identifier: Zlib
// The panel, the graphs and the list of a picked object's pairs, with Dear ImGui, on a window or
// without one. Changes the View as the user asks; reads no mouse or key itself (input.h).
#pragma once

#include "renderer.h"
#include "view.h"

class Ui {
 public:
  /// Needs a current OpenGL context; for a window call ImGui_ImplGlfw_InitForOpenGL next.
  Ui();
  ~Ui();
  Ui(const Ui&) = delete;
  Ui& operator=(const Ui&) = delete;

  /// What the panel and the graphs leave to the scene, in pixels.
  Area sceneArea(int width, int height) const;

  /// Whether a point, counted from the upper left corner, lies on the panel, the graphs or the
  /// list. While a list to choose from is open, every point does.
  bool covers(float x, float y) const;

  /// Begins ImGui's frame, lays everything out and draws it into the current framebuffer, which has
  /// so many pixels.
  void draw(View& view, int width, int height);

  /// Pixels a point; more than 1 on screens that are scaled.
  static float scale();

  bool isHidden = false;
  bool wantsShot = false;  ///< the button was pressed; whoever shoots clears it

 private:
  void drawPanel(View& view, float height);
  void drawSimulation(View& view);
  void drawBroadphase(View& view);
  void drawOverlays(View& view);
  void drawFigures(View& view);
  void drawGraphs(View& view, float width, float height);
  void drawPicked(View& view, float width);

  lbvh::Options wanted_;  ///< while a slider is dragged
  bool isDragging_ = false;
  float pickedLow_[2] = {}, pickedHigh_[2] = {};  ///< corners of the picked object's list
};

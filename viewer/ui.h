// SPDX-License-Identifier: Zlib
// Draws the panel, the graphs and the list of a picked object's pairs with Dear ImGui, in a window
// or without one. Applies the user's changes to the View. input.h reads the mouse and the
// keyboard.
#pragma once

#include "renderer.h"
#include "view.h"

class Ui {
 public:
  /// Needs a current OpenGL context. If there is a window, the caller must call
  /// ImGui_ImplGlfw_InitForOpenGL next.
  Ui();
  ~Ui();
  Ui(const Ui&) = delete;
  Ui& operator=(const Ui&) = delete;

  /// The part of the picture that the panel and the graphs do not cover, in pixels.
  Area sceneArea(int width, int height) const;

  /// Whether a position lies on the panel, the graphs or the picked object's list. While a combo
  /// box is open, the result is true for every position.
  /// @param x, y in points (ImGui's unit) from the upper left corner
  bool covers(float x, float y) const;

  /// Begins ImGui's frame, lays out everything and draws it into the current framebuffer.
  /// @param width, height the framebuffer's size in pixels
  void draw(View& view, int width, int height);

  /// Pixels per point; more than 1 on scaled screens.
  static float scale();

  bool isHidden = false;
  bool wantsShot = false;  ///< the button `shoot` was pressed; the caller shoots and clears this

 private:
  void drawPanel(View& view, float height);
  void drawSimulation(View& view);
  void drawBroadphase(View& view);
  void drawOverlays(View& view);
  void drawFigures(View& view);
  void drawGraphs(View& view, float width, float height);
  void drawPicked(View& view, float width);

  lbvh::Options wanted_;  ///< the options that a slider shows while it is dragged
  bool isDragging_ = false;
  float pickedLow_[2] = {}, pickedHigh_[2] = {};  ///< corners of drawPicked()'s window
};

// SPDX-License-Identifier: Zlib
// Runs the viewer without a window: steps, swaps of the broad phase, checks around each swap, and
// pictures. main.cpp reads the command line.
#pragma once

#include <string>
#include <vector>

#include "view.h"

/// A swap of the world's broad phase before a step.
struct Swap {
  int step;
  std::string broadphase;
};

/// Reads a list like "150:dbvt,300:gpu-lbvh".
/// @throws std::invalid_argument if the text does not have this form
std::vector<Swap> parseSwaps(const std::string& text);

struct Script {
  int steps = 120;
  std::vector<Swap> swaps;
  bool verifies = false;
  std::string screenshot;  ///< a .png of the last step; empty: none
  std::string video;       ///< an existing folder for one .png per step; empty: none
  int width = 1280, height = 720;
  bool hidesUi = false;
  bool picks = false;
  btScalar pickX = 0, pickY = 0;  ///< point of the picture, in coordinates of Camera::rayThrough
};

/// Path of the video's picture after a step.
std::string pictureOf(const Script& script, int step);

/// Runs the script and prints the results of the checks. Makes an OpenGL context only if there is a
/// picture to draw.
/// @return whether all checks passed
/// @throws std::runtime_error if a step or a picture fails
bool runScript(const Script& script, View& view);

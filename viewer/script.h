// SPDX-License-Identifier: Zlib
// A run without a window: a number of steps, swaps of the broad phase between them, checks after
// each swap, and pictures. Does not parse the command line (main.cpp).
#pragma once

#include <string>
#include <vector>

#include "view.h"

/// Before a step, the world gets another broad phase.
struct Swap {
  int step;
  std::string broadphase;
};

/// "150:dbvt,300:gpu-lbvh"
/// @throws std::invalid_argument on anything else
std::vector<Swap> parseSwaps(const std::string& text);

struct Script {
  int steps = 120;
  std::vector<Swap> swaps;
  bool verifies = false;
  std::string screenshot;  ///< a .png, of the last step; empty: none
  std::string video;       ///< a folder that exists, for a .png a step; empty: none
  int width = 1280, height = 720;
  bool hidesUi = false;
  bool picks = false;
  btScalar pickX = 0, pickY = 0;  ///< as Camera::rayThrough
};

/// The file of the video's picture after a step.
std::string pictureOf(const Script& script, int step);

/// Prints what it checks. Makes a context only if there is a picture to draw.
/// @return whether all checks held
/// @throws std::runtime_error if a step or a picture fails
bool runScript(const Script& script, View& view);

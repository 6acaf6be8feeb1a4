// SPDX-License-Identifier: Zlib
// The viewer's window. input.h reads the mouse and the keyboard, and ui.h lays out the panel.
#pragma once

#include "view.h"

struct WindowOptions {
  int width = 1280, height = 720;
  bool hidesUi = false;
};

/// Shows the view until the window is closed.
/// @throws std::runtime_error if there is no display or no OpenGL 3.3
void runWindow(View& view, const WindowOptions& options);

/// What the keys and buttons do, for --help and the docs.
extern const char* const kKeys;

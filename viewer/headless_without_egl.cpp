// SPDX-License-Identifier: Zlib
// Replaces headless.cpp on systems without EGL, such as macOS.
#include <stdexcept>

#include "headless.h"

HeadlessContext::HeadlessContext() {
  throw std::runtime_error(
      "this viewer was built without EGL, so it can draw only in a window, without --screenshot "
      "and --video");
}

HeadlessContext::~HeadlessContext() = default;

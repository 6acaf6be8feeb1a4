// SPDX-License-Identifier: Zlib
// In headless.cpp's place where there is no EGL, as on macOS.
#include <stdexcept>

#include "headless.h"

HeadlessContext::HeadlessContext() {
  throw std::runtime_error(
      "this viewer was built without EGL: it draws in a window, and without one makes no pictures");
}

HeadlessContext::~HeadlessContext() = default;

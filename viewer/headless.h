// SPDX-License-Identifier: Zlib
// An OpenGL context from EGL, without a window or a display server. Does not draw.
#pragma once

class HeadlessContext {
 public:
  /// Makes a context, and makes it current on this thread.
  /// @throws std::runtime_error if there is no driver for it
  HeadlessContext();
  ~HeadlessContext();
  HeadlessContext(const HeadlessContext&) = delete;
  HeadlessContext& operator=(const HeadlessContext&) = delete;

 private:
  void* display_ = nullptr;
  void* context_ = nullptr;
};

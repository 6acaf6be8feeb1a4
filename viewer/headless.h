// SPDX-License-Identifier: Zlib
// An OpenGL context without a window or a display server, through EGL. Does not draw.
#pragma once

class HeadlessContext {
 public:
  /// Current for this thread from now on.
  /// @throws std::runtime_error that says what is missing
  HeadlessContext();
  ~HeadlessContext();
  HeadlessContext(const HeadlessContext&) = delete;
  HeadlessContext& operator=(const HeadlessContext&) = delete;

 private:
  void* display_ = nullptr;
  void* context_ = nullptr;
};

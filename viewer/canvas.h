// SPDX-License-Identifier: Zlib
// A picture that is drawn without a window: a framebuffer with four samples a pixel, and its PNG.
// Needs a current context.
#pragma once

#include <string>

class Canvas {
 public:
  Canvas(int width, int height);
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  int width() const { return width_; }
  int height() const { return height_; }
  /// From now on everything is drawn into this picture.
  void bind() const;
  /// @throws std::runtime_error if the file cannot be written
  void savePng(const std::string& path) const;

 private:
  int width_, height_;
  unsigned framebuffers_[2] = {};  ///< drawn to; read from
  unsigned renderbuffers_[3] = {};
};

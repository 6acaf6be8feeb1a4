// SPDX-License-Identifier: Zlib
// A picture that is drawn without a window and saved as PNG. It is a framebuffer with four samples
// per pixel. Needs a current OpenGL context.
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
  /// Makes this picture the target of all drawing.
  void bind() const;
  /// @throws std::runtime_error if the file cannot be written
  void savePng(const std::string& path) const;

 private:
  int width_, height_;
  unsigned framebuffers_[2] = {};  ///< the first is drawn into, the second is read back
  unsigned renderbuffers_[3] = {};
};

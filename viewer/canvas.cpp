// SPDX-License-Identifier: Zlib
#include "canvas.h"

#include <epoxy/gl.h>
#include <png.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

Canvas::Canvas(int width, int height) : width_(width), height_(height) {
  constexpr int samples = 4;
  glGenFramebuffers(2, framebuffers_);
  glGenRenderbuffers(3, renderbuffers_);
  const auto attach = [&](unsigned framebuffer, GLenum place, unsigned buffer, GLenum format,
                          int count) {
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glBindRenderbuffer(GL_RENDERBUFFER, buffer);
    glRenderbufferStorageMultisample(GL_RENDERBUFFER, count, format, width_, height_);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, place, GL_RENDERBUFFER, buffer);
  };
  attach(framebuffers_[0], GL_COLOR_ATTACHMENT0, renderbuffers_[0], GL_RGBA8, samples);
  attach(framebuffers_[0], GL_DEPTH_ATTACHMENT, renderbuffers_[1], GL_DEPTH_COMPONENT24, samples);
  attach(framebuffers_[1], GL_COLOR_ATTACHMENT0, renderbuffers_[2], GL_RGBA8, 0);
  for (const unsigned framebuffer : framebuffers_) {
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE)
      throw std::runtime_error("OpenGL has no framebuffer for a picture of this size");
  }
  bind();
}

Canvas::~Canvas() {
  glDeleteFramebuffers(2, framebuffers_);
  glDeleteRenderbuffers(3, renderbuffers_);
}

void Canvas::bind() const { glBindFramebuffer(GL_FRAMEBUFFER, framebuffers_[0]); }

void Canvas::savePng(const std::string& path) const {
  glBindFramebuffer(GL_READ_FRAMEBUFFER, framebuffers_[0]);
  glBindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffers_[1]);
  glDisable(GL_SCISSOR_TEST);
  glBlitFramebuffer(0, 0, width_, height_, 0, 0, width_, height_, GL_COLOR_BUFFER_BIT, GL_NEAREST);
  glBindFramebuffer(GL_READ_FRAMEBUFFER, framebuffers_[1]);
  const int stride = 3 * width_;
  std::vector<std::uint8_t> pixels(std::size_t(stride) * std::size_t(height_));
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, width_, height_, GL_RGB, GL_UNSIGNED_BYTE, pixels.data());
  bind();

  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = png_uint_32(width_);
  image.height = png_uint_32(height_);
  image.format = PNG_FORMAT_RGB;
  // The stride is negative because OpenGL's first row is the lowest.
  if (png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), -stride, nullptr) == 0)
    throw std::runtime_error("cannot write " + path + ": " + image.message);
}

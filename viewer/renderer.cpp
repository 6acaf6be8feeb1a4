// SPDX-License-Identifier: Zlib
#include "renderer.h"

#include <epoxy/gl.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "shaders.h"

namespace {

constexpr int kShadowSize = 2048;   // pixels
constexpr float kLineWidth = 1.8f;  // pixels
const btVector3 kToSun(btScalar(0.32), btScalar(0.85), btScalar(0.42));
constexpr float kHaze[] = {0.145f, 0.16f, 0.185f};

unsigned compile(GLenum kind, const char* source) {
  const unsigned shader = glCreateShader(kind);
  glShaderSource(shader, 1, &source, nullptr);
  glCompileShader(shader);
  int isGood = 0;
  glGetShaderiv(shader, GL_COMPILE_STATUS, &isGood);
  if (isGood == 0) {
    char log[1000] = "";
    glGetShaderInfoLog(shader, sizeof log, nullptr, log);
    throw std::runtime_error(std::string("a shader does not compile: ").append(log));
  }
  return shader;
}

unsigned link(const char* vertex, const char* fragment) {
  const unsigned program = glCreateProgram();
  for (const unsigned shader :
       {compile(GL_VERTEX_SHADER, vertex), compile(GL_FRAGMENT_SHADER, fragment)}) {
    glAttachShader(program, shader);
    glDeleteShader(shader);  // OpenGL deletes the shader together with the program
  }
  glLinkProgram(program);
  int isGood = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &isGood);
  if (isGood == 0) throw std::runtime_error("a shader program does not link");
  return program;
}

void setMatrix(unsigned program, const char* name, const Matrix& value) {
  glUniformMatrix4fv(glGetUniformLocation(program, name), 1, GL_FALSE, value.data());
}
void setVector(unsigned program, const char* name, const btVector3& value) {
  glUniform3f(glGetUniformLocation(program, name), float(value.x()), float(value.y()),
              float(value.z()));
}
void setHaze(unsigned program) { glUniform3fv(glGetUniformLocation(program, "haze"), 1, kHaze); }

/// Describes an attribute in the bound buffer. Colours are bytes, and all other attributes are
/// floats.
void attribute(unsigned location, int size, std::size_t stride, std::size_t offset,
               bool isOnePerInstance) {
  glEnableVertexAttribArray(location);
  glVertexAttribPointer(location, size, size == 4 ? GL_UNSIGNED_BYTE : GL_FLOAT,
                        size == 4 ? GL_TRUE : GL_FALSE, int(stride),
                        reinterpret_cast<const void*>(offset));
  glVertexAttribDivisor(location, isOnePerInstance ? 1 : 0);
}

template <class Item>
void upload(unsigned buffer, const std::vector<Item>& items, GLenum kind = GL_ARRAY_BUFFER) {
  glBindBuffer(kind, buffer);
  glBufferData(kind, std::ptrdiff_t(items.size() * sizeof(Item)), items.data(), GL_STREAM_DRAW);
}

}  // namespace

Renderer::Renderer()
    : solidProgram_(link(shaders::solidVertex, shaders::solidFragment)),
      shadowProgram_(link(shaders::solidVertex, shaders::shadowFragment)),
      lineProgram_(link(shaders::lineVertex, shaders::lineFragment)),
      backgroundProgram_(link(shaders::backgroundVertex, shaders::backgroundFragment)) {
  glGenVertexArrays(1, &emptyArray_);
  glGenVertexArrays(1, &lineArray_);
  glBindVertexArray(lineArray_);
  glGenBuffers(1, &lineBuffer_);
  glBindBuffer(GL_ARRAY_BUFFER, lineBuffer_);
  attribute(0, 3, sizeof(Line), offsetof(Line, from), true);
  attribute(1, 4, sizeof(Line), offsetof(Line, fromColour), true);
  attribute(2, 3, sizeof(Line), offsetof(Line, to), true);
  attribute(3, 4, sizeof(Line), offsetof(Line, toColour), true);

  glGenTextures(1, &shadowTexture_);
  glBindTexture(GL_TEXTURE_2D, shadowTexture_);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_DEPTH_COMPONENT24, kShadowSize, kShadowSize, 0,
               GL_DEPTH_COMPONENT, GL_UNSIGNED_INT, nullptr);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_MODE, GL_COMPARE_REF_TO_TEXTURE);
  int current = 0;
  glGetIntegerv(GL_DRAW_FRAMEBUFFER_BINDING, &current);
  glGenFramebuffers(1, &shadowFramebuffer_);
  glBindFramebuffer(GL_FRAMEBUFFER, shadowFramebuffer_);
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_TEXTURE_2D, shadowTexture_, 0);
  glDrawBuffer(GL_NONE);
  glBindFramebuffer(GL_FRAMEBUFFER, unsigned(current));
}

Renderer::~Renderer() {
  const auto free = [](Buffers& buffers) {
    glDeleteBuffers(1, &buffers.vertices);
    glDeleteBuffers(1, &buffers.triangles);
    glDeleteBuffers(1, &buffers.instances);
    glDeleteVertexArrays(1, &buffers.array);
  };
  for (Buffers& buffers : solids_) free(buffers);
  free(soft_);
  glDeleteFramebuffers(1, &shadowFramebuffer_);
  glDeleteTextures(1, &shadowTexture_);
  glDeleteBuffers(1, &lineBuffer_);
  glDeleteVertexArrays(1, &lineArray_);
  glDeleteVertexArrays(1, &emptyArray_);
  for (const unsigned program : {solidProgram_, shadowProgram_, lineProgram_, backgroundProgram_})
    glDeleteProgram(program);
}

void Renderer::fill(Buffers& buffers, const Mesh& mesh, std::uint64_t version) {
  if (buffers.array == 0) {
    glGenVertexArrays(1, &buffers.array);
    glGenBuffers(1, &buffers.vertices);
    glGenBuffers(1, &buffers.triangles);
    glGenBuffers(1, &buffers.instances);
    glBindVertexArray(buffers.array);
    glBindBuffer(GL_ARRAY_BUFFER, buffers.vertices);
    attribute(0, 3, sizeof(Vertex), offsetof(Vertex, place), false);
    attribute(1, 3, sizeof(Vertex), offsetof(Vertex, normal), false);
    glBindBuffer(GL_ARRAY_BUFFER, buffers.instances);
    for (unsigned i = 0; i < 4; ++i)
      attribute(2 + i, 3, sizeof(Instance), 3 * sizeof(float) * i, true);
    attribute(6, 4, sizeof(Instance), offsetof(Instance, colour), true);
  }
  glBindVertexArray(buffers.array);
  upload(buffers.vertices, mesh.vertices);
  upload(buffers.triangles, mesh.triangles, GL_ELEMENT_ARRAY_BUFFER);
  buffers.count = int(mesh.triangles.size());
  buffers.isClosed = mesh.isClosed;
  buffers.version = version;
}

void Renderer::drawSolid(Buffers& buffers, const std::vector<Instance>& instances) {
  if (instances.empty() || buffers.count == 0) return;
  glBindVertexArray(buffers.array);
  upload(buffers.instances, instances);
  (buffers.isClosed ? glEnable : glDisable)(GL_CULL_FACE);
  glDrawElementsInstanced(GL_TRIANGLES, buffers.count, GL_UNSIGNED_INT, nullptr,
                          int(instances.size()));
}

void Renderer::drawSolids(const Drawing& drawing) {
  for (std::size_t i = 0; i < drawing.solids.size(); ++i)
    drawSolid(solids_[i], drawing.solids[i].instances);
  if (!drawing.softFaces.triangles.empty())
    drawSolid(soft_, {{{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, colours::soft}});
  glDisable(GL_CULL_FACE);
}

void Renderer::drawShadows(const Drawing& drawing) {
  int target = 0;
  glGetIntegerv(GL_DRAW_FRAMEBUFFER_BINDING, &target);
  glBindFramebuffer(GL_FRAMEBUFFER, shadowFramebuffer_);
  glViewport(0, 0, kShadowSize, kShadowSize);
  glClear(GL_DEPTH_BUFFER_BIT);
  glEnable(GL_DEPTH_CLAMP);  // solids between the scene and the sun cast shadows, too
  glEnable(GL_POLYGON_OFFSET_FILL);
  glPolygonOffset(2, 4);
  glUseProgram(shadowProgram_);
  setMatrix(shadowProgram_, "viewProjection", light_);
  drawSolids(drawing);
  glDisable(GL_POLYGON_OFFSET_FILL);
  glDisable(GL_DEPTH_CLAMP);
  glBindFramebuffer(GL_FRAMEBUFFER, unsigned(target));
}

void Renderer::drawLines(const std::vector<Line>& lines, float opacity, float lift) {
  if (lines.empty()) return;
  glUniform1f(glGetUniformLocation(lineProgram_, "opacity"), opacity);
  glUniform1f(glGetUniformLocation(lineProgram_, "lift"), lift);
  glBindVertexArray(lineArray_);
  upload(lineBuffer_, lines);
  glDrawArraysInstanced(GL_TRIANGLE_STRIP, 0, 4, int(lines.size()));
}

void Renderer::draw(const Drawing& drawing, const Camera& camera, const Area& area) {
  if (solids_.size() < drawing.solids.size()) solids_.resize(drawing.solids.size());
  for (std::size_t i = 0; i < drawing.solids.size(); ++i) {
    const MeshInstances& solid = drawing.solids[i];
    if (solids_[i].array == 0 || solids_[i].version != solid.version)
      fill(solids_[i], *solid.mesh, solid.version);
  }
  if (!drawing.softFaces.triangles.empty()) fill(soft_, drawing.softFaces, 0);

  const btVector3 middle = (drawing.high + drawing.low) / 2;
  const btScalar radius = (drawing.high - drawing.low).length() / 2 * btScalar(1.05) + 1;
  light_ = lightView(-kToSun, middle, radius);
  glEnable(GL_DEPTH_TEST);
  glDepthFunc(GL_LESS);
  glDisable(GL_BLEND);
  glDisable(GL_CULL_FACE);
  glDisable(GL_SCISSOR_TEST);
  glDepthMask(GL_TRUE);
  drawShadows(drawing);

  glViewport(area.x, area.y, area.width, area.height);
  glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
  glDepthMask(GL_FALSE);
  glUseProgram(backgroundProgram_);
  setHaze(backgroundProgram_);
  glBindVertexArray(emptyArray_);
  glDrawArrays(GL_TRIANGLES, 0, 3);
  glDepthMask(GL_TRUE);

  const Matrix viewProjection = camera.viewProjection(area.aspect());
  glUseProgram(solidProgram_);
  glBindTexture(GL_TEXTURE_2D, shadowTexture_);
  setMatrix(solidProgram_, "viewProjection", viewProjection);
  setMatrix(solidProgram_, "light", light_);
  setVector(solidProgram_, "eye", camera.eye());
  setVector(solidProgram_, "toSun", kToSun.normalized());
  setHaze(solidProgram_);
  glUniform1f(glGetUniformLocation(solidProgram_, "shadowTexel"),
              2.5f * float(radius) / kShadowSize);
  glUniform1f(glGetUniformLocation(solidProgram_, "hazeDistance"), float(camera.distance) * 4);
  drawSolids(drawing);

  glEnable(GL_BLEND);
  glBlendFuncSeparate(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA, GL_ONE, GL_ONE);
  glDepthMask(GL_FALSE);
  glUseProgram(lineProgram_);
  setMatrix(lineProgram_, "viewProjection", viewProjection);
  glUniform2f(glGetUniformLocation(lineProgram_, "pixel"), kLineWidth / float(area.width),
              kLineWidth / float(area.height));
  setVector(lineProgram_, "eye", camera.eye());
  glDepthFunc(GL_LEQUAL);
  drawLines(drawing.lines, 1, 0);
  drawLines(drawing.linesBetween, 1, drawing.objectSize);
  // Lines behind solids shine through. With more lines, each line is fainter, so that the lines do
  // not hide the solids.
  glDepthFunc(GL_GREATER);
  drawLines(drawing.lines, std::clamp(400.0f / float(drawing.lines.size() + 1), 0.03f, 0.15f), 0);
  glDepthFunc(GL_ALWAYS);
  drawLines(drawing.linesOnTop, 1, 0);
  glDepthMask(GL_TRUE);
}

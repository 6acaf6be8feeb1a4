// SPDX-License-Identifier: Zlib
#include "window.h"

#include <epoxy/gl.h>
// epoxy/gl.h must come first.
#include <GLFW/glfw3.h>
#include <imgui_impl_glfw.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "input.h"
#include "renderer.h"
#include "ui.h"

const char* const kKeys =
    "  left drag   orbit\n"
    "  right drag  move\n"
    "  wheel       zoom\n"
    "  left click  pick an object\n"
    "  P           pause\n"
    "  N           one step\n"
    "  space       shoot a box at the mouse\n"
    "  F           frame the scene\n"
    "  R           restart\n"
    "  1 to 5      overlays: boxes, tree, pairs, changes, oversized\n"
    "  [ and ]     tree level\n"
    "  B           next broad phase\n"
    "  H           hide the panel\n"
    "  escape      quit";

namespace {

struct FreeWindow {
  void operator()(GLFWwindow* window) const {
    glfwDestroyWindow(window);
    glfwTerminate();
  }
};
using WindowOwner = std::unique_ptr<GLFWwindow, FreeWindow>;

WindowOwner open(const WindowOptions& options) {
  const char* why = "no display";
  if (glfwInit() != GLFW_TRUE) {
    glfwGetError(&why);
    throw std::runtime_error(
        std::string("no window: ").append(why).append(" (--screenshot FILE needs no display)"));
  }
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_SAMPLES, 4);
  WindowOwner window(
      glfwCreateWindow(options.width, options.height, "GpuLbvhBroadphase", nullptr, nullptr));
  if (window == nullptr) {
    glfwGetError(&why);
    throw std::runtime_error(std::string("no window with OpenGL 3.3: ").append(why));
  }
  glfwMakeContextCurrent(window.get());
  glfwSwapInterval(1);
  return window;
}

}  // namespace

void runWindow(View& view, const WindowOptions& options) {
  const WindowOwner window = open(options);
  Renderer renderer;
  Ui ui;
  ui.isHidden = options.hidesUi;
  Input input(window.get(), view, ui);
  ImGui_ImplGlfw_InitForOpenGL(window.get(), true);
  while (glfwWindowShouldClose(window.get()) == GLFW_FALSE) {
    glfwPollEvents();
    int width = 0, height = 0;
    glfwGetFramebufferSize(window.get(), &width, &height);
    if (width == 0 || height == 0) {  // minimised
      glfwWaitEvents();
      continue;
    }
    if (!view.isPaused) view.step();
    ImGui_ImplGlfw_NewFrame();
    renderer.draw(view.draw(), view.camera, ui.sceneArea(width, height));
    ui.draw(view, width, height);
    input.update(width, height);
    glfwSwapBuffers(window.get());
  }
  ImGui_ImplGlfw_Shutdown();
}

#include "window.h"

#include <epoxy/gl.h>
// After the loader.
#include <GLFW/glfw3.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "renderer.h"
#include "ui.h"

const char* const kKeys =
    "left drag: orbit; right drag: move; wheel: zoom; left click: pick an object\n"
    "P: pause; N: one step; space: shoot a box at the mouse; F: frame the scene; R: restart\n"
    "1 to 5: overlays (boxes, tree, pairs, changes, sides); [ and ]: tree level\n"
    "B: next broad phase; H: hide the panel; escape: quit";

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

/// Mouse and keys, frame by frame; ImGui gets what is over its windows.
class Input {
 public:
  Input(GLFWwindow* window, View& view, Ui& ui) : window_(window), view_(view), ui_(ui) {}

  void update(int width, int height) {
    area_ = ui_.sceneArea(width, height);
    height_ = height;
    if (!ImGui::GetIO().WantCaptureMouse) mouse();
    if (!ImGui::GetIO().WantCaptureKeyboard) keys();
    if (std::exchange(ui_.wantsShot, false)) view_.shoot(0, 0, area_.aspect());
  }

 private:
  /// As Camera::rayThrough has it. ImGui's points begin in the upper left corner.
  btScalar mouseX() const {
    const btScalar x = btScalar(ImGui::GetIO().MousePos.x * Ui::scale());
    return (x - btScalar(area_.x)) / btScalar(area_.width) * 2 - 1;
  }
  btScalar mouseY() const {
    const btScalar y = btScalar(height_) - btScalar(ImGui::GetIO().MousePos.y * Ui::scale());
    return (y - btScalar(area_.y)) / btScalar(area_.height) * 2 - 1;
  }

  void mouse() {
    const ImGuiIO& io = ImGui::GetIO();
    if (ImGui::IsMouseDragging(0)) {
      view_.camera.orbit(btScalar(-0.3f * io.MouseDelta.x), btScalar(0.3f * io.MouseDelta.y));
      wasDragged_ = true;
    }
    if (ImGui::IsMouseDragging(1) || ImGui::IsMouseDragging(2))
      view_.camera.pan(btScalar(-io.MouseDelta.x * Ui::scale()) / btScalar(area_.height),
                       btScalar(io.MouseDelta.y * Ui::scale()) / btScalar(area_.height));
    if (io.MouseWheel != 0) view_.camera.zoom(btScalar(std::pow(0.9f, io.MouseWheel)));
    if (ImGui::IsMouseReleased(0) && !std::exchange(wasDragged_, false))
      view_.pickAt(mouseX(), mouseY(), area_.aspect());
  }

  /// Whether a key has gone down since the last frame.
  bool pressed(int key) {
    const bool isDown = glfwGetKey(window_, key) == GLFW_PRESS;
    return !std::exchange(wasDown_[std::size_t(key)], isDown) && isDown;
  }

  void keys() {
    const auto& rows = overlayRows();
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (pressed(GLFW_KEY_1 + int(i))) view_.switches.*rows[i].isOn ^= true;
    int& level = view_.switches.treeLevel;
    if (pressed(GLFW_KEY_LEFT_BRACKET)) level = std::max(level - 1, 0);
    if (pressed(GLFW_KEY_RIGHT_BRACKET)) level = std::min(level + 1, kMaxTreeLevel);
    if (pressed(GLFW_KEY_P)) view_.isPaused = !view_.isPaused;
    if (pressed(GLFW_KEY_N)) {
      view_.isPaused = true;
      view_.step();
    }
    if (pressed(GLFW_KEY_SPACE)) view_.shoot(mouseX(), mouseY(), area_.aspect());
    if (pressed(GLFW_KEY_F)) view_.frame();
    if (pressed(GLFW_KEY_R)) view_.restart(view_.session().options());
    if (pressed(GLFW_KEY_B)) nextBroadphase();
    if (pressed(GLFW_KEY_H)) ui_.isHidden = !ui_.isHidden;
    if (pressed(GLFW_KEY_ESCAPE)) glfwSetWindowShouldClose(window_, GLFW_TRUE);
  }

  void nextBroadphase() {
    const SessionOptions& options = view_.session().options();
    const std::vector<std::string> names = view_.session().broadphases();
    auto next = std::find(names.begin(), names.end(), options.broadphase);
    if (next != names.end()) ++next;
    view_.swap(next == names.end() ? names.front() : *next, options.finder);
  }

  GLFWwindow* window_;
  View& view_;
  Ui& ui_;
  Area area_;
  int height_ = 0;
  bool wasDragged_ = false;
  std::array<bool, GLFW_KEY_LAST + 1> wasDown_{};
};

}  // namespace

void runWindow(View& view, const WindowOptions& options) {
  const WindowOwner window = open(options);
  Renderer renderer;
  Ui ui;
  ui.isHidden = options.hidesUi;
  ImGui_ImplGlfw_InitForOpenGL(window.get(), true);
  Input input(window.get(), view, ui);
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

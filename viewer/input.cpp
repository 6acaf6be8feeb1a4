// SPDX-License-Identifier: Zlib
#include "input.h"

#include <GLFW/glfw3.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

Input::Input(GLFWwindow* window, View& view, Ui& ui) : window_(window), view_(view), ui_(ui) {
  glfwSetWindowUserPointer(window, this);
  glfwGetCursorPos(window, &mouseX_, &mouseY_);
  x_ = mouseX_;
  y_ = mouseY_;
  glfwSetKeyCallback(window, [](GLFWwindow* from, int key, int, int action, int) {
    if (action == GLFW_PRESS) of(from).keep({.kind = Kind::key, .code = key});
  });
  glfwSetMouseButtonCallback(window, [](GLFWwindow* from, int button, int action, int) {
    of(from).keep({.kind = action == GLFW_PRESS ? Kind::press : Kind::release, .code = button});
  });
  glfwSetCursorPosCallback(window, [](GLFWwindow* from, double x, double y) {
    Input& input = of(from);
    input.mouseX_ = x;
    input.mouseY_ = y;
    input.keep({.kind = Kind::move});
  });
  glfwSetScrollCallback(window, [](GLFWwindow* from, double, double notches) {
    of(from).keep({.kind = Kind::wheel, .wheel = notches});
  });
}

Input& Input::of(GLFWwindow* window) {
  return *static_cast<Input*>(glfwGetWindowUserPointer(window));
}

void Input::keep(Event event) {
  // glfwGetCursorPos returns the mouse's current position, not its position at the event.
  event.x = mouseX_;
  event.y = mouseY_;
  events_.push_back(event);
}

void Input::update(int width, int height) {
  width_ = width;
  height_ = height;
  for (const Event& event : std::exchange(events_, {})) apply(event);
  if (std::exchange(ui_.wantsShot, false)) view_.shoot(0, 0, ui_.sceneArea(width, height).aspect());
}

void Input::apply(const Event& event) {
  const bool isScene = !ui_.covers(float(event.x), float(event.y));
  switch (event.kind) {
    case Kind::key:
      // WantCaptureKeyboard is the state of the previous frame. IsAnyItemActive includes a click in
      // the current frame.
      if (!ImGui::GetIO().WantCaptureKeyboard && !ImGui::IsAnyItemActive()) key(event);
      break;
    case Kind::press:
      if (isScene && event.code < int(buttons_.size()))
        buttons_[std::size_t(event.code)] = {true, false, event.x, event.y};
      break;
    case Kind::release:
      if (event.code < int(buttons_.size())) release(event);
      break;
    case Kind::move:
      move(event);
      break;
    case Kind::wheel:
      if (isScene) view_.camera.zoom(btScalar(std::pow(0.9, event.wheel)));
      break;
  }
}

void Input::move(const Event& event) {
  const double byX = event.x - std::exchange(x_, event.x);
  const double byY = event.y - std::exchange(y_, event.y);
  for (Button& button : buttons_) {
    const double far = std::hypot(event.x - button.x, event.y - button.y);
    if (button.isHeld && far >= double(ImGui::GetIO().MouseDragThreshold)) button.isDragged = true;
    if (!button.isDragged) continue;
    const double points = ui_.sceneArea(width_, height_).height / double(Ui::scale());
    if (&button == &buttons_[GLFW_MOUSE_BUTTON_LEFT])
      view_.camera.orbit(btScalar(-0.3 * byX), btScalar(0.3 * byY));
    else
      view_.camera.pan(btScalar(-byX / points), btScalar(byY / points));
  }
}

void Input::release(const Event& event) {
  const Button button = std::exchange(buttons_[std::size_t(event.code)], {});
  if (event.code != GLFW_MOUSE_BUTTON_LEFT || !button.isHeld || button.isDragged) return;
  const Place place = placeOf(event);
  view_.pickAt(place.x, place.y, place.aspect);
}

Input::Place Input::placeOf(const Event& event) const {
  const Area area = ui_.sceneArea(width_, height_);
  const double x = event.x * double(Ui::scale()) - area.x;
  const double y = height_ - event.y * double(Ui::scale()) - area.y;
  return {btScalar(x / area.width * 2 - 1), btScalar(y / area.height * 2 - 1), area.aspect()};
}

void Input::key(const Event& event) {
  const auto& rows = overlayRows();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (event.code == GLFW_KEY_1 + int(i)) view_.switches.*rows[i].isOn ^= true;
  int& level = view_.switches.treeLevel;
  const Place place = placeOf(event);
  switch (event.code) {
    case GLFW_KEY_LEFT_BRACKET:
      level = std::max(level - 1, 0);
      break;
    case GLFW_KEY_RIGHT_BRACKET:
      level = std::min(level + 1, kMaxTreeLevel);
      break;
    case GLFW_KEY_P:
      view_.isPaused = !view_.isPaused;
      break;
    case GLFW_KEY_N:
      view_.isPaused = true;
      view_.step();
      break;
    case GLFW_KEY_SPACE:
      view_.shoot(place.x, place.y, place.aspect);
      break;
    case GLFW_KEY_F:
      view_.frame();
      break;
    case GLFW_KEY_R:
      view_.restart(view_.session().options());
      break;
    case GLFW_KEY_B:
      nextBroadphase();
      break;
    case GLFW_KEY_H:
      ui_.isHidden = !ui_.isHidden;
      break;
    case GLFW_KEY_ESCAPE:
      glfwSetWindowShouldClose(window_, GLFW_TRUE);
      break;
  }
}

void Input::nextBroadphase() {
  const SessionOptions& options = view_.session().options();
  const std::vector<std::string> names = view_.session().broadphases();
  auto next = std::find(names.begin(), names.end(), options.broadphase);
  if (next != names.end()) ++next;
  view_.swap(next == names.end() ? names.front() : *next, options.finder);
}

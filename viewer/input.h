// SPDX-License-Identifier: Zlib
// The mouse and the keyboard of the viewer's window. Stores GLFW's events in order and applies them
// once per frame, so that a click between two frames is not lost. Does not draw.
#pragma once

#include <array>
#include <vector>

#include "renderer.h"
#include "ui.h"
#include "view.h"

struct GLFWwindow;

class Input {
 public:
  /// Sets the window's callbacks. ImGui's callbacks must be installed later, because they call the
  /// callbacks that are already installed.
  Input(GLFWwindow* window, View& view, Ui& ui);
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// Applies the events since the last call.
  /// @param width, height the framebuffer's size in pixels
  void update(int width, int height);

 private:
  enum class Kind { key, press, release, move, wheel };
  struct Event {
    Kind kind;
    int code = 0;         ///< GLFW's code of the key or button
    double x = 0, y = 0;  ///< position of the mouse, in points from the upper left corner
    double wheel = 0;     ///< notches; positive: upward
  };
  struct Button {
    bool isHeld = false;  ///< whether it is down, and was pressed over the scene
    bool isDragged = false;
    double x = 0, y = 0;  ///< position at which it was pressed, in points
  };

  static Input& of(GLFWwindow* window);
  void keep(Event event);
  void apply(const Event& event);
  void move(const Event& event);
  void release(const Event& event);
  void key(const Event& event);
  void nextBroadphase();

  /// A point of the picture, in the coordinates of Camera::rayThrough.
  struct Place {
    btScalar x, y, aspect;
  };
  Place placeOf(const Event& event) const;

  GLFWwindow* window_;
  View& view_;
  Ui& ui_;
  std::vector<Event> events_;
  std::array<Button, 3> buttons_;   ///< left, right, middle
  double mouseX_ = 0, mouseY_ = 0;  ///< mouse position after the last stored event
  double x_ = 0, y_ = 0;            ///< mouse position after the last applied event
  int width_ = 0, height_ = 0;
};

// SPDX-License-Identifier: Zlib
// What the viewer shows: a session, a camera, the overlays that are on, and the picked object.
// Makes Drawings. Needs no OpenGL, so scripts and tests run it without a display.
#pragma once

#include <string>
#include <vector>

#include "camera.h"
#include "overlays.h"
#include "scene_drawing.h"
#include "session.h"

class View {
 public:
  explicit View(const SessionOptions& options);

  /// Restarts the simulation. Frames the scene if it differs from the previous scene.
  void restart(const SessionOptions& options);
  void swap(const std::string& broadphase, const lbvh::Options& finder);
  void step();
  /// Shoots a box from the camera through a point of the picture (see Camera::rayThrough).
  void shoot(btScalar x, btScalar y, btScalar aspect);
  /// Picks the object at a point of the picture, or nothing.
  void pickAt(btScalar x, btScalar y, btScalar aspect);
  /// Looks at the whole scene.
  void frame();

  const Drawing& draw();

  Session& session() { return session_; }
  const btCollisionObject* picked() const { return picked_; }
  const std::vector<Partner>& partners() const { return partners_; }
  const Overlays& overlays() const { return overlays_; }
  /// Why the simulation stopped; empty if it did not.
  const std::string& error() const { return error_; }

  Camera camera;
  OverlaySwitches switches;
  bool isPaused = false;

 private:
  Session session_;
  SceneDrawing scene_;
  Overlays overlays_;
  Drawing drawing_;
  const btCollisionObject* picked_ = nullptr;
  std::vector<Partner> partners_;
  std::string error_;
};

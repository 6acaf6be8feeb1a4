// SPDX-License-Identifier: Zlib
// What the viewer shows and how: a session, a camera, the overlays that are on, the picked object.
// Makes Drawings; needs no OpenGL, so scripts and tests run it without a display.
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

  /// Starts a scene anew and frames it, unless it is the scene that was there.
  void restart(const SessionOptions& options);
  void swap(const std::string& broadphase, const lbvh::Options& finder);
  void step();
  /// Shoots a box from the camera through a point of the picture (as Camera::rayThrough).
  void shoot(btScalar x, btScalar y, btScalar aspect);
  /// Picks what is at a point of the picture, or nothing.
  void pickAt(btScalar x, btScalar y, btScalar aspect);
  /// Looks at all of the scene.
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

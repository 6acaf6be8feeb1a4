// SPDX-License-Identifier: Zlib
// A camera on a sphere around a target. Makes matrices for OpenGL and rays for picking. Depends on
// neither windows nor OpenGL.
#pragma once

#include <LinearMath/btVector3.h>

#include <array>

/// A 4 x 4 matrix, column by column as in OpenGL.
using Matrix = std::array<float, 16>;

struct PickRay {
  btVector3 origin;
  btVector3 direction;  ///< has length 1
};

class Camera {
 public:
  btScalar yaw = 35;    ///< degrees around the vertical axis; 0: the scene is seen from +z
  btScalar pitch = 30;  ///< degrees above the horizon
  btScalar distance = 30;
  btVector3 target{0, 0, 0};

  btVector3 eye() const;
  Matrix viewProjection(btScalar aspect) const;

  /// The ray from the camera through a point of the picture.
  /// @param x, y from -1 (left, bottom) to 1 (right, top)
  PickRay rayThrough(btScalar x, btScalar y, btScalar aspect) const;

  void orbit(btScalar yawBy, btScalar pitchBy);
  void zoom(btScalar factor) { distance *= factor; }
  /// Moves the target in the picture's plane, in units of the picture's height.
  void pan(btScalar right, btScalar up);

  /// Moves the camera so that a box fills the picture. If the box is long, the camera looks along
  /// it and frames only its middle, because the whole box would be too small to see.
  void frame(const btVector3& low, const btVector3& high);

 private:
  struct Axes {
    btVector3 right, up, back;
  };
  Axes axes() const;
};

/// The orthographic view of a light that shines along `direction` on a sphere.
Matrix lightView(const btVector3& direction, const btVector3& centre, btScalar radius);

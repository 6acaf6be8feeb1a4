// SPDX-License-Identifier: Zlib
#include "camera.h"

#include <algorithm>
#include <cmath>

namespace {

constexpr btScalar kHalfHeight = btScalar(0.364);  // tangent of 20 degrees, half the field of view

btVector3 unitAt(btScalar yaw, btScalar pitch) {
  const btScalar a = btRadians(yaw), b = btRadians(pitch);
  return {std::sin(a) * std::cos(b), std::sin(b), std::cos(a) * std::cos(b)};
}

Matrix multiply(const Matrix& a, const Matrix& b) {
  Matrix product{};
  for (std::size_t column = 0; column < 4; ++column)
    for (std::size_t row = 0; row < 4; ++row)
      for (std::size_t k = 0; k < 4; ++k)
        product[column * 4 + row] += a[k * 4 + row] * b[column * 4 + k];
  return product;
}

/// The matrix from the world to a camera at `eye` with the given axes.
Matrix viewFrom(const btVector3& eye, const btVector3& right, const btVector3& up,
                const btVector3& back) {
  Matrix view{};
  const btVector3* rows[] = {&right, &up, &back};
  for (std::size_t row = 0; row < 3; ++row) {
    for (int axis = 0; axis < 3; ++axis)
      view[static_cast<std::size_t>(axis) * 4 + row] = float((*rows[row])[axis]);
    view[12 + row] = float(-rows[row]->dot(eye));
  }
  view[15] = 1;
  return view;
}

}  // namespace

Camera::Axes Camera::axes() const {
  const btVector3 back = unitAt(yaw, pitch);
  const btVector3 right = unitAt(yaw + 90, 0);
  return {right, back.cross(right), back};
}

btVector3 Camera::eye() const { return target + axes().back * distance; }

Matrix Camera::viewProjection(btScalar aspect) const {
  const float near = float(distance) * 0.02f, far = float(distance) * 60;
  Matrix projection{};
  projection[0] = 1 / float(kHalfHeight * aspect);
  projection[5] = 1 / float(kHalfHeight);
  projection[10] = (near + far) / (near - far);
  projection[11] = -1;
  projection[14] = 2 * near * far / (near - far);
  const Axes a = axes();
  return multiply(projection, viewFrom(eye(), a.right, a.up, a.back));
}

PickRay Camera::rayThrough(btScalar x, btScalar y, btScalar aspect) const {
  const Axes a = axes();
  const btVector3 towards =
      a.right * (x * kHalfHeight * aspect) + a.up * (y * kHalfHeight) - a.back;
  return {eye(), towards.normalized()};
}

void Camera::orbit(btScalar yawBy, btScalar pitchBy) {
  yaw = std::fmod(yaw + yawBy, btScalar(360));
  pitch = std::clamp(pitch + pitchBy, btScalar(-89), btScalar(89));
}

void Camera::pan(btScalar right, btScalar up) {
  const Axes a = axes();
  target += (a.right * right + a.up * up) * (2 * kHalfHeight * distance);
}

void Camera::frame(const btVector3& low, const btVector3& high) {
  btVector3 half = (high - low) / 2;
  target = (low + high) / 2;
  const bool alongX = half.x() > half.z();
  const btScalar wide = std::max(alongX ? half.z() : half.x(), half.y());
  btScalar& longer = alongX ? half[0] : half[2];
  const bool isLong = longer > 3 * wide;
  if (isLong) longer = 3 * wide;
  yaw = !isLong ? 35 : alongX ? 75 : 15;
  pitch = 27;
  const Axes a = axes();
  // The box fills at most 92 % of the picture's height. In a picture with the ratio 3 : 2, it also
  // fills at most 92 % of the width.
  const btScalar room = kHalfHeight * btScalar(0.92), narrowest = btScalar(1.5);
  distance = btScalar(0.5);
  for (int corner = 0; corner < 8; ++corner) {
    const btVector3 sign((corner & 1) != 0 ? 1 : -1, (corner & 2) != 0 ? 1 : -1,
                         (corner & 4) != 0 ? 1 : -1);
    const btVector3 away = half * sign;
    const btScalar up = std::abs(away.dot(a.up)), aside = std::abs(away.dot(a.right)) / narrowest;
    distance = std::max(distance, away.dot(a.back) + std::max(up, aside) / room);
  }
}

Matrix lightView(const btVector3& direction, const btVector3& centre, btScalar radius) {
  const btVector3 back = -direction.normalized();
  const btVector3 right = btVector3(0, 0, 1).cross(back).normalized();
  Matrix scale{};
  scale[0] = scale[5] = 1 / float(radius);
  scale[10] = -1 / float(radius);
  scale[15] = 1;
  return multiply(scale, viewFrom(centre, right, back.cross(right), back));
}

// SPDX-License-Identifier: Zlib
/// @file
/// Rays against boxes: the one slab test (Kay and Kajiya 1986), for rays of any precision, and the
/// rays of the batches. C++17.
#pragma once

#include <limits>

#include "types.h"

namespace lbvh {

/// How a ray runs along an axis.
enum class RayAxis : unsigned char {
  oblique,         ///< enters and leaves the slab at distances that can be computed
  nearlyParallel,  ///< likewise, but a slab that contains the origin does not bound it
  parallel,        ///< misses each slab that does not contain the origin
};

/// The part of a ray between 0 and `length`, cut by the slabs of a box axis by axis. Written so
/// that a NaN distance, a NaN or negative length, and an inverted slab are misses.
template <class Scalar>
class RayInterval {
 public:
  /// @param length in units of the ray's direction; may be infinite
  LBVH_HD explicit RayInterval(Scalar length) : leave_(length) {}

  /// Cuts with the slab between the distances `lo` and `hi` from the origin along one axis.
  /// @param inverse of the direction along the axis; not read where the ray is parallel
  /// @return false if the ray is known to miss
  LBVH_HD bool cut(Scalar lo, Scalar hi, Scalar inverse, RayAxis axis) {
    if (axis != RayAxis::oblique) {
      if (lo <= 0 && hi >= 0) return true;
      if (axis == RayAxis::parallel) return false;
    }
    const bool isForward = inverse > 0;
    const Scalar near = (isForward ? lo : hi) * inverse;
    const Scalar far = (isForward ? hi : lo) * inverse;
    if (!(near <= leave_ && far >= enter_)) return false;
    if (near > enter_) enter_ = near;
    if (far < leave_) leave_ = far;
    return true;
  }

  /// After all axes: whether something of the ray is left.
  LBVH_HD bool isHit() const { return enter_ <= leave_; }
  /// Where that begins.
  LBVH_HD Scalar enter() const { return enter_; }

 private:
  Scalar enter_ = 0, leave_;
};

/// The points origin + t * direction for 0 <= t <= length. The direction need not be of length 1.
/// A component that is 0, or so small that its reciprocal is infinite, counts as 0.
struct Ray {
  float origin[3];     ///< where it begins
  float direction[3];  ///< where it goes
  float length;        ///< in units of the direction; may be infinite
};

/// Whether a ray meets a closed box, touching included. A NaN anywhere, an infinite origin or
/// direction, a negative length, and an inverted box are misses.
class RayTest {
 public:
  /// @param ray copied, with the reciprocals of its direction
  LBVH_HD explicit RayTest(const Ray& ray) : length_(ray.length) {
    for (int axis = 0; axis < 3; ++axis) {
      origin_[axis] = ray.origin[axis];
      inverse_[axis] = 1 / ray.direction[axis];
      axes_[axis] = isFinite(inverse_[axis]) ? RayAxis::oblique : RayAxis::parallel;
      if (!isFinite(ray.origin[axis]) || !isFinite(ray.direction[axis])) length_ = -1;
    }
  }

  /// Whether the ray meets the box.
  /// @param box an Aabb or a Node
  template <class Box>
  LBVH_HD bool operator()(const Box& box) const {
    return distanceTo(box) >= 0;
  }

  /// Where the ray enters the box, in units of its direction: 0 if it begins inside, less than 0 if
  /// it misses.
  template <class Box>
  LBVH_HD float distanceTo(const Box& box) const {
    RayInterval<float> interval(length_);
    for (int axis = 0; axis < 3; ++axis)
      if (!interval.cut(box.min[axis] - origin_[axis], box.max[axis] - origin_[axis],
                        inverse_[axis], axes_[axis]))
        return -1;
    return interval.isHit() ? interval.enter() : -1;
  }

 private:
  static constexpr float kLargest = std::numeric_limits<float>::max();
  LBVH_HD static bool isFinite(float x) { return x >= -kLargest && x <= kLargest; }

  float origin_[3], inverse_[3], length_;
  RayAxis axes_[3];
};

}  // namespace lbvh

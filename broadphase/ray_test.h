// SPDX-License-Identifier: Zlib
/// @file
/// Tests rays of any precision against boxes. This is the only slab test of the project (Kay and
/// Kajiya 1986). Also defines Ray, the type of the rays in a batch. C++17.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "types.h"

namespace lbvh {

/// How the direction of a ray relates to an axis.
enum class RayAxis : unsigned char {
  oblique,         ///< enters and leaves the slab at distances that can be computed
  nearlyParallel,  ///< as oblique, but a slab that contains the origin does not limit the ray
  parallel,        ///< misses each slab that does not contain the origin
};

/// The part of a ray between distances 0 and `length` that is inside a box. It is found by clipping
/// the ray to a slab on each axis. A NaN distance, a NaN or negative length, and an inverted slab
/// count as misses.
template <class Scalar>
class RayInterval {
 public:
  /// @param length in units of the ray's direction; may be infinite
  GPULBVH_HD explicit RayInterval(Scalar length) : leave_(length) {}

  /// Clips the ray to the slab between the distances `lo` and `hi` from the origin along one axis.
  /// @param inverse reciprocal of the direction along the axis; not read if the ray is parallel
  /// @return false if the ray is known to miss
  GPULBVH_HD bool cut(Scalar lo, Scalar hi, Scalar inverse, RayAxis axis) {
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

  /// Whether a part of the ray is left. Valid only if every call of cut() has returned true.
  GPULBVH_HD bool isHit() const { return enter_ <= leave_; }
  /// The distance at which this part begins.
  GPULBVH_HD Scalar enter() const { return enter_; }

 private:
  Scalar enter_ = 0, leave_;
};

/// RayInterval for several boxes at once, with the same results. Except for nearly parallel axes,
/// its loops have no branches, so that compilers vectorise them.
template <class Scalar, std::size_t kCount>
class RayIntervals {
 public:
  /// @param length as in RayInterval
  explicit RayIntervals(Scalar length) {
    for (std::size_t i = 0; i < kCount; ++i) leave_[i] = length;
  }

  /// RayInterval::cut() for each box.
  void cut(const Scalar (&lo)[kCount], const Scalar (&hi)[kCount], Scalar inverse, RayAxis axis) {
    const Scalar* const first = inverse > 0 ? lo : hi;
    const Scalar* const second = inverse > 0 ? hi : lo;
    if (axis == RayAxis::parallel) {
      for (std::size_t i = 0; i < kCount; ++i)
        leave_[i] = ((lo[i] <= 0) & (hi[i] >= 0)) ? leave_[i] : kMiss;
    } else if (axis == RayAxis::nearlyParallel) {
      for (std::size_t i = 0; i < kCount; ++i)
        if (!((lo[i] <= 0) & (hi[i] >= 0))) cutOne(i, first[i] * inverse, second[i] * inverse);
    } else {
      for (std::size_t i = 0; i < kCount; ++i) cutOne(i, first[i] * inverse, second[i] * inverse);
    }
  }

  /// RayInterval::isHit() for each box, one bit per box.
  std::uint32_t hits() const {
    std::uint32_t bits[kCount], all = 0;
    for (std::size_t i = 0; i < kCount; ++i)
      bits[i] = enter_[i] <= leave_[i] ? std::uint32_t{1} << i : 0;
    for (std::size_t i = 0; i < kCount; ++i) all |= bits[i];
    return all;
  }

 private:
  static constexpr Scalar kMiss = -1;  ///< less than any `enter_`

  void cutOne(std::size_t i, Scalar near, Scalar far) {
    const Scalar end = far < leave_[i] ? far : leave_[i];
    const bool isHit = (near <= leave_[i]) & (far >= enter_[i]);
    enter_[i] = near > enter_[i] ? near : enter_[i];
    leave_[i] = isHit ? end : kMiss;
  }

  Scalar enter_[kCount] = {}, leave_[kCount];
};

/// The points origin + t * direction for 0 <= t <= length. The direction need not have length 1. A
/// component whose reciprocal is infinite is treated as 0.
struct Ray {
  float origin[3];     ///< start of the ray
  float direction[3];  ///< direction of the ray
  float length;        ///< in units of the direction; may be infinite
};

/// Whether a ray hits or touches a closed box. A NaN anywhere, an infinite origin or direction, a
/// negative length, and an inverted box count as misses.
class RayTest {
 public:
  /// @param ray is copied, with the reciprocals of its direction
  GPULBVH_HD explicit RayTest(const Ray& ray) : length_(ray.length) {
    for (int axis = 0; axis < 3; ++axis) {
      origin_[axis] = ray.origin[axis];
      inverse_[axis] = 1 / ray.direction[axis];
      axes_[axis] = isFinite(inverse_[axis]) ? RayAxis::oblique : RayAxis::parallel;
      if (!isFinite(ray.origin[axis]) || !isFinite(ray.direction[axis])) length_ = -1;
    }
  }

  /// Whether the ray hits the box.
  /// @param box an Aabb or a Node
  template <class Box>
  GPULBVH_HD bool operator()(const Box& box) const {
    return distanceTo(box) >= 0;
  }

  /// Which of several boxes the ray hits, one bit per box.
  /// @param corners minima of the boxes on each axis, then their maxima
  template <std::size_t kCount>
  std::uint32_t lanes(const float (&corners)[6][kCount]) const {
    RayIntervals<float, kCount> intervals(length_);
    for (int axis = 0; axis < 3; ++axis) {
      float lo[kCount], hi[kCount];
      for (std::size_t i = 0; i < kCount; ++i) {
        lo[i] = corners[axis][i] - origin_[axis];
        hi[i] = corners[3 + axis][i] - origin_[axis];
      }
      intervals.cut(lo, hi, inverse_[axis], axes_[axis]);
    }
    return intervals.hits();
  }

  /// The distance at which the ray enters the box, in units of the ray's direction: 0 if the ray
  /// begins inside, negative if it misses.
  template <class Box>
  GPULBVH_HD float distanceTo(const Box& box) const {
    RayInterval<float> interval(length_);
    for (int axis = 0; axis < 3; ++axis)
      if (!interval.cut(box.min[axis] - origin_[axis], box.max[axis] - origin_[axis],
                        inverse_[axis], axes_[axis]))
        return -1;
    return interval.isHit() ? interval.enter() : -1;
  }

 private:
  static constexpr float kLargest = std::numeric_limits<float>::max();
  GPULBVH_HD static bool isFinite(float x) { return x >= -kLargest && x <= kLargest; }

  float origin_[3], inverse_[3], length_;
  RayAxis axes_[3];
};

}  // namespace lbvh

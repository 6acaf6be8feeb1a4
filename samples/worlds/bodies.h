// SPDX-License-Identifier: Zlib
// The boxes of all worlds, and the work of a step for one box. The same code runs in a loop on
// the host and in a kernel on a GPU.
//
// The results on host and GPU are equal bit for bit for two reasons. CMake's options forbid fused
// multiply-adds. Only the call for box i writes data of box i, and this call adds the pushes in the
// order of the box's partners.
#pragma once

#include <cstdint>

#include "broadphase/device_scene.h"

namespace worlds {

struct Vector {
  float at[3];  // x, y (up), z
};

/// Each array has one element per box.
struct Bodies {
  Vector* position;             ///< m, position of the centre
  Vector* velocity;             ///< m/s
  const Vector* half;           ///< m, half the size of the box
  const std::uint8_t* movable;  ///< 0: nothing moves the box
  lbvh::Aabb* boxes;            ///< input of the last search
};

inline constexpr float kStep = 1.0f / 60;  // s
inline constexpr float kGravity = 9.81f;   // m/s^2
inline constexpr float kReach = 2.0f;  // m, distance from a world's middle to its invisible walls
inline constexpr float kHeld = 0.9f;   // fraction of velocity that a box in contact keeps per step
inline constexpr float kKick = 4.7f;   // 1/s; velocity gained per metre of push
inline constexpr float kGivesWay = 0.37f;  // ratio of push to overlap, for a movable box

/// Writes a body's box for the search.
struct WriteBox {
  Bodies bodies;

  GPULBVH_HD void operator()(std::uint32_t i) const {
    const Vector &centre = bodies.position[i], &half = bodies.half[i];
    lbvh::Aabb& box = bodies.boxes[i];
    for (int axis = 0; axis < 3; ++axis) {
      box.min[axis] = centre.at[axis] - half.at[axis];
      box.max[axis] = centre.at[axis] + half.at[axis];
    }
  }
};

/// Lets a body fall, and pushes it out of the partners that the search found.
struct MoveBody {
  Bodies bodies;
  lbvh::DeviceLists found;

  /// Moves nothing if the search reported an error, so that the step can be repeated.
  GPULBVH_HD void operator()(std::uint32_t i) const {
    if (found.report->errors != 0 || bodies.movable[i] == 0) return;
    Vector push{{0, 0, 0}};
    for (std::uint32_t k = found.offsets[i]; k < found.offsets[i + 1]; ++k)
      addPush(i, found.neighbours[k], push);
    const float held = found.offsets[i] < found.offsets[i + 1] ? kHeld : 1.0f;
    for (int axis = 0; axis < 3; ++axis) moveAlong(axis, i, push.at[axis], held);
  }

 private:
  /// Adds the shortest push out of `other`. If `other` is movable, its own call gives it the
  /// opposite push.
  GPULBVH_HD void addPush(std::uint32_t i, std::uint32_t other, Vector& push) const {
    const lbvh::Aabb &mine = bodies.boxes[i], &its = bodies.boxes[other];
    int least = 0;
    float way = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const float up = its.max[axis] - mine.min[axis];
      const float down = mine.max[axis] - its.min[axis];
      const bool goesUp = up != down ? up < down : other < i;
      const float depth = goesUp ? up : down;
      if (axis != 0 && depth >= (way < 0 ? -way : way)) continue;
      least = axis;
      way = goesUp ? depth : -depth;
    }
    push.at[least] += bodies.movable[other] != 0 ? kGivesWay * way : way;
  }

  GPULBVH_HD void moveAlong(int axis, std::uint32_t i, float push, float held) const {
    float& position = bodies.position[i].at[axis];
    float& velocity = bodies.velocity[i].at[axis];
    if (axis == 1) velocity -= kGravity * kStep;
    velocity = (push * velocity < 0 ? 0.0f : held * velocity) + kKick * push;
    position += velocity * kStep + push;
    const float most = kReach - bodies.half[i].at[axis];
    if (axis != 1 && position > most) position = most;
    if (axis != 1 && position < -most) position = -most;
  }
};

}  // namespace worlds

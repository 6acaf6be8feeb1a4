// SPDX-License-Identifier: Zlib
// The boxes of all worlds, and what a step does with one of them: the same code in a loop on the
// host and in a kernel on a GPU. Knows neither.
//
// Both compute the same bits: no multiplication is fused with an addition (CMake's options). Only
// box i writes what is of box i, and it adds up its pushes in the order of its partners.
#pragma once

#include <cstdint>

#include "broadphase/device_scene.h"

namespace worlds {

struct Vector {
  float at[3];  // x, y (up), z
};

/// Each array has an element a box.
struct Bodies {
  Vector* position;             ///< m, of the centre
  Vector* velocity;             ///< m/s
  const Vector* half;           ///< m, half its size
  const std::uint8_t* movable;  ///< 0: nothing moves it
  lbvh::Aabb* boxes;            ///< what the last search saw
};

inline constexpr float kStep = 1.0f / 60;  // s
inline constexpr float kGravity = 9.81f;   // m/s^2
inline constexpr float kReach = 2.0f;      // m; invisible walls stand so far from a world's middle
inline constexpr float kHeld = 0.9f;       // of the velocity of a box that touches another, a step
inline constexpr float kKick = 4.7f;       // 1/s; the velocity that a push leaves behind
inline constexpr float kGivesWay = 0.37f;  // of the overlap; two such boxes keep a quarter

/// Puts a box where its body is, for the search.
struct WriteBox {
  Bodies bodies;

  LBVH_HD void operator()(std::uint32_t i) const {
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

  /// If a list was cut nothing moves: then the step can be done again.
  LBVH_HD void operator()(std::uint32_t i) const {
    if (found.report->errors != 0 || bodies.movable[i] == 0) return;
    Vector push{{0, 0, 0}};
    for (std::uint32_t k = found.offsets[i]; k < found.offsets[i + 1]; ++k)
      addPush(i, found.neighbours[k], push);
    const float held = found.offsets[i] < found.offsets[i + 1] ? kHeld : 1.0f;
    for (int axis = 0; axis < 3; ++axis) moveAlong(axis, i, push.at[axis], held);
  }

 private:
  /// The shortest way out of `other`, which goes as far the other way if it is movable.
  LBVH_HD void addPush(std::uint32_t i, std::uint32_t other, Vector& push) const {
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

  LBVH_HD void moveAlong(int axis, std::uint32_t i, float push, float held) const {
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

// SPDX-License-Identifier: Zlib
// Uses a uniform grid instead of a tree ("Thinking Parallel, Part I"). Cells are larger than the
// largest box, and boxes are sorted by the cell of their centre. Each box is tested against the
// boxes in its own cell and in half of the 26 cells around it. Teaches that one large box makes all
// queries slow.
#pragma once

#include <algorithm>

#include "benchmarks/catalogue/variant.h"
#include "broadphase/core/morton.h"

namespace lbvh::variants {

/// The grid. It has at most 2^10 cells per axis, so that a cell's key is a 30-bit Morton code.
struct Cells {
  float lo[3] = {0, 0, 0};
  float perLength = 0;

  GPULBVH_HD std::uint32_t coordinate(float x, int axis) const {
    const float t = (x - lo[axis]) * perLength;
    return static_cast<std::uint32_t>(t > 0 ? (t < 1023 ? t : 1023) : 0);
  }
};

/// The longest edge of all ordinary boxes. If the centres of two boxes are farther apart than this
/// on an axis, the boxes do not overlap.
struct MeasureLongest {
  struct Longest {
    float length = 0;
    GPULBVH_HD Longest& operator+=(const Longest& other) {
      length = other.length > length ? other.length : length;
      return *this;
    }
  };

  View<const Aabb> boxes;

  GPULBVH_HD Longest operator()(std::uint32_t i) const {
    Longest longest;
    if (classify(boxes[i]) != BoxClass::ordinary) return longest;
    for (int axis = 0; axis < 3; ++axis) {
      const float length = boxes[i].max[axis] - boxes[i].min[axis];
      longest.length = length > longest.length ? length : longest.length;
    }
    return longest;
  }
};

/// Chooses the size of the cells. Must run for one element only. Cells are at least 1 % longer than
/// the sum of the longest edge and the rounding error of centres. So two boxes that touch are in
/// the same cell or in adjacent ones.
struct ChooseCells {
  const SceneBounds* scene;
  const MeasureLongest::Longest* longest;
  Cells* cells;

  GPULBVH_HD void operator()(std::uint32_t) const {
    float furthest = 0;
    for (int axis = 0; axis < 3; ++axis) {
      furthest = -scene->lo[axis] > furthest ? -scene->lo[axis] : furthest;
      furthest = scene->hi[axis] > furthest ? scene->hi[axis] : furthest;
    }
    float length = 1.01f * (longest->length + 4e-7f * furthest);
    for (int axis = 0; axis < 3; ++axis) {
      cells->lo[axis] = scene->lo[axis];
      const float needed = (scene->hi[axis] - scene->lo[axis]) / 1000;
      length = needed > length ? needed : length;
    }
    cells->perLength = length > 0 ? 1 / length : 0;
  }
};

struct AssignCells {
  View<const Aabb> boxes;
  const Cells* cells;
  std::uint32_t* keys;
  std::uint32_t* ids;

  GPULBVH_HD void operator()(std::uint32_t i) const {
    ids[i] = i;
    const Aabb& box = boxes[i];
    keys[i] = classify(box) != BoxClass::ordinary ? ~0u
                                                  : morton30(cells->coordinate(centre(box, 0), 0),
                                                             cells->coordinate(centre(box, 1), 1),
                                                             cells->coordinate(centre(box, 2), 2));
  }
};

/// Thread k tests the k-th box in the order of the cells. It tests this box against later boxes of
/// the same cell, and against all boxes of the 13 neighbouring cells that precede this cell in the
/// order (z, y, x).
template <class Counter>
struct FindInCells {
  View<const Aabb> boxes;
  const Cells* cells;
  const std::uint32_t* keys;
  const std::uint32_t* ids;
  std::uint32_t n;
  Counter counter;

  template <class Sink>
  GPULBVH_HD void operator()(std::uint32_t k, Sink& sink) const {
    const std::uint32_t id = ids[k];
    const Aabb box = boxes[id];
    meet(box, id, k + 1, keys[k], sink);
    std::int32_t cell[3];
    for (int axis = 0; axis < 3; ++axis)
      cell[axis] = static_cast<std::int32_t>(cells->coordinate(centre(box, axis), axis));
    for (int neighbour = 0; neighbour < 13; ++neighbour) {
      const std::int32_t x = cell[0] + neighbour % 3 - 1, y = cell[1] + neighbour / 3 % 3 - 1,
                         z = cell[2] + neighbour / 9 - 1;
      if (x < 0 || y < 0 || z < 0 || x > 1023 || y > 1023) continue;
      const std::uint32_t key =
          morton30(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                   static_cast<std::uint32_t>(z));
      meet(box, id, firstOf(key), key, sink);
    }
  }

  template <class Sink>
  GPULBVH_HD void meet(const Aabb& box, std::uint32_t id, std::uint32_t from, std::uint32_t key,
                       Sink& sink) const {
    counter.node();
    for (std::uint32_t k = from; k < n && keys[k] == key; ++k) {
      counter.test();
      if (overlap(box, boxes[ids[k]])) sink.push(makePair(id, ids[k]));
    }
  }

  GPULBVH_HD std::uint32_t firstOf(std::uint32_t key) const {
    std::uint32_t begin = 0, size = n;
    while (size > 0) {
      const std::uint32_t half = size / 2;
      const bool before = keys[begin + half] < key;
      begin = before ? begin + half + 1 : begin;
      size = before ? size - half - 1 : half;
    }
    return begin;
  }
};

/// Sorts the boxes into cells, which replaces the building of a tree. Then finds the pairs.
template <class Space, class Counter>
void appendInCells(const FindProblem<Space>& problem, Counter counter) {
  struct Head {
    MeasureLongest::Longest longest;
    Cells cells;
  };
  Space& space = problem.space;
  const std::size_t all = problem.boxes.size();
  auto& scratch = problem.memory.scratch;
  scratch.reset(scratchBytes<Head>(1) + 4 * scratchBytes<std::uint32_t>(all));
  Head* h = scratch.template lend<Head>("head", 1).data();
  const auto keys = scratch.template lend<std::uint32_t>("keys", all);
  const auto ids = scratch.template lend<std::uint32_t>("ids", all);
  const auto spareKeys = scratch.template lend<std::uint32_t>("spare keys", all);
  const auto spareIds = scratch.template lend<std::uint32_t>("spare ids", all);
  space.reduce(all, MeasureLongest{problem.boxes}, &h->longest);
  space.forEach(1, ChooseCells{problem.scene, &h->longest, &h->cells});
  space.forEach(all, AssignCells{problem.boxes, &h->cells, keys.data(), ids.data()});
  space.sortByKey(keys, ids, spareKeys, spareIds, 0, 32);
  space.append(
      problem.n,
      FindInCells<Counter>{problem.boxes, &h->cells, keys.data(), ids.data(), problem.n, counter},
      problem.out);
}

}  // namespace lbvh::variants

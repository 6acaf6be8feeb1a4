// SPDX-License-Identifier: Zlib
// Builds top-down, one level at a time (Garanzha, Pantaleoni, McAllister 2011; "Thinking Parallel,
// Part III"). One thread per node splits the node's range, and appends the children to the next
// level with an atomic counter. Teaches two disadvantages: the upper levels have few threads, and
// the host waits for the size of each level.
#pragma once

#include "benchmarks/catalogue/bounds_by_flags.h"
#include "broadphase/core/atomics.h"

namespace lbvh::variants {

/// An entry of the list of tasks: a node that must be made, its range of leaves and its rope.
struct Task {
  std::uint32_t node, first, last, rope;
};

struct SplitLevel {
  static constexpr std::size_t kGrain = 64;

  View<const Aabb> boxes;
  const std::uint32_t* ids;
  CommonPrefix prefix;
  Task* tasks;
  std::uint32_t begin;     ///< index of the first task of this level
  std::uint32_t* counter;  ///< the size of the list of tasks
  std::uint32_t* parents;
  Node* nodes;

  GPULBVH_HD void operator()(std::uint32_t i) const {
    const Task task = tasks[begin + i];
    if (task.first == task.last) {
      nodes[task.node] = leafOver(boxes, ids[task.first], task.rope);
      return;
    }
    const Numbering tree{prefix.n};
    const std::uint32_t split = findSplit(prefix, {task.first, task.last});
    const std::uint32_t left = tree.leftChild(task.first, split);
    const std::uint32_t right = tree.rightChild(split, task.last);
    nodes[task.node].left = left;
    nodes[task.node].rope = task.rope;
    parents[left] = parents[right] = task.node;
    const std::uint32_t at = fetchAdd(counter, 2u);
    tasks[at] = {left, task.first, split, right};
    tasks[at + 1] = {right, split + 1, task.last, task.rope};
  }
};

/// Writes the root as the first task. Must run for one element only.
struct BeginLevels {
  std::uint32_t n;
  Task* tasks;
  std::uint32_t* counter;
  std::uint32_t* parents;
  GPULBVH_HD void operator()(std::uint32_t) const {
    tasks[0] = {0, 0, n - 1, kNullIndex};
    *counter = 1;
    parents[0] = kNullIndex;
  }
};

/// Copies a word to memory that the host can read. Must run for one element only.
struct Answer {
  const std::uint32_t* from;
  std::uint32_t* to;
  GPULBVH_HD void operator()(std::uint32_t) const { *to = *from; }
};

template <class Space>
void buildLevelByLevel(BuildProblem<Space>& problem) {
  const auto n = problem.n;
  if (n == 0) return;
  Space& space = problem.space;
  const std::size_t all = 2 * problem.n;
  auto& scratch = problem.memory.scratch;
  scratch.reset(2 * scratchBytes<std::uint32_t>(all) + scratchBytes<Task>(all) +
                scratchBytes<std::uint32_t>(1));
  std::uint32_t* parents = scratch.template lend<std::uint32_t>("parents", all).data();
  std::uint32_t* flags = scratch.template lend<std::uint32_t>("flags", all).data();
  Task* tasks = scratch.template lend<Task>("tasks", all).data();
  std::uint32_t* counter = scratch.template lend<std::uint32_t>("counter", 1).data();
  std::uint32_t* answer = problem.memory.answer.ensure(1).data();
  space.forEach(all, Fill{flags, kNullIndex});
  space.forEach(1, BeginLevels{n, tasks, counter, parents});
  for (std::uint32_t begin = 0, end = 1; begin < end;) {
    space.forEach(end - begin,
                  SplitLevel{problem.boxes, problem.ids, CommonPrefix{problem.codes, n}, tasks,
                             begin, counter, parents, problem.nodes});
    space.forEach(1, Answer{counter, answer});
    space.wait();
    begin = end;
    end = *answer;
  }
  space.forEach(problem.n, BoundsByFlags{parents, flags, problem.nodes, n});
}

}  // namespace lbvh::variants

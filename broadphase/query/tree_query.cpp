// SPDX-License-Identifier: Zlib
#include "broadphase/query/tree_query.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "broadphase/exec/host/tasks.h"

namespace lbvh {

std::vector<Node> nodesAtLevel(const Tree& tree, int level) {
  std::vector<Node> cut, next;
  if (!tree.nodes.empty()) cut.push_back(tree.nodes[0]);
  for (bool hasInner = true; level > 0 && hasInner; --level) {
    hasInner = false;
    next.clear();
    for (const Node& node : cut) {
      if (node.isLeaf()) {
        next.push_back(node);
        continue;
      }
      const Node& left = tree.nodes[node.left];
      next.push_back(left);
      next.push_back(tree.nodes[left.rope]);  // THE INDEX RULE
      hasInner = true;
    }
    cut.swap(next);
  }
  return cut;
}

RayTest::RayTest(const Ray& ray) : length_(ray.length) {
  for (int axis = 0; axis < 3; ++axis) {
    origin_[axis] = ray.origin[axis];
    inverse_[axis] = 1 / ray.direction[axis];
    axes_[axis] = std::isinf(inverse_[axis]) ? RayAxis::parallel : RayAxis::oblique;
  }
}

namespace {

/// Enough work to be worth a task of its own.
constexpr std::size_t kQueriesAPart = 64;
/// Queries differ in cost, which more parts than threads even out.
constexpr std::size_t kPartsAThread = 8;

/// What one task found, in the order of its queries.
using Found = std::vector<std::uint32_t>;

/// Appends the hits of one query, sorted.
template <class Hits>
std::size_t append(Found& found, const Tree& tree, View<const Aabb> boxes, const Hits& hits) {
  const std::size_t before = found.size();
  queryTree(tree, boxes, hits, [&](std::uint32_t box) { found.push_back(box); });
  std::sort(found.begin() + static_cast<std::ptrdiff_t>(before), found.end());
  return found.size() - before;
}

/// hitsOf(i) is the predicate of query i. Each part of the queries gathers its own hits. Their
/// places in the result are known when all hits have been counted.
template <class HitsOf>
void runBatch(const Tree& tree, View<const Aabb> boxes, std::size_t queries, const HitsOf& hitsOf,
              BatchHits& result, int threads) {
  if (threads < 0) throw std::invalid_argument("threads must not be negative");
  HostTasks tasks(threads == 0 ? HostTasks::machineThreads() : threads);
  const std::size_t parts = std::clamp<std::size_t>(
      queries / kQueriesAPart, 1, kPartsAThread * static_cast<std::size_t>(tasks.threads()));
  std::vector<Found> found(parts);
  result.offsets.assign(queries + 1, 0);
  tasks.forParts(queries, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
    for (std::size_t query = begin; query < end; ++query)
      result.offsets[query + 1] = append(found[part], tree, boxes, hitsOf(query));
  });
  for (std::size_t query = 0; query < queries; ++query)
    result.offsets[query + 1] += result.offsets[query];
  result.boxes.resize(result.offsets[queries]);
  tasks.forParts(queries, parts, [&](std::size_t part, std::size_t begin, std::size_t) {
    std::copy(found[part].begin(), found[part].end(),
              result.boxes.begin() + static_cast<std::ptrdiff_t>(result.offsets[begin]));
  });
}

}  // namespace

void aabbTestBatch(const Tree& tree, View<const Aabb> boxes, View<const Aabb> queries,
                   BatchHits& hits, int threads) {
  const auto hitsOf = [&](std::size_t query) {
    return [&box = queries[query]](const auto& bounds) { return overlap(box, bounds); };
  };
  runBatch(tree, boxes, queries.size, hitsOf, hits, threads);
}

void rayTestBatch(const Tree& tree, View<const Aabb> boxes, View<const Ray> rays, BatchHits& hits,
                  int threads) {
  const auto hitsOf = [&](std::size_t ray) { return RayTest(rays[ray]); };
  runBatch(tree, boxes, rays.size, hitsOf, hits, threads);
}

}  // namespace lbvh

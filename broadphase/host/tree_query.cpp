// SPDX-License-Identifier: Zlib
#include "broadphase/tree_query.h"

#include <stdexcept>

#include "broadphase/host/batch_parts.h"

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

namespace {

/// hitsOf(i) is the predicate of query i.
template <class HitsOf>
void runBatch(const Tree& tree, View<const Aabb> boxes, std::size_t queries, const HitsOf& hitsOf,
              BatchHits& result, int threads) {
  if (threads < 0) throw std::invalid_argument("threads must not be negative");
  HostTasks tasks(threads == 0 ? HostTasks::machineThreads() : threads);
  result.offsets.assign(queries + 1, 0);
  const auto visitHits = [&](std::size_t query, const auto& visit) {
    queryTree(tree, boxes, hitsOf(query), visit);
  };
  BatchParts parts(tasks, queries, visitHits, result.offsets.data() + 1);
  for (std::size_t query = 0; query < queries; ++query)
    result.offsets[query + 1] += result.offsets[query];
  result.boxes.resize(result.offsets[queries]);
  parts.write(result.offsets.data(), result.boxes.data(), result.boxes.size());
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

// SPDX-License-Identifier: Zlib
#include "broadphase/tree_query.h"

#include <stdexcept>
#include <string>

#include "broadphase/core/compiler.h"
#include "broadphase/core/limits.h"
#include "broadphase/host/batch_parts.h"
#include "broadphase/host/block_query.h"
#include "broadphase/host/blocks.h"
#include "broadphase/host/box_order.h"

namespace lbvh {
namespace {

int threadsFor(int requested) {
  if (requested < 0)
    throw std::invalid_argument("threads is " + std::to_string(requested) +
                                ", but must be 0 or more");
  return HostTasks::threadsFor(requested);
}

/// @param visitHits visitHits(i, visit) calls visit(box index) for each box that query i hits
template <class VisitHits>
void runBatch(HostTasks& tasks, std::size_t queries, const VisitHits& visitHits,
              BatchHits& result) {
  result.offsets.assign(queries + 1, 0);
  BatchParts parts(tasks, queries, visitHits, result.offsets.data() + 1);
  for (std::size_t query = 0; query < queries; ++query)
    result.offsets[query + 1] += result.offsets[query];
  result.boxes.resize(result.offsets[queries]);
  parts.write(result.offsets.data(), result.boxes.data(), result.boxes.size());
}

auto overlapWith(const Aabb& box) {
  return [&box](const auto& bounds) { return overlap(box, bounds); };
}

}  // namespace

struct GPULBVH_HIDDEN BoxTree::Impl {
  explicit Impl(int threads)
      : space(threads), order(space, simdKernels()), blocks(space.tasks(), simdKernels()) {
    space.setTimesStages(false);
  }

  void build(View<const Aabb> boxes) {
    // One block needs no order.
    constexpr std::size_t kMaxUnordered = kLanes;
    StepStats stats;  // not reported
    scratch.reset(BoxOrder::scratchBytesFor(boxes.size()));
    std::uint32_t* const sorted = ids.ensure(boxes.size()).data();
    order.find(boxes, {}, kMaxUnordered, header, sorted, scratch, stats);
    const std::size_t ranks = boxes.size() - header.scene.nan;
    blocks.pack(boxes, {}, {sorted, boxes.size()}, ranks, header.grid.bits == 0);
    packed = &blocks.packed();
  }

  template <class HitsOf>
  void test(std::size_t queries, const HitsOf& hitsOf, BatchHits& hits) {
    const auto visitHits = [&](std::size_t query, const auto& visit) {
      if (packed != nullptr) queryExactly(*packed, hitsOf(query), visit);
    };
    runBatch(space.tasks(), queries, visitHits, hits);
  }

  HostSpace space;
  BoxOrder order;
  BlockBuilder blocks;
  StepHeader header;
  HostBuffer<std::uint32_t> ids;
  BoxOrder::Scratch scratch;
  const PackedBoxes* packed = nullptr;  ///< null: there is no tree
};

BoxTree::BoxTree(int threads) : impl_(std::make_unique<Impl>(threadsFor(threads))) {}
BoxTree::~BoxTree() = default;
BoxTree::BoxTree(BoxTree&&) noexcept = default;
BoxTree& BoxTree::operator=(BoxTree&&) noexcept = default;

void BoxTree::build(View<const Aabb> boxes) {
  impl_->packed = nullptr;
  requireFitting(boxes, {});
  impl_->build(boxes);
}

void BoxTree::aabbTest(View<const Aabb> queries, BatchHits& hits) {
  impl_->test(
      queries.size(), [&](std::size_t query) { return overlapWith(queries[query]); }, hits);
}

void BoxTree::rayTest(View<const Ray> rays, BatchHits& hits) {
  impl_->test(
      rays.size(), [&](std::size_t ray) { return RayTest(rays[ray]); }, hits);
}

std::size_t BoxTree::memoryBytes() const {
  const Impl& impl = *impl_;
  return impl.order.memoryBytes() + impl.blocks.memoryBytes() + impl.ids.bytes() +
         impl.scratch.bytes();
}

const PackedBoxes* BoxTree::packed() const { return impl_->packed; }

// Deprecated functions of version 0.2.

GPULBVH_BEGIN_OLD_NAMES

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

void aabbTestBatch(const Tree& tree, View<const Aabb> boxes, View<const Aabb> queries,
                   BatchHits& hits, int threads) {
  HostTasks tasks(threadsFor(threads));
  const auto visitHits = [&](std::size_t query, const auto& visit) {
    queryTree(tree, boxes, overlapWith(queries[query]), visit);
  };
  runBatch(tasks, queries.size(), visitHits, hits);
}

void rayTestBatch(const Tree& tree, View<const Aabb> boxes, View<const Ray> rays, BatchHits& hits,
                  int threads) {
  HostTasks tasks(threadsFor(threads));
  const auto visitHits = [&](std::size_t ray, const auto& visit) {
    queryTree(tree, boxes, RayTest(rays[ray]), visit);
  };
  runBatch(tasks, rays.size(), visitHits, hits);
}

GPULBVH_END_OLD_NAMES

}  // namespace lbvh

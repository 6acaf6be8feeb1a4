// SPDX-License-Identifier: Zlib
#include "overlays.h"

#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>

#include <algorithm>
#include <iterator>

#include "cached_pairs.h"
#include "world_box.h"

namespace {

btVector3 vectorOf(const float (&v)[3]) { return {v[0], v[1], v[2]}; }

/// Leaves out infinite boxes, which the overlay `oversized` shows.
void drawBoxes(World& world, Drawing& drawing) {
  for (const lbvh::Aabb& box : world.boxes()) {
    const WorldBox drawn{vectorOf(box.min), vectorOf(box.max)};
    if (drawn.isFinite()) addBox(drawing.lines, drawn.low, drawn.high, colours::box);
  }
}

void drawPair(World& world, const btCollisionObject& a, const btCollisionObject& b, Colour colour,
              std::vector<Line>& lines) {
  const auto [from, to] = endsOf(world, a, b);
  addLine(lines, from, to, colour);
}

void drawPairs(World& world, Drawing& drawing) {
  const btBroadphasePairArray& pairs = cachedPairs(world);
  // Draws touching pairs last, so that they are visible.
  for (const bool touching : {false, true}) {
    for (int i = 0; i < pairs.size(); ++i) {
      if ((contactsOf(pairs[i]) != 0) != touching) continue;
      drawPair(world, objectOf(*pairs[i].m_pProxy0), objectOf(*pairs[i].m_pProxy1),
               touching ? colours::touchingPair : colours::nearPair, drawing.linesBetween);
    }
  }
}

void drawChanges(const PairChanges& changes, Drawing& drawing) {
  for (const Flash& flash : changes.flashes()) {
    const Colour colour = flash.isAdded ? colours::addedPair : colours::removedPair;
    const float left = 1 - float(flash.age) / float(PairChanges::kLifetime);
    addLine(drawing.linesBetween, flash.from, flash.to, colour.faded(left * left));
  }
}

/// Lists the nodes of Bullet's own tree at a level, and the leaves above that level.
void listDbvt(const btDbvtNode* node, int level, std::vector<const btDbvtNode*>& nodes) {
  if (node == nullptr) return;
  if (level == 0 || node->isleaf()) {
    nodes.push_back(node);
  } else {
    listDbvt(node->childs[0], level - 1, nodes);
    listDbvt(node->childs[1], level - 1, nodes);
  }
}

/// Lists the nodes of the wide hierarchy at a level, and the leaves above that level. `block`
/// itself has level 0.
void listWide(const lbvh::BlockTree& tree, std::uint32_t block, int level,
              std::vector<TreeNode>& nodes) {
  const lbvh::BoxBlock& parent = tree.blocks[block];
  const bool isLeaf = block < tree.leafBlocks;
  for (std::uint32_t lane = 0; lane < lbvh::kLanes; ++lane) {
    if (parent.child[lane] == lbvh::kNullIndex) continue;
    if (level <= 1 || isLeaf)
      nodes.push_back({parent.box(lane), isLeaf});
    else
      listWide(tree, parent.child[lane], level - 1, nodes);
  }
}

/// The nodes at a level, and the leaves above that level.
std::vector<TreeNode> nodesAt(const lbvh::BlockTree& tree, int level) {
  std::vector<TreeNode> nodes;
  if (tree.boxes == 0) return nodes;
  listWide(tree, tree.root, level, nodes);
  if (level > 0) return nodes;
  lbvh::Aabb root = nodes[0].bounds;
  for (const TreeNode& node : nodes)
    for (int axis = 0; axis < 3; ++axis) {
      root.min[axis] = std::min(root.min[axis], node.bounds.min[axis]);
      root.max[axis] = std::max(root.max[axis], node.bounds.max[axis]);
    }
  return {{root, false}};
}

std::vector<TreeNode> nodesAt(const lbvh::Tree& tree, int level) {
  std::vector<TreeNode> nodes;
  GPULBVH_BEGIN_OLD_NAMES
  for (const lbvh::Node& node : lbvh::nodesAtLevel(tree, level))
    nodes.push_back(
        {{{node.min[0], node.min[1], node.min[2]}, {node.max[0], node.max[1], node.max[2]}},
         node.isLeaf()});
  GPULBVH_END_OLD_NAMES
  return nodes;
}

/// Draws the part of a giant box that is near the scene.
void drawOversizedBox(const lbvh::Aabb& box, Drawing& drawing) {
  const btVector3 reach = (drawing.high - drawing.low) * btScalar(0.6) + btVector3(2, 2, 2);
  const btVector3 middle = (drawing.high + drawing.low) / 2;
  btVector3 low = vectorOf(box.min), high = vectorOf(box.max);
  low.setMax(middle - reach);
  high.setMin(middle + reach);
  if (low.x() <= high.x() && low.y() <= high.y() && low.z() <= high.z())
    addBox(drawing.linesOnTop, low, high, colours::oversizedBox);
}

}  // namespace

const std::vector<OverlayRow>& overlayRows() {
  static const std::vector<OverlayRow> rows = {
      {"boxes", "boxes of all objects", &OverlaySwitches::boxes},
      {"tree", "tree nodes at a level", &OverlaySwitches::tree},
      {"pairs", "overlapping pairs", &OverlaySwitches::pairs},
      {"changes", "pairs added and removed", &OverlaySwitches::changes},
      {"oversized", "boxes tested one by one", &OverlaySwitches::oversized},
  };
  return rows;
}

std::vector<TreeNode> Overlays::buildTree(const std::vector<lbvh::Aabb>& boxes,
                                          lbvh::Hierarchy hierarchy, int level) {
  const lbvh::View<const lbvh::Aabb> all{boxes.data(), boxes.size()};
  const auto keep = [this](lbvh::View<const std::uint32_t> oversized) {
    oversized_.assign(oversized.begin(), oversized.end());
  };
  if (hierarchy == lbvh::Hierarchy::binary) {
    binary_.build(all);
    keep(binary_.nodes().oversizedBoxes);
    return nodesAt(binary_.nodes(), level);
  }
  wide_.build(all);
  const lbvh::PackedBoxes& packed = *packedOf(wide_);
  keep(packed.oversized);
  return nodesAt(packed.tree, level);
}

void Overlays::drawTree(Session& session, const OverlaySwitches& switches, Drawing& drawing) {
  World& world = session.world();
  std::size_t drawn = 0;
  const auto draw = [&](const btVector3& low, const btVector3& high, bool isLeaf) {
    const Colour colour = colours::treeNodes[drawn++ % std::size(colours::treeNodes)];
    addBox(drawing.lines, low, high, isLeaf ? colour.faded(0.3f) : colour);
  };
  const auto* dbvt = dynamic_cast<btDbvtBroadphase*>(&world.broadphase());
  if (switches.tree && dbvt != nullptr) {
    std::vector<const btDbvtNode*> nodes;
    for (const btDbvt& set : dbvt->m_sets) listDbvt(set.m_root, switches.treeLevel, nodes);
    for (const btDbvtNode* node : nodes)
      draw(node->volume.Mins(), node->volume.Maxs(), node->isleaf());
  }
  const std::vector<lbvh::Aabb> boxes = world.boxes();
  const std::vector<TreeNode> nodes =
      buildTree(boxes, session.options().finder.hierarchy, switches.treeLevel);
  if (switches.tree && dbvt == nullptr)
    for (const TreeNode& node : nodes)
      draw(vectorOf(node.bounds.min), vectorOf(node.bounds.max), node.isLeaf);
  if (switches.oversized)
    for (const std::uint32_t box : oversized_) drawOversizedBox(boxes[box], drawing);
}

void Overlays::draw(Session& session, const OverlaySwitches& switches,
                    const btCollisionObject* picked, const std::vector<Partner>& partners,
                    Drawing& drawing) {
  World& world = session.world();
  if (switches.boxes) drawBoxes(world, drawing);
  if (switches.tree || switches.oversized) drawTree(session, switches, drawing);
  if (switches.pairs) drawPairs(world, drawing);
  if (switches.changes) drawChanges(session.changes(), drawing);
  if (picked == nullptr) return;
  for (const Partner& partner : partners)
    drawPair(world, *picked, *partner.object,
             partner.contacts != 0 ? colours::touchingPair : colours::nearPair, drawing.linesOnTop);
  const WorldBox box = boxOf(world, *picked);
  addBox(drawing.linesOnTop, box.low, box.high, colours::picked);
}

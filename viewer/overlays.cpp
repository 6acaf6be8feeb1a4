// SPDX-License-Identifier: Zlib
#include "overlays.h"

#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>

#include <iterator>

#include "broadphase/tree_query.h"
#include "cached_pairs.h"
#include "world_box.h"

namespace {

btVector3 vectorOf(const float (&v)[3]) { return {v[0], v[1], v[2]}; }

/// Without endless boxes, which the overlay `oversized` shows.
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
  // Touching pairs last, so that they are seen.
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

/// Bullet's own tree: the nodes at a depth and the leaves above it.
void listDbvt(const btDbvtNode* node, int level, std::vector<const btDbvtNode*>& nodes) {
  if (node == nullptr) return;
  if (level == 0 || node->isleaf()) {
    nodes.push_back(node);
  } else {
    listDbvt(node->childs[0], level - 1, nodes);
    listDbvt(node->childs[1], level - 1, nodes);
  }
}

/// A giant box, cut to what is near the scene.
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

lbvh::Options Overlays::hostOnly() {
  lbvh::Options options;
  options.backend = lbvh::Backend::host;
  options.threads = 1;
  return options;
}

void Overlays::drawTree(World& world, const OverlaySwitches& switches, Drawing& drawing) {
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
  finder_.buildTree({boxes.data(), boxes.size()});
  const lbvh::Tree tree = finder_.tree();
  oversizedBoxes_ = tree.oversizedBoxes.size;
  if (switches.tree && dbvt == nullptr)
    for (const lbvh::Node& node : lbvh::nodesAtLevel(tree, switches.treeLevel))
      draw(vectorOf(node.min), vectorOf(node.max), node.isLeaf());
  if (switches.oversized)
    for (const std::uint32_t box : tree.oversizedBoxes) drawOversizedBox(boxes[box], drawing);
}

void Overlays::draw(Session& session, const OverlaySwitches& switches,
                    const btCollisionObject* picked, const std::vector<Partner>& partners,
                    Drawing& drawing) {
  World& world = session.world();
  if (switches.boxes) drawBoxes(world, drawing);
  if (switches.tree || switches.oversized) drawTree(world, switches, drawing);
  if (switches.pairs) drawPairs(world, drawing);
  if (switches.changes) drawChanges(session.changes(), drawing);
  if (picked == nullptr) return;
  for (const Partner& partner : partners)
    drawPair(world, *picked, *partner.object,
             partner.contacts != 0 ? colours::touchingPair : colours::nearPair, drawing.linesOnTop);
  const WorldBox box = boxOf(world, *picked);
  addBox(drawing.linesOnTop, box.low, box.high, colours::picked);
}

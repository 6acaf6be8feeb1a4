// SPDX-License-Identifier: Zlib
// Draws lines over a scene to show what the broad phase does. Each kind of line can be switched on
// and off. Does not draw solids (scene_drawing.h).
#pragma once

#include <string>
#include <vector>

#include "broadphase/host/old_tree.h"
#include "broadphase/options.h"
#include "broadphase/tree_query.h"
#include "drawing.h"
#include "picking.h"
#include "session.h"

/// Which overlays are on.
struct OverlaySwitches {
  bool boxes = false;      ///< the broad phase's boxes of all objects
  bool tree = false;       ///< nodes at `treeLevel` of the hierarchy, or of dbvt's tree
  bool pairs = false;      ///< lines between the centres of overlapping objects
  bool changes = false;    ///< recently added and removed pairs, fading
  bool oversized = false;  ///< boxes outside the hierarchy, which are tested one by one
  int treeLevel = 2;
};
inline constexpr int kMaxTreeLevel = 20;

/// A switch, its name on the command line, and its text in the legend.
struct OverlayRow {
  const char* name;
  const char* legend;
  bool OverlaySwitches::*isOn;
};
const std::vector<OverlayRow>& overlayRows();

/// A node of a hierarchy; a leaf is the box of an object.
struct TreeNode {
  lbvh::Aabb bounds;
  bool isLeaf;
};

class Overlays {
 public:
  /// Adds the lines of all overlays that are on, and the lines of the picked object, if there is
  /// one.
  void draw(Session& session, const OverlaySwitches& switches, const btCollisionObject* picked,
            const std::vector<Partner>& partners, Drawing& drawing);

  /// The number of oversized boxes. Up to date while the overlay `tree` or `oversized` is on.
  std::size_t oversizedBoxes() const { return oversized_.size(); }

 private:
  /// Builds the hierarchy that a step on the host uses with the option `hierarchy`.
  /// @return the hierarchy's nodes at a level, and the leaves above that level
  std::vector<TreeNode> buildTree(const std::vector<lbvh::Aabb>& boxes, lbvh::Hierarchy hierarchy,
                                  int level);
  /// Draws nodes of the tree and oversized boxes.
  void drawTree(Session& session, const OverlaySwitches& switches, Drawing& drawing);

  lbvh::OldTree binary_{1};
  lbvh::BoxTree wide_{1};
  std::vector<std::uint32_t> oversized_;  ///< boxes that are not in the hierarchy
};

// SPDX-License-Identifier: Zlib
// What is drawn over a scene to show what the broad phase does, as lines. Each can be switched.
// Does not draw solids (scene_drawing.h), does not step.
#pragma once

#include <string>
#include <vector>

#include "drawing.h"
#include "picking.h"
#include "session.h"

/// Which overlays are on.
struct OverlaySwitches {
  bool boxes = false;      ///< of all objects, as the broad phase has them
  bool tree = false;       ///< the nodes of the LBVH at `treeLevel`; dbvt: of Bullet's tree
  bool pairs = false;      ///< from centre to centre
  bool changes = false;    ///< pairs that came and went, fading
  bool oversized = false;  ///< boxes kept out of the tree, tested one by one
  int treeLevel = 6;
};
inline constexpr int kMaxTreeLevel = 20;

/// One switch, its name on the command line, and its line in the legend.
struct OverlayRow {
  const char* name;
  const char* legend;
  bool OverlaySwitches::*isOn;
};
const std::vector<OverlayRow>& overlayRows();

class Overlays {
 public:
  /// Adds the lines of all overlays that are on, and of the picked object, if there is one.
  void draw(Session& session, const OverlaySwitches& switches, const btCollisionObject* picked,
            const std::vector<Partner>& partners, Drawing& drawing);

  /// How many boxes the tree keeps aside; known while an overlay of the tree is on.
  std::size_t oversizedBoxes() const { return oversizedBoxes_; }

 private:
  /// And the boxes beside it.
  void drawTree(World& world, const OverlaySwitches& switches, Drawing& drawing);
  static lbvh::Options hostOnly();

  lbvh::PairFinder finder_{hostOnly()};  ///< only for its tree
  std::size_t oversizedBoxes_ = 0;
};

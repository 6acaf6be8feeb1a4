// SPDX-License-Identifier: Zlib
// Queries of the boxes of many worlds, as a search left them. Host only.
#pragma once

#include <cstdint>

#include "broadphase/device_scene.h"
#include "broadphase/host/block_query.h"
#include "broadphase/host/world_blocks.h"

namespace lbvh {

/// Whether a query may name this world.
inline bool isWorld(const WorldBlocks& worlds, std::uint32_t world) {
  return world < worlds.worldCount() || world == kAllWorlds;
}

/// Calls visit(box index) for each box for which hits(Aabb) is true: of this world and those in all
/// worlds; with kAllWorlds of all. The order is unspecified. `hits` must be true for bounds that
/// contain a box it is true for, and is last called for the box that is visited.
template <class Hits, class Visit>
void queryWorlds(const WorldBlocks& worlds, std::uint32_t world, const Hits& hits,
                 const Visit& visit) {
  const auto query = [&](const World* one) {
    if (one == nullptr) return;
    if (one->packed.tree.boxes > 0 && hits(one->bounds)) queryBlocks(one->packed.tree, hits, visit);
    for (const std::uint32_t box : one->packed.oversized)
      if (hits(one->packed.boxes[box])) visit(box);
  };
  if (!isWorld(worlds, world)) return;
  if (world == kAllWorlds) {
    for (const World& one : worlds.worlds()) query(&one);
  } else {
    query(worlds.find(world));
    query(worlds.find(worlds.worldCount()));
  }
}

}  // namespace lbvh

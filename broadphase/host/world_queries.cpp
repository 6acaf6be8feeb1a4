// SPDX-License-Identifier: Zlib
#include "broadphase/host/world_queries.h"

#include <algorithm>

#include "broadphase/host/batch_parts.h"
#include "broadphase/host/block_query.h"
#include "broadphase/host/world_lists.h"

namespace lbvh {
namespace {

constexpr std::size_t kQueryGrain = 64;  // queries

std::uint32_t worldOf(const std::uint32_t* worlds, std::size_t query) {
  return worlds != nullptr ? worlds[query] : kAllWorlds;
}

/// Whether a query may name this world.
bool isWorld(const WorldBlocks& worlds, std::uint32_t world) {
  return world < worlds.worldCount() || world == kAllWorlds;
}

/// Calls visit(box index) for each box for which hits(Aabb) is true, in unspecified order. Searches
/// the boxes of this world, and the boxes that are in all worlds. With kAllWorlds, searches all
/// boxes. If `hits` is true for a box, it must also be true for all bounds that contain the box.
/// The last call of `hits` before visit() is for the visited box.
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

/// Returns the closest hit. Skips bounds that are farther away than the best hit so far.
RayHit closestHit(const WorldBlocks& worlds, std::uint32_t world, const Ray& ray) {
  const RayTest test(ray);
  RayHit best{kNullIndex, 0};
  float distance = -1;
  const auto hits = [&](const Aabb& box) {
    distance = test.distanceTo(box);
    return distance >= 0 && (best.box == kNullIndex || distance <= best.distance);
  };
  queryWorlds(worlds, world, hits, [&](std::uint32_t box) {
    if (best.box == kNullIndex || distance < best.distance || box < best.box)
      best = {box, distance};
  });
  return best;
}

bool hitsAny(const WorldBlocks& worlds, std::uint32_t world, const Ray& ray) {
  const RayTest test(ray);
  bool any = false;
  queryWorlds(
      worlds, world, [&](const Aabb& box) { return !any && test(box); },
      [&](std::uint32_t) { any = true; });
  return any;
}

}  // namespace

void HostQueries::closestHits(const RayBatch& rays, RayHit* hits) {
  tasks_.forRanges(rays.rays.size(), kQueryGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      hits[i] = closestHit(worlds_, worldOf(rays.worlds, i), rays.rays[i]);
  });
}

void HostQueries::anyHits(const RayBatch& rays, std::uint8_t* hits) {
  tasks_.forRanges(rays.rays.size(), kQueryGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      hits[i] = hitsAny(worlds_, worldOf(rays.worlds, i), rays.rays[i]) ? 1 : 0;
  });
}

DeviceHits HostQueries::allHits(const RayBatch& rays, View<std::uint32_t> list) {
  const auto testOf = [&](std::size_t i) { return RayTest(rays.rays[i]); };
  return findAll(rays.rays.size(), rays.worlds, testOf, list);
}

DeviceHits HostQueries::allHits(const BoxBatch& boxes, View<std::uint32_t> list) {
  const auto testOf = [&](std::size_t i) {
    return [box = boxes.boxes[i]](const Aabb& other) { return overlap(box, other); };
  };
  return findAll(boxes.boxes.size(), boxes.worlds, testOf, list);
}

/// @param testOf testOf(i) returns the predicate of query i
template <class TestOf>
DeviceHits HostQueries::findAll(std::size_t queries, const std::uint32_t* worlds,
                                const TestOf& testOf, View<std::uint32_t> list) {
  report_ = {};
  report_.queries = static_cast<std::uint32_t>(queries);
  for (std::size_t i = 0; i < queries; ++i)
    if (!isWorld(worlds_, worldOf(worlds, i)))
      report_.errors |= bitOf(DeviceError::worldOutOfRange);
  const View<std::uint32_t> offsets = offsets_.ensure(queries + 1);
  const auto hitsOf = [&](std::size_t i, const auto& visit) {
    queryWorlds(worlds_, worldOf(worlds, i), testOf(i), visit);
  };
  BatchParts parts(tasks_, queries, hitsOf, offsets.data() + 1, most_);
  const std::size_t found = parts.hits();
  report_.hits = std::min<std::uint64_t>(found, most_ + 1);
  offsets[0] = 0;
  if (found > most_) {
    report_.errors |= bitOf(DeviceError::searchStopped);
    std::fill(offsets.begin(), offsets.end(), 0u);
    return {offsets, {}, &report_};
  }
  for (std::size_t i = 0; i < queries; ++i) offsets[i + 1] += offsets[i];
  const View<std::uint32_t> boxes =
      list.data() != nullptr ? list : boxes_.ensure(std::max(found, capacity_));
  parts.write(offsets.data(), boxes.data(), boxes.size());
  const View<const std::uint32_t> hits =
      handOut(boxes, found, list, DeviceError::pairsTruncated, report_.errors);
  endWithin(hits.size(), offsets);
  return {offsets, hits, &report_};
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
#include "verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "pair_changes.h"
#include "support/broadphases.h"
#include "world_box.h"

namespace {

struct Box : WorldBox {
  btBroadphaseProxy* proxy;
};

bool overlaps(const Box& a, const Box& b) {
  for (int axis = 0; axis < 3; ++axis)
    if (!(a.low[axis] <= b.high[axis] && b.low[axis] <= a.high[axis])) return false;
  return true;
}

/// Finds the pairs that overlap and should collide. Applies the filter callback if there is one,
/// else groups and masks, as Bullet's pair caches do.
std::vector<ObjectPair> bruteForce(const std::vector<Box>& boxes, btOverlappingPairCache& cache) {
  btOverlapFilterCallback* callback = cache.getOverlapFilterCallback();
  const auto isWanted = [callback](btBroadphaseProxy* a, btBroadphaseProxy* b) {
    if (callback != nullptr) return callback->needBroadphaseCollision(a, b);
    return (a->m_collisionFilterGroup & b->m_collisionFilterMask) != 0 &&
           (b->m_collisionFilterGroup & a->m_collisionFilterMask) != 0;
  };
  std::vector<ObjectPair> pairs;
  for (std::size_t a = 0; a < boxes.size(); ++a)
    for (std::size_t b = a + 1; b < boxes.size(); ++b)
      if (overlaps(boxes[a], boxes[b]) && isWanted(boxes[a].proxy, boxes[b].proxy))
        pairs.emplace_back(int(a), int(b));
  return pairs;
}

std::size_t countMissing(const std::vector<ObjectPair>& from, const std::vector<ObjectPair>& in) {
  std::vector<ObjectPair> missing;
  std::set_difference(in.begin(), in.end(), from.begin(), from.end(), std::back_inserter(missing));
  return missing.size();
}

struct CountProxies : btBroadphaseAabbCallback {
  bool process(const btBroadphaseProxy*) override {
    ++count;
    return true;
  }
  int count = 0;
};

}  // namespace

PairPromise promiseOf(const std::string& broadphase) {
  return findsExactly(broadphase) ? PairPromise::exact : PairPromise::superset;
}

std::string verifyWorld(World& world, int objects, PairPromise promise) {
  const btCollisionObjectArray& all = world.bullet().getCollisionObjectArray();
  std::vector<Box> boxes;
  btVector3 low(0, 0, 0), high(0, 0, 0);
  for (int i = 0; i < all.size(); ++i) {
    btBroadphaseProxy* proxy = all[i]->getBroadphaseHandle();
    if (proxy == nullptr || proxy->m_clientObject != all[i])
      return fmt::format("object {} has lost its proxy", i);
    boxes.push_back({boxOf(world, *all[i]), proxy});
    low.setMin(boxes.back().low);
    high.setMax(boxes.back().high);
  }
  CountProxies found;
  world.broadphase().aabbTest(low, high, found);
  if (found.count != objects)
    return fmt::format("a query finds {} of {} objects", found.count, objects);

  const std::vector<ObjectPair> pairs = pairsOf(world),
                                expected = bruteForce(
                                    boxes, *world.broadphase().getOverlappingPairCache());
  if (std::adjacent_find(pairs.begin(), pairs.end()) != pairs.end())
    return "a pair is in the cache twice";
  const std::size_t missing = countMissing(pairs, expected), extra = countMissing(expected, pairs);
  if (missing != 0) return fmt::format("{} of {} pairs are missing", missing, expected.size());
  if (extra != 0 && promise == PairPromise::exact)
    return fmt::format("{} pairs are not among the {} overlapping pairs", extra, expected.size());
  return "";
}

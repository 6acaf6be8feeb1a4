// SPDX-License-Identifier: Zlib
#include "pair_changes.h"

#include <algorithm>
#include <iterator>

#include "cached_pairs.h"
#include "world_box.h"

std::pair<btVector3, btVector3> endsOf(World& world, const btCollisionObject& a,
                                       const btCollisionObject& b) {
  if (a.isStaticObject() && !b.isStaticObject()) return endsOf(world, b, a);
  const btVector3 from = boxOf(world, a).centre();
  const WorldBox box = boxOf(world, b);
  if (!b.isStaticObject()) return {from, box.centre()};
  btVector3 to = from;
  to.setMax(box.low);
  to.setMin(box.high);
  return {from, to};
}

std::vector<ObjectPair> pairsOf(World& world) {
  const btBroadphasePairArray& array = cachedPairs(world);
  std::vector<ObjectPair> pairs;
  pairs.reserve(static_cast<std::size_t>(array.size()));
  for (int i = 0; i < array.size(); ++i) {
    const int a = objectOf(*array[i].m_pProxy0).getWorldArrayIndex(),
              b = objectOf(*array[i].m_pProxy1).getWorldArrayIndex();
    pairs.emplace_back(std::min(a, b), std::max(a, b));
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

void PairChanges::update(World& world) {
  for (Flash& flash : flashes_) ++flash.age;
  while (!flashes_.empty() && flashes_.front().age >= kLifetime) flashes_.pop_front();

  std::vector<ObjectPair> now = pairsOf(world), added, removed;
  std::set_difference(now.begin(), now.end(), pairs_.begin(), pairs_.end(),
                      std::back_inserter(added));
  std::set_difference(pairs_.begin(), pairs_.end(), now.begin(), now.end(),
                      std::back_inserter(removed));
  const btCollisionObjectArray& objects = world.bullet().getCollisionObjectArray();
  const auto flash = [&](const ObjectPair& pair, bool isAdded) {
    if (pair.second >= objects.size()) return;  // an object was removed with its pairs
    const auto [from, to] = endsOf(world, *objects[pair.first], *objects[pair.second]);
    flashes_.push_back({from, to, isAdded});
  };
  for (const ObjectPair& pair : added) flash(pair, true);
  for (const ObjectPair& pair : removed) flash(pair, false);
  added_ = added.size();
  removed_ = removed.size();
  pairs_ = std::move(now);
}

void PairChanges::reset(World& world) {
  pairs_ = pairsOf(world);
  added_ = removed_ = 0;
}

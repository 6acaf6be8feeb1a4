#include "pair_changes.h"

#include <algorithm>
#include <iterator>

#include "world_box.h"

namespace {

int indexOf(const btBroadphaseProxy& proxy) {
  return static_cast<const btCollisionObject*>(proxy.m_clientObject)->getWorldArrayIndex();
}

Flash flashOf(World& world, ObjectPair pair, bool isAdded) {
  const btCollisionObjectArray& objects = world.bullet().getCollisionObjectArray();
  const auto centre = [&](int object) {
    if (object < 0 || object >= objects.size()) return btVector3(0, 0, 0);  // it was removed
    return boxOf(world, *objects[object]).centre();
  };
  return {centre(pair.first), centre(pair.second), isAdded};
}

}  // namespace

std::vector<ObjectPair> pairsOf(World& world) {
  const btBroadphasePairArray& array =
      world.broadphase().getOverlappingPairCache()->getOverlappingPairArray();
  std::vector<ObjectPair> pairs;
  pairs.reserve(static_cast<std::size_t>(array.size()));
  for (int i = 0; i < array.size(); ++i) {
    const int a = indexOf(*array[i].m_pProxy0), b = indexOf(*array[i].m_pProxy1);
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
  for (const ObjectPair& pair : added) flashes_.push_back(flashOf(world, pair, true));
  for (const ObjectPair& pair : removed) flashes_.push_back(flashOf(world, pair, false));
  added_ = added.size();
  removed_ = removed.size();
  pairs_ = std::move(now);
}

void PairChanges::reset(World& world) {
  pairs_ = pairsOf(world);
  added_ = removed_ = 0;
}

// SPDX-License-Identifier: Zlib
// The checks of an episode against brute force. See adapter_episode.h.
#include <algorithm>
#include <cmath>
#include <utility>

#include "adapter_episode.h"

namespace fuzz {

/// Whether the box is above the plane, tested as the adapter does: with the box's lowest corner
/// along the normal, in double precision. A box is not above if the height of this corner is NaN or
/// minus infinity.
bool Episode::isAbove(const Client& client, const Client& plane) const {
  const bool isFat = broadPhase_.options.margin > 0;
  double lowest = -double(plane.plane->constant);
  for (int axis = 0; axis < 3; ++axis) {
    const double normal = plane.plane->normal[axis];
    const double lo = isFat ? double(client.fat.min[axis]) : double(client.box.min[axis]);
    const double hi = isFat ? double(client.fat.max[axis]) : double(client.box.max[axis]);
    if (normal != 0) lowest += normal * (normal > 0 ? lo : hi);
  }
  return lowest > 0;
}

bool Episode::overlaps(const Client& a, const Client& b) const {
  if ((a.plane && isAbove(b, a)) || (b.plane && isAbove(a, b))) return false;
  if (broadPhase_.options.margin > 0) return lbvh::overlap(a.fat, b.fat);
  return overlap(a.box, b.box);
}

bool Episode::isWanted(const Client& a, const Client& b) const {
  if (hasFilter()) return filter_.accepts(a.id(), b.id());
  if (broadPhase_.isStrangers) return strangers::accepts(a.proxy, b.proxy);
  return (a.group() & b.mask()) != 0 && (b.group() & a.mask()) != 0;
}

/// Whether the next step must have the pair of these two boxes, which overlap. The user must not
/// have edited the pair.
bool Episode::isExpected(const Key& key, const Client& a, const Client& b) const {
  if (!asksOnce() || asksAnew() || isExchanged_) return isWanted(a, b);
  if (known_.count(key) == 1) return true;
  const bool begins = stepPairs_.count(key) == 0 || isInterrupted_;
  return (begins || a.mustAsk || b.mustAsk) && isWanted(a, b);
}

bool Episode::isGhosts(const Key& key) const {
  return hasGhosts_ && (clients_.at(key.first).isGhost() || clients_.at(key.second).isGhost());
}

Episode::Pairs Episode::readCache() const {
  Pairs pairs;
  const btBroadphasePairArray& array = cache_->getOverlappingPairArray();
  require(array.size() == cache_->getNumOverlappingPairs(),
          "getNumOverlappingPairs() is not the size of the array");
  require(array.size() == 0 || broadPhase_.kind != Cache::none, "pairs in a null cache");
  int algorithms = 0, strange = 0;
  for (int i = 0; i < array.size(); ++i) {
    const btBroadphasePair& pair = array[i];
    strange += pair.m_pProxy0 == &strangeProxies_[0];
    if (pair.m_pProxy0 == &strangeProxies_[0]) continue;
    require(&pair == cache_->getOverlappingPairArrayPtr() + i, "the array is not contiguous");
    const Key key{pair.m_pProxy0->m_uniqueId, pair.m_pProxy1->m_uniqueId};
    require(key.first < key.second, "ids out of order");
    for (const btBroadphaseProxy* proxy : {pair.m_pProxy0, pair.m_pProxy1}) {
      const auto client = clients_.find(proxy->m_uniqueId);
      require(client != clients_.end() && client->second.proxy == proxy, "a pair of a dead proxy");
    }
    require(pairs.emplace(key, pair.m_algorithm).second, "the cache has a pair twice");
    algorithms += pair.m_algorithm != nullptr;
  }
  require(algorithms + leftAlgorithms_ == Algorithm::alive, "an algorithm without its pair");
  require(strange == broadPhase_.isShared, "another broad phase's pair was touched");
  return pairs;
}

template <class Clients, class Visit>
void forPairs(const Clients& clients, const Visit& visit) {
  for (auto a = clients.begin(); a != clients.end(); ++a)
    for (auto b = std::next(a); b != clients.end(); ++b)
      visit(Key{a->first, b->first}, a->second, b->second);
}

/// The pairs that a step finds before it calls a filter callback.
std::set<Key> Episode::overlapping() const {
  std::set<Key> pairs;
  forPairs(clients_, [&](const Key& key, const Client& a, const Client& b) {
    if (overlaps(a, b) && (asksOnce() || isWanted(a, b))) pairs.insert(key);
  });
  return pairs;
}

/// The number of pairs that the finder finds, before planes and callbacks reject some.
std::size_t Episode::countFound() const {
  std::size_t found = 0;
  forPairs(clients_, [&](const Key&, const Client& a, const Client& b) {
    found += lbvh::overlap(a.fat, b.fat) && (asksOnce() || isWanted(a, b));
  });
  return found;
}

/// Checks a step, which may have found more pairs than allowed.
void Episode::stepIsDone() {
  const std::size_t found = countFound();
  const bool isTooMany = found > broadPhase_.options.maxPairs;
  require(isTooMany == (*ours_->error() != '\0'), "error() is wrong");
  if (isTooMany) return require(readCache() == known_, "a step that failed changed the pairs");
  require(ours_->stats().pairs == found, "stats().pairs is wrong");
  checkPairs();
  checkOrder();
  isStepped_ = true;
  if (isSilent_ && (!asksOnce() || asksAnew())) {
    isSilent_ = false;
    renewTwin();
  }
  isRefiltered_ = isExchanged_ = isInterrupted_ = false;
  lastFilter_ = cache_->getOverlapFilterCallback();
  for (auto& [id, client] : clients_) client.isUnsettled = client.mustAsk = false;
  checkGhosts();
  checkTwin();
  // Gives some pairs an algorithm, as the narrow phase would.
  btBroadphasePairArray& array = cache_->getOverlappingPairArray();
  for (int i = 0; i < array.size(); i += 2)
    if (array[i].m_algorithm == nullptr && array[i].m_pProxy0 != &strangeProxies_[0])
      array[i].m_algorithm =
          new (dispatcher_.allocateCollisionAlgorithm(sizeof(Algorithm))) Algorithm;
  known_ = readCache();
}

void Episode::checkPairs() {
  const Pairs now = readCache();
  std::set<Key> stepPairs = overlapping();
  forPairs(clients_, [&](const Key& key, const Client& a, const Client& b) {
    const bool overlapsNow = stepPairs.count(key) == 1;
    if (broadPhase_.kind == Cache::none) return;
    const auto pair = now.find(key);
    require(cache_->needsBroadphaseCollision(a.proxy, b.proxy) == isWanted(a, b),
            "needsBroadphaseCollision is wrong");
    const bool isThere = pair != now.end(), mustBe = overlapsNow && isExpected(key, a, b);
    if (!checkEdited(key, isThere, overlapsNow && isWanted(a, b), overlapsNow)) {
      require(isThere || !mustBe, "a pair is missing");
      require(!isThere || mustBe, "a pair too many");
    }
    if (broadPhase_.kind != Cache::sorted || isWanted(a, b))
      require((cache_->findPair(a.proxy, b.proxy) != nullptr) == isThere, "findPair is wrong");
    const auto before = known_.find(key);
    if (isThere && before != known_.end())
      require(pair->second == before->second, "a living pair lost its algorithm");
  });
  stepPairs_ = std::move(stepPairs);
}

void Episode::checkOrder() const {
  if (!broadPhase_.options.sortsPairs || broadPhase_.kind != Cache::own) return;
  const btBroadphasePairArray& pairs = cache_->getOverlappingPairArray();
  const auto keyOf = [&](int i) {
    return Key{pairs[i].m_pProxy0->m_uniqueId, pairs[i].m_pProxy1->m_uniqueId};
  };
  for (int i = 1; i < pairs.size(); ++i) require(keyOf(i - 1) < keyOf(i), "pairs are not sorted");
}

/// Whether a pair that the user removed or added stays as the user left it. This lasts until the
/// boxes begin or cease to overlap, or until all filters are applied again.
bool Episode::checkEdited(const Key& key, bool isThere, bool isExpected, bool overlapsNow) {
  if (edited_.count(key) == 0) return false;
  const bool overlappedBefore = stepPairs_.count(key) == 1;
  const bool isHis = overlappedBefore == overlapsNow && !(overlapsNow && asksAnew());
  if (!isHis || (!isThere == !isExpected && !isSilent_)) edited_.erase(key);
  return isHis;
}

/// Between two steps, only pairs of ghosts may be added, and none may be removed.
void Episode::afterChange() {
  isStepped_ = false;
  const Pairs now = readCache();
  for (const auto& [key, algorithm] : now) {
    const auto before = known_.find(key);
    require(before != known_.end() || isGhosts(key), "a pair was added between steps");
    require(before == known_.end() || algorithm == before->second, "an algorithm was lost");
  }
  for (const auto& pair : known_)
    require(now.count(pair.first) == 1, "a pair was removed between steps");
  known_ = now;
  checkGhosts();
  checkStrangersCalls(false);
}

/// A stranger's cache gets only the calls that btDbvtBroadphase makes. The adapter asks this
/// cache about its existing pairs only after refilter().
void Episode::checkStrangersCalls(bool isRefiltered) const {
  if (!broadPhase_.isStrangers) return;
  require(broadPhase_.talk->others == 0, "a stranger's cache got a call that it does not expect");
  require(std::exchange(broadPhase_.talk->questions, 0) == 0 || isRefiltered,
          "a stranger's cache was asked without refilter()");
}

/// The failed step may have done a part of its work. The objects of all pairs must still exist, and
/// the next step must be right.
void Episode::afterFailure() {
  known_ = readCache();
  isStepped_ = false;
  for (auto& [id, client] : clients_) client.isUnsettled = true;
  step();
}

/// A ghost's list must immediately contain the objects that the ghost overlaps. Until the next step
/// it may also contain objects that the ghost no longer overlaps. Changed filters and planes are
/// read only in a step.
void Episode::checkGhosts() const {
  if (!hasGhosts_ || broadPhase_.kind == Cache::none) return;
  const Pairs pairs = readCache();
  std::map<const btCollisionObject*, const Client*> clientOf;
  for (const auto& [id, client] : clients_) clientOf[client.object.get()] = &client;
  for (const auto& [id, client] : clients_) {
    if (!client.isGhost()) continue;
    auto& ghost = static_cast<btGhostObject&>(*client.object);
    std::set<const Client*> seen;
    for (int i = 0; i < ghost.getNumOverlappingObjects(); ++i) {
      const auto other = clientOf.find(ghost.getOverlappingObject(i));
      require(other != clientOf.end(), "a ghost sees a dead object");
      require(seen.insert(other->second).second, "a ghost sees an object twice");
    }
    for (const auto& [otherId, other] : clients_) {
      const Key key{std::min(id, otherId), std::max(id, otherId)};
      if (!other.object || otherId == id || edited_.count(key) == 1) continue;
      if (client.isUnsettled || other.isUnsettled) continue;
      const bool isPair =
          isSilent_ ? pairs.count(key) == 1 : overlaps(client, other) && isWanted(client, other);
      const bool isSeen = seen.count(&other) == 1;
      require(isSeen || !isPair, "a ghost does not see what it overlaps");
      require(!isSeen || isPair || (!isStepped_ && pairs.count(key) == 1),
              "a ghost sees what has parted from it");
    }
  }
}

/// Bullet's own broad phase has all of our pairs, and may have more. This does not hold if our
/// boxes have a margin.
void Episode::checkTwin() {
  twin_.calculateOverlappingPairs(&dispatcher_);
  if (broadPhase_.options.margin > 0) return;
  if (asksOnce() && onlyOpens_) checkTwinsPairs();
  if (isSilent_) return;
  btOverlappingPairCache& cache = *twin_.getOverlappingPairCache();
  forPairs(clients_, [&](const Key&, const Client& a, const Client& b) {
    if (a.twin != nullptr && b.twin != nullptr && overlaps(a, b) && isWanted(a, b))
      require(cache.findPair(a.twin, b.twin) != nullptr, "btDbvtBroadphase lacks a pair");
  });
}

/// The twin calls filters again when a box changes. So the twin's pairs must be in our cache as
/// long as answers change only from no to yes.
void Episode::checkTwinsPairs() const {
  const btBroadphasePairArray& array =
      const_cast<btDbvtBroadphase&>(twin_).getOverlappingPairCache()->getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i) {
    const auto& a = *static_cast<const Client*>(array[i].m_pProxy0->m_clientObject);
    const auto& b = *static_cast<const Client*>(array[i].m_pProxy1->m_clientObject);
    const Key key{std::min(a.id(), b.id()), std::max(a.id(), b.id())};
    if (!overlaps(a, b) || edited_.count(key) == 1 || broadPhase_.kind == Cache::none) continue;
    require(cache_->findPair(a.proxy, b.proxy) != nullptr,
            "btDbvtBroadphase has a pair that is missing here");
  }
}

namespace {

/// Collects the visited proxies. Each may be visited at most once.
struct Visited : btBroadphaseAabbCallback {
  bool process(const btBroadphaseProxy* proxy) override {
    require(proxies.insert(proxy).second, "visited twice");
    return false;  // the result is ignored
  }
  std::set<const btBroadphaseProxy*> proxies;
};

/// Throws at the first visit. The queries after the exception must be right.
struct ThrowingVisit : btBroadphaseAabbCallback {
  bool process(const btBroadphaseProxy*) override { throw Thrown{}; }
};

}  // namespace

template <class Clients>
void checkQueries(GpuLbvhBroadphase& ours, const Clients& clients, Bytes bytes) {
  const Box box = drawBox(bytes);
  if (bytes.oneIn(8)) try {
      ThrowingVisit throwing;
      ours.aabbTest(box.min, box.max, throwing);
    } catch (const Thrown&) {
    }
  Visited visited;
  ours.aabbTest(box.min, box.max, visited);
  DrawnRay ray(bytes);
  ours.rayTest(ray.from, ray.to, ray, ray.sweptMin, ray.sweptMax);
  for (const auto& [id, client] : clients) {
    require((visited.proxies.erase(client.proxy) == 1) == overlap(box, client.box),
            "aabbTest is wrong");
    const bool isHit = ray.proxies.erase(client.proxy) == 1;
    require(isHit || !ray.mustHit(client.box), "rayTest missed a proxy");
    require(!isHit || ray.mayHit(client.box), "rayTest visited a proxy far away");
  }
  require(visited.proxies.empty() && ray.proxies.empty() && !ray.twice,
          "a query visited a dead proxy, or one twice");
}

template void checkQueries(GpuLbvhBroadphase&, const std::map<int, Client>&, Bytes);

}  // namespace fuzz

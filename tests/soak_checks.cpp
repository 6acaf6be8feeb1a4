// What an episode compares with brute force.
#include <algorithm>
#include <set>
#include <thread>

#include "soak_episode.h"

namespace soak {

bool Episode::isWanted(const btBroadphaseProxy* a, const btBroadphaseProxy* b) const {
  return cache_->getOverlapFilterCallback() != nullptr
             ? (numberOf(a) + numberOf(b)) % filter_.of != 0
             : wanted(a, b);
}

Episode::Pairs Episode::readCache() {
  Pairs pairs;
  const btBroadphasePairArray& array = cache_->getOverlappingPairArray();
  require(array.size() == cache_->getNumOverlappingPairs(), "two counts of pairs");
  int algorithms = 0;
  for (int i = 0; i < array.size(); ++i) {
    const btBroadphasePair& pair = array[i];
    require(&pair == cache_->getOverlappingPairArrayPtr() + i, "the array is not contiguous");
    require(pair.m_pProxy0->m_uniqueId < pair.m_pProxy1->m_uniqueId, "ids out of order");
    for (const btBroadphaseProxy* proxy : {pair.m_pProxy0, pair.m_pProxy1})
      require(clients_.at(numberOf(proxy)).proxy == proxy, "a pair of a dead proxy");
    require(pairs.emplace(keyOf(pair.m_pProxy0, pair.m_pProxy1), pair.m_algorithm).second,
            "a pair twice");
    algorithms += pair.m_algorithm != nullptr;
  }
  require(algorithms == Algorithm::alive, "an algorithm without its pair");
  return pairs;
}

void Episode::checkStep() {
  const Pairs now = readCache();
  std::uint64_t found = 0;
  for (auto a = clients_.begin(); a != clients_.end(); ++a)
    for (auto b = std::next(a); b != clients_.end(); ++b) {
      const btBroadphaseProxy *p = a->second.proxy, *q = b->second.proxy;
      const bool overlaps = overlap(p, q);
      found += overlaps && (cache_->getOverlapFilterCallback() != nullptr || wanted(p, q));
    }
  require((found > maxPairs_) == (*ours_->error() != '\0'), "error() is wrong");
  if (found > maxPairs_) return require(now == known_, "a step that failed changed the pairs");
  require(ours_->stats().pairs == found, "stats().pairs is wrong");
  if (kind_ == Cache::none) return;
  for (auto a = clients_.begin(); a != clients_.end(); ++a)
    for (auto b = std::next(a); b != clients_.end(); ++b) {
      btBroadphaseProxy *p = a->second.proxy, *q = b->second.proxy;
      const auto pair = now.find({a->first, b->first});
      const bool isThere = pair != now.end(), isExpected = overlap(p, q) && isWanted(p, q);
      require(isThere || !isExpected, "a pair is missing");
      require(!isThere || isExpected, "a pair too many");
      if (kind_ != Cache::sorted || isWanted(p, q))
        require((cache_->findPair(p, q) != nullptr) == isThere, "findPair is wrong");
      if (!isThere) continue;
      const auto before = known_.find(pair->first);
      require(pair->second == (before != known_.end() ? before->second : nullptr),
              "a living pair lost its algorithm");
    }
}

/// Between two steps only pairs of ghosts come and go.
void Episode::afterChange() {
  isStepped_ = false;
  const Pairs now = readCache();
  const auto isGhosts = [this](const Key& key) {
    return hasGhosts_ && (isGhost(clients_.at(key.first)) || isGhost(clients_.at(key.second)));
  };
  for (const auto& [key, algorithm] : now) {
    const auto before = known_.find(key);
    require(before != known_.end() || isGhosts(key), "a pair came before its step");
    require(before == known_.end() || isGhosts(key) || algorithm == before->second,
            "an algorithm was lost");
  }
  for (const auto& pair : known_)
    require(now.count(pair.first) == 1 || isGhosts(pair.first), "a pair went before its step");
  known_ = now;
  checkGhosts();
}

/// A ghost sees what it overlaps at once, but for filters, which are read in a step.
void Episode::checkGhosts() {
  if (!hasGhosts_ || kind_ == Cache::none || !areFiltersRead_) return;
  for (const auto& [number, client] : clients_) {
    if (!isGhost(client)) continue;
    auto& ghost = static_cast<btGhostObject&>(*client.object);
    std::set<int> seen, expected;
    for (int i = 0; i < ghost.getNumOverlappingObjects(); ++i)
      require(seen.insert(ghost.getOverlappingObject(i)->getUserIndex()).second,
              "a ghost sees an object twice");
    for (const auto& [other, otherClient] : clients_)
      if (other != number && overlap(client.proxy, otherClient.proxy) &&
          isWanted(client.proxy, otherClient.proxy))
        expected.insert(other);
    require(seen == expected, "a ghost does not see what it overlaps");
  }
}

/// Visits are compared by the caller; each at most once.
struct Visited : btBroadphaseAabbCallback {
  bool process(const btBroadphaseProxy* proxy) override {
    require(proxies.insert(proxy).second, "visited twice");
    return random == nullptr || random->below(2) == 0;  // the answer counts for nothing
  }
  std::set<const btBroadphaseProxy*> proxies;
  Random* random = nullptr;
};

void checkBoxQuery(GpuLbvhBroadphase& ours, const std::map<int, Client>& clients, Random& random) {
  const Box box = soakBox(random);
  Visited visited;
  visited.random = &random;
  ours.aabbTest(box.min, box.max, visited);
  btBroadphaseProxy query;
  query.m_aabbMin = box.min;
  query.m_aabbMax = box.max;
  for (const auto& [number, client] : clients)
    require((visited.proxies.count(client.proxy) == 1) == overlap(&query, client.proxy),
            "aabbTest is wrong");
}

void checkRay(GpuLbvhBroadphase& ours, const std::map<int, Client>& clients, Random& random) {
  SoakRay ray(random);
  ours.rayTest(ray.from, ray.to, ray, ray.sweptMin, ray.sweptMax);
  for (const auto& [number, client] : clients) {
    const bool visited = ray.proxies.count(client.proxy) == 1;
    require(visited || !ray.mustHit(*client.proxy), "rayTest missed a proxy");
    require(!visited || ray.mayHit(*client.proxy), "rayTest visited a proxy far away");
    if (visited) ray.proxies.erase(client.proxy);
  }
  require(ray.proxies.empty() && !ray.twice, "rayTest visited a dead proxy, or one twice");
}

// One to four threads ask together; each answer is compared by the thread that got it.
void Episode::query() {
  const auto ask = [this](std::uint32_t threadSeed) {
    Random random(threadSeed);
    for (int i = 0; i < 4; ++i) {
      checkBoxQuery(*ours_, clients_, random);
      checkRay(*ours_, clients_, random);
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t n = random_.below(4); n > 0; --n) threads.emplace_back(ask, random_.bits());
  ask(random_.bits());
  for (std::thread& thread : threads) thread.join();
}

}  // namespace soak

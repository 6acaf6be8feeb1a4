// Calls everything that a broad phase and its cache can be asked, at random, and compares each
// answer with brute force. Runs until its time is up, prints its seed, and stops at the first lie.
// Usage: adapter_soak [--seconds S] [--seed N] [--episodes N]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "soak_episode.h"

namespace soak {

btOverlappingPairCache* Episode::makeCache(Cache kind) {
  switch (kind) {
    case Cache::hashed:
      return new btHashedOverlappingPairCache;
    case Cache::sorted:
      return new btSortedOverlappingPairCache;
    case Cache::none:
      return new btNullPairCache;
    default:
      return nullptr;
  }
}

Episode::Episode(Random& random)
    : random_(random),
      kind_(random.below(2) == 0 ? Cache::own : Cache(random.below(4))),
      // Bullet's sorted cache does not tell of removals.
      hasGhosts_(kind_ != Cache::sorted && random.below(2) == 0),
      maxPairs_(random.below(8) == 0 ? 150 : 1u << 28),
      handedIn_(makeCache(kind_)) {
  GpuLbvhOptions options;
  options.cacheHasGhosts = hasGhosts_;
  options.threads = static_cast<int>(1 + random.below(4));
  options.maxPairs = maxPairs_;
  ours_ = std::make_unique<GpuLbvhBroadphase>(options, handedIn_.get());
  cache_ = ours_->getOverlappingPairCache();
  require(handedIn_ == nullptr || cache_ == handedIn_.get(), "another cache");
  if (hasGhosts_) cache_->setInternalGhostPairCallback(&ghostCallback_);
  if (random.below(4) == 0) cache_->setOverlapFilterCallback(&filter_);
}

Episode::~Episode() {
  while (!clients_.empty()) destroy();
  require(cache_->getNumOverlappingPairs() == 0, "pairs of nobody");
  require(Algorithm::alive == 0, "an algorithm leaked");
}

void Episode::run(int operations) {
  for (; operations > 0; --operations, ++operation) act();
}

void Episode::act() {
  const std::uint32_t dice = random_.below(100);
  if (dice < (clients_.size() < 80 ? 25u : 8u)) return create();
  if (clients_.empty()) return resetPool();
  if (dice < 34) return destroy();
  if (dice < 60) return move();
  if (dice < 66) return changeFilter();
  if (dice < 68) return changeCallback();
  if (dice < 80) return step();
  if (dice < 90) return query();
  if (dice < 99) return useCache();
  while (random_.below(20) == 0 && !clients_.empty()) destroy();
  resetPool();
}

Client& Episode::any() {
  auto client = clients_.begin();
  std::advance(client, random_.below(static_cast<std::uint32_t>(clients_.size())));
  return client->second;
}

/// One, or many with one call.
void Episode::create() {
  const int count = random_.below(8) == 0 ? 20 : 1;
  std::vector<Client> clients(static_cast<std::size_t>(count));
  std::vector<GpuLbvhNewProxy> wanted;
  for (Client& client : clients) {
    const std::uint32_t dice = random_.below(8);
    if (dice == 0)
      client.object = std::make_unique<btGhostObject>();
    else if (dice == 1)
      client.object = std::make_unique<btPairCachingGhostObject>();
    else
      client.object = std::make_unique<btCollisionObject>();
    client.object->setUserIndex(++lastNumber_);
    const Box box = soakBox(random_);
    wanted.push_back({box.min, box.max, BOX_SHAPE_PROXYTYPE, client.object.get(),
                      1 << random_.below(4), static_cast<int>(random_.bits() | 1)});
  }
  std::vector<btBroadphaseProxy*> proxies(clients.size());
  if (count > 1)
    require(ours_->createProxies(wanted.data(), count, proxies.data(), &dispatcher_), "no memory");
  else
    proxies[0] =
        ours_->createProxy(wanted[0].aabbMin, wanted[0].aabbMax, wanted[0].shapeType,
                           wanted[0].client, wanted[0].group, wanted[0].mask, &dispatcher_);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    Client& client = clients[i];
    client.proxy = proxies[i];
    client.object->setBroadphaseHandle(client.proxy);
    require(client.proxy->m_uniqueId == ++lastId_, "ids count up");
    require(reinterpret_cast<std::uintptr_t>(client.proxy) % 16 == 0, "an address is not aligned");
    clients_.emplace(client.object->getUserIndex(), std::move(client));
  }
  afterChange();
}

void Episode::destroy() {
  const bool isBulk = random_.below(8) == 0;
  std::set<int> numbers;
  for (int n = isBulk ? 10 : 1; n > 0; --n) numbers.insert(any().object->getUserIndex());
  std::vector<btBroadphaseProxy*> proxies;
  for (const int number : numbers) proxies.push_back(clients_.at(number).proxy);
  if (random_.below(2) == 0) cache_->cleanProxyFromPairs(proxies[0], &dispatcher_);
  if (isBulk)
    ours_->destroyProxies(proxies.data(), static_cast<int>(proxies.size()), &dispatcher_);
  else
    ours_->destroyProxy(proxies[0], &dispatcher_);
  for (const int number : numbers) clients_.erase(number);
  for (auto pair = known_.begin(); pair != known_.end();) {
    const bool isGone =
        numbers.count(pair->first.first) == 1 || numbers.count(pair->first.second) == 1;
    pair = isGone ? known_.erase(pair) : std::next(pair);
  }
  afterChange();
}

void Episode::move() {
  const std::uint32_t dice = random_.below(8);
  std::vector<btBroadphaseProxy*> proxies;
  std::vector<btVector3> mins, maxs;
  for (std::uint32_t n = dice == 0 ? 100 : 1 + random_.below(5); n > 0; --n) {
    proxies.push_back(any().proxy);
    Box box{proxies.back()->m_aabbMin, proxies.back()->m_aabbMax};
    if (random_.below(3) == 0) {
      box = soakBox(random_);
    } else if (random_.below(4) != 0) {  // else the box that it has already
      const btVector3 way(random_.uniform(-1, 1), random_.uniform(-1, 1), random_.uniform(-1, 1));
      box = {box.min + way, box.max + way};
    }
    mins.push_back(box.min);
    maxs.push_back(box.max);
  }
  if (dice <= 1)
    ours_->setAabbs(proxies.data(), mins.data(), maxs.data(), static_cast<int>(proxies.size()),
                    &dispatcher_);
  else
    for (std::size_t i = 0; i < proxies.size(); ++i)
      ours_->setAabb(proxies[i], mins[i], maxs[i], &dispatcher_);
  Box now;
  ours_->getAabb(proxies.back(), now.min, now.max);
  require(std::memcmp(&now.min, &mins.back(), 3 * sizeof(btScalar)) == 0, "not the box set last");
  afterChange();
}

void Episode::changeFilter() {
  btBroadphaseProxy* proxy = any().proxy;
  if (random_.below(2) == 0)
    proxy->m_collisionFilterGroup = 1 << random_.below(4);
  else
    proxy->m_collisionFilterMask = static_cast<int>(random_.bits());
  isStepped_ = areFiltersRead_ = false;
}

void Episode::changeCallback() {
  if (random_.below(2) == 0) {
    const bool isSet = cache_->getOverlapFilterCallback() != nullptr;
    cache_->setOverlapFilterCallback(isSet ? nullptr : &filter_);
  } else {
    filter_.of = static_cast<int>(2 + random_.below(3));
    ours_->refilter();
  }
  isStepped_ = areFiltersRead_ = false;
}

void Episode::step() {
  ours_->calculateOverlappingPairs(&dispatcher_);
  require(readCache().size() == 0 || kind_ != Cache::none, "pairs in a null cache");
  checkStep();
  isStepped_ = areFiltersRead_ = *ours_->error() == '\0';
  checkGhosts();
  // Some pairs get what the narrow phase would give them.
  btBroadphasePairArray& array = cache_->getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i) {
    if (array[i].m_algorithm != nullptr || random_.below(2) == 0) continue;
    array[i].m_algorithm =
        new (dispatcher_.allocateCollisionAlgorithm(sizeof(Algorithm))) Algorithm;
  }
  known_ = readCache();
}

struct Count : btOverlapCallback {
  bool processOverlap(btBroadphasePair&) override {
    ++pairs;
    return false;
  }
  int pairs = 0;
};

void Episode::useCache() {
  const btBroadphasePairArray& array = cache_->getOverlappingPairArray();
  btDispatcherInfo info;
  Count count;
  switch (random_.below(6)) {
    case 0:
      info.m_deterministicOverlappingPairs = random_.below(2) == 0;
      cache_->processAllOverlappingPairs(&count, &dispatcher_, info);
      require(count.pairs == (kind_ == Cache::none ? 0 : array.size()), "not all were processed");
      break;
    case 1:
      cache_->cleanProxyFromPairs(any().proxy, &dispatcher_);
      break;
    case 2:
      if (array.size() > 0)
        cache_->cleanOverlappingPair(cache_->getOverlappingPairArray()[static_cast<int>(
                                         random_.below(static_cast<std::uint32_t>(array.size())))],
                                     &dispatcher_);
      break;
    case 3:
      if (isStepped_) cache_->sortOverlappingPairs(&dispatcher_);
      break;
    case 4:  // what the user takes away and gives back is there
      if (array.size() > 0 && isStepped_ && !cache_->hasDeferredRemoval()) {
        const btBroadphasePair pair =
            array[static_cast<int>(random_.below(static_cast<std::uint32_t>(array.size())))];
        cache_->removeOverlappingPair(pair.m_pProxy1, pair.m_pProxy0, &dispatcher_);
        require(cache_->findPair(pair.m_pProxy0, pair.m_pProxy1) == nullptr, "not removed");
        cache_->addOverlappingPair(pair.m_pProxy1, pair.m_pProxy0);
        require(cache_->addOverlappingPair(pair.m_pProxy0, pair.m_pProxy1) ==
                    cache_->findPair(pair.m_pProxy0, pair.m_pProxy1),
                "added twice");
      }
      break;
    default:
      btBroadphaseProxy *a = any().proxy, *b = any().proxy;
      require(kind_ == Cache::none || cache_->needsBroadphaseCollision(a, b) == isWanted(a, b),
              "needsBroadphaseCollision is wrong");
  }
  const Pairs now = readCache();
  require(now.size() == known_.size(), "the cache lost or made pairs");
  for (const auto& pair : now) require(known_.count(pair.first) == 1, "the cache made a pair");
  known_ = now;
  checkGhosts();
}

void Episode::resetPool() {
  ours_->resetPool(&dispatcher_);
  if (clients_.empty()) lastId_ = 0;
  Box all;
  ours_->getBroadphaseAabb(all.min, all.max);
  for (const auto& [number, client] : clients_)
    if (isOrdinary(*client.proxy))
      for (int axis = 0; axis < 3; ++axis)
        require(!(all.min[axis] > client.proxy->m_aabbMin[axis] ||
                  all.max[axis] < client.proxy->m_aabbMax[axis]),
                "getBroadphaseAabb is too small");
}

}  // namespace soak

int main(int argc, char** argv) {
  using namespace soak;
  double seconds = 5;
  long episodes = std::numeric_limits<long>::max();
  seed = std::random_device{}();
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0)
      seed = static_cast<std::uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    if (std::strcmp(argv[i], "--episodes") == 0) episodes = std::atol(argv[i + 1]);
  }
  std::printf("first seed %u\n", seed);
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  long done = 0;
  long long operations = 0;
  for (; done < episodes; ++done, ++seed) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds)
      break;
    Random random(seed);
    operation = 0;
    Episode(random).run(static_cast<int>(50 + random.below(1000)));
    operations += operation;
  }
  std::printf("%ld episodes, %lld operations, all answers right\n", done, operations);
}

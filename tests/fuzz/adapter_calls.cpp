// SPDX-License-Identifier: Zlib
// What the user of an episode does besides creating, moving and destroying: filters, planes, steps,
// the cache, other broad phases. See adapter_episode.h.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "adapter_episode.h"
#include "failing_new.h"

#include "migrateBroadphase.h"

namespace fuzz {

/// Group or mask; while a callback decides, sometimes its answers instead.
void Episode::changeFilter(bool mayChangeAnswers) {
  Client& client = any();
  const bool isGroup = bytes_.below(2) == 0;
  const std::uint32_t drawn = bytes_.byte();
  if (hasFilter() && mayChangeAnswers && drawn >= 64) return changeAnswers(drawn);
  if (isGroup)
    client.proxy->m_collisionFilterGroup = 1 << drawn % 4;
  else
    client.proxy->m_collisionFilterMask = static_cast<int>(drawn % 16);
  if (broadPhase_.options.announcedFilters) ours_->filterChanged(client.proxy);
  isStepped_ = false;
  if (hasFilter()) return;
  client.isUnsettled = true;
  leaveTwin(client);
  enterTwin(client);
}

/// Nobody is told of it. Mostly some turn from no to yes.
void Episode::changeAnswers(std::uint32_t how) {
  if (how % 4 != 0 && filter_.opened < 8) {
    ++filter_.opened;
  } else {
    filter_.opened = 0;
    filter_.of = static_cast<int>(2 + how / 4 % 3);
    onlyOpens_ = false;
  }
  isSilent_ = true;
}

/// The filter callback is set, removed, or changes its answers.
void Episode::changeCallback() {
  if (bytes_.below(2) == 0) {
    cache_->setOverlapFilterCallback(hasFilter() ? nullptr : &filter_);
    isExchanged_ = true;
  } else {
    filter_.of = static_cast<int>(2 + bytes_.below(3));
    ours_->refilter();
    isRefiltered_ = true;
  }
  isStepped_ = false;
  for (auto& [id, client] : clients_) client.isUnsettled = true;
  renewTwin();
}

void Episode::changePlane() {
  Client& client = any();
  isStepped_ = false;
  client.isUnsettled = true;
  if (bytes_.oneIn(4)) {
    ours_->clearPlane(client.proxy);
    client.plane.reset();
    return;
  }
  HalfSpace plane;
  for (int axis = 0; axis < 3; ++axis) plane.normal[axis] = btScalar(bytes_.below(5)) - 2;
  plane.constant = btScalar(bytes_.coordinate());
  require(ours_->setPlane(client.proxy, plane.normal, plane.constant), "no memory");
  client.plane = std::make_unique<HalfSpace>(plane);
}

/// All or none are created. A step delivers the pairs of ghosts that were missed when memory ran
/// out.
void Episode::createWithLittleMemory() {
  const std::uint32_t count = 1 + bytes_.below(3) * 200;
  const long allocations = bytes_.below(12);
  std::vector<Client> clients(count);
  std::vector<GpuLbvhNewProxy> objects(count);
  do {
    objects[0] = drawObject(clients[0]);
  } while (clients[0].isGhost() && !bytes_.atEnd());
  if (clients[0].isGhost()) return;          // it must not go unnoticed for good
  for (std::size_t i = 1; i < count; ++i) {  // Bullet's ghosts tell proxies by their objects
    clients[i].object = std::make_unique<btCollisionObject>();
    objects[i] = objects[0];
    objects[i].client = clients[i].object.get();
  }
  std::vector<btBroadphaseProxy*> proxies(count);
  bool isCreated = false;
  failing_new::callWith(allocations, [&] {
    isCreated =
        ours_->createProxies(objects.data(), static_cast<int>(count), proxies.data(), &dispatcher_);
  });
  if (isCreated && count > 1)
    ours_->destroyProxies(proxies.data(), static_cast<int>(count), &dispatcher_);
  if (isCreated && count > 1) lastId_ += static_cast<int>(count);
  if (isCreated && count == 1) {
    clients[0].isUnsettled = true;
    adopt(std::move(clients[0]), proxies[0], objects[0]);
  }
  afterChange();
}

/// A callback that was removed and set again between two steps is noticed only if ghosts were moved
/// in between. It matters only if its answers have changed, or if the user added a pair meanwhile
/// that it refuses.
void Episode::beforeStep() {
  if (!isExchanged_ || (!isSilent_ && edited_.empty())) return;
  ours_->refilter();
  isRefiltered_ = true;
}

void Episode::step() {
  beforeStep();
  ours_->calculateOverlappingPairs(&dispatcher_);
  stepIsDone();
}

/// A step fails because memory runs out or a filter callback throws. The next step delivers what it
/// did not. Not with edited pairs: nothing is promised for those.
void Episode::stepThatFails() {
  if (!edited_.empty()) return step();
  beforeStep();
  if (hasFilter() && bytes_.below(2) == 0) {
    filter_.answersLeft = static_cast<int>(1 + bytes_.below(6));
    bool hasThrown = false;
    try {
      ours_->calculateOverlappingPairs(&dispatcher_);
    } catch (const Thrown&) {
      hasThrown = true;
    }
    filter_.answersLeft = 0;
    isRefiltered_ = isRefiltered_ || hasThrown;
    return hasThrown ? afterFailure() : stepIsDone();
  }
  if (broadPhase_.options.threads != 1) return step();  // oneTBB's own memory must not fail
  const bool hasFailed = failing_new::callWith(
      bytes_.below(24), [this] { ours_->calculateOverlappingPairs(&dispatcher_); });
  if (!hasFailed || *ours_->error() == '\0') return stepIsDone();
  if (isSilent_) {  // it may have asked for some pairs
    ours_->refilter();
    isRefiltered_ = true;
  }
  afterFailure();
}

/// One call that a callback may make in the middle of another.
void Episode::meddle() {
  const std::uint32_t kind = bytes_.below(8);
  if (clients_.empty() || kind == 0) {
    Client client;
    const GpuLbvhNewProxy asked = drawObject(client);
    btBroadphaseProxy* proxy =
        ours_->createProxy(asked.aabbMin, asked.aabbMax, asked.shapeType, asked.client, asked.group,
                           asked.mask, &dispatcher_);
    return adopt(std::move(client), proxy, asked);
  }
  Client& client = any();
  const int id = client.id();
  switch (kind) {
    case 1:
    case 2:
      leaveTwin(client);
      ours_->destroyProxy(client.proxy, &dispatcher_);
      clients_.erase(id);
      return forgetPairsOf({id});
    case 3: {
      const Box box = drawBox(bytes_);
      setBox(client, box);
      return ours_->setAabb(client.proxy, box.min, box.max, &dispatcher_);
    }
    case 4:
      return changeFilter(false);
    case 5:
      ours_->refilter();
      isRefiltered_ = true;
      return;
    case 6:
      return changePlane();
    default:
      return query();
  }
}

/// A filter callback calls back. What it changed is not in this step's pairs, or is; the next step
/// is right. Not with edited pairs, as above.
void Episode::stepThatMeddles() {
  if (!edited_.empty() || !hasFilter()) return step();
  beforeStep();
  bool hasMeddled = false;
  filter_.answersLeft = static_cast<int>(1 + bytes_.below(4));
  filter_.meddle = [&](int a, int b) {
    hasMeddled = true;
    for (std::uint32_t left = 1 + bytes_.below(3); left > 0; --left) meddle();
    if (bytes_.oneIn(2)) filter_.answersLeft = static_cast<int>(1 + bytes_.below(4));
    return clients_.count(a) == 1 && clients_.count(b) == 1;
  };
  const bool mustAskAll = asksAnew();
  isRefiltered_ = false;
  const std::set<Key> before = std::exchange(stepPairs_, overlapping());
  std::set<int> mustAsk;
  for (auto& [id, client] : clients_)
    if (std::exchange(client.mustAsk, false)) mustAsk.insert(id);
  ours_->calculateOverlappingPairs(&dispatcher_);
  filter_.meddle = nullptr;
  filter_.answersLeft = 0;
  // A step that could be made has asked for all pairs, if it had to.
  if (hasMeddled && *ours_->error() == '\0') {
    lastFilter_ = cache_->getOverlapFilterCallback();
  } else {
    isRefiltered_ = isRefiltered_ || mustAskAll;
    stepPairs_ = before;
    for (auto& [id, client] : clients_) client.mustAsk = client.mustAsk || mustAsk.count(id) == 1;
  }
  return hasMeddled ? afterFailure() : stepIsDone();
}

/// A query's callback calls back.
void Episode::meddleInQuery() {
  struct Meddler : btBroadphaseAabbCallback {
    explicit Meddler(Episode& e) : episode(e) {}
    bool process(const btBroadphaseProxy* proxy) override {
      require(episode.clients_.count(proxy->m_uniqueId) == 1, "a query visited a dead proxy");
      if (visits++ % 2 == 0 && visits < 8) episode.meddle();
      return true;
    }
    Episode& episode;
    int visits = 0;
  } meddler(*this);
  const Box box = drawBox(bytes_);
  ours_->aabbTest(box.min, box.max, meddler);
  afterChange();
}

/// A pass over the pairs, as the narrow phase makes it, calls back.
void Episode::meddleInCache() {
  struct Meddler : btOverlapCallback {
    explicit Meddler(Episode& e) : episode(e) {}
    bool processOverlap(btBroadphasePair&) override {
      if (visits++ % 2 == 0 && visits < 8) episode.meddle();
      return false;
    }
    Episode& episode;
    int visits = 0;
  } meddler(*this);
  cache_->processAllOverlappingPairs(&meddler, &dispatcher_);
  afterChange();
}

/// Sometimes two threads query at the same time.
void Episode::query() {
  if (bytes_.oneIn(16)) {
    const std::vector<std::uint8_t> theirs = randomBytes(bytes_.byte(), 64);
    std::thread other([&] { checkQueries(*ours_, clients_, Bytes(theirs.data(), theirs.size())); });
    const std::vector<std::uint8_t> own = randomBytes(bytes_.byte(), 64);
    checkQueries(*ours_, clients_, Bytes(own.data(), own.size()));
    other.join();
  } else {
    std::uint8_t drawn[24];
    for (std::uint8_t& byte : drawn) byte = bytes_.byte();
    checkQueries(*ours_, clients_, Bytes(drawn, sizeof drawn));
  }
}

namespace {

struct Count : btOverlapCallback {
  bool processOverlap(btBroadphasePair&) override {
    if (++pairs == throwsAt) throw Thrown{};
    return false;
  }
  int pairs = 0, throwsAt = 0;
};

}  // namespace

/// Calls that leave the cache's pairs as they are.
void Episode::useCache() {
  if (bytes_.oneIn(3)) return editCache();
  btBroadphasePairArray& array = cache_->getOverlappingPairArray();
  btDispatcherInfo info;
  Count count;
  switch (bytes_.below(5)) {
    case 0:
      info.m_deterministicOverlappingPairs = bytes_.below(2) == 0;
      cache_->processAllOverlappingPairs(&count, &dispatcher_, info);
      require(count.pairs == (broadPhase_.kind == Cache::none ? 0 : array.size()),
              "not all were processed");
      break;
    case 1:
      count.throwsAt = static_cast<int>(1 + bytes_.below(8));
      try {
        cache_->processAllOverlappingPairs(&count, &dispatcher_);
      } catch (const Thrown&) {
      }
      break;
    case 2: {
      Client& client = any();
      cache_->cleanProxyFromPairs(client.proxy, &dispatcher_);
      client.mustAsk = client.mustAsk || broadPhase_.kind == Cache::own;
    } break;
    case 3:
      if (array.size() > 0)
        cache_->cleanOverlappingPair(
            array[static_cast<int>(bytes_.below(static_cast<std::uint32_t>(array.size())))],
            &dispatcher_);
      break;
    default:
      // Bullet's own takes pairs out and puts them back, which asks the filters.
      if (broadPhase_.kind == Cache::own || (isStepped_ && !isSilent_ && edited_.empty()))
        cache_->sortOverlappingPairs(&dispatcher_);
  }
  const Pairs now = readCache();
  require(now.size() == known_.size(), "the cache lost or made pairs");
  for (const auto& pair : now) require(known_.count(pair.first) == 1, "the cache made a pair");
  known_ = now;
  checkGhosts();
}

/// The user takes pairs away, and adds some.
void Episode::editCache() {
  if (broadPhase_.kind == Cache::sorted || broadPhase_.kind == Cache::none || isSilent_) return;
  Client &a = any(), &b = any();
  if (a.id() == b.id()) return;
  const Key key{std::min(a.id(), b.id()), std::max(a.id(), b.id())};
  const bool wasThere = known_.count(key) == 1;
  switch (bytes_.below(3)) {
    case 0: {
      btBroadphasePair* added = cache_->addOverlappingPair(a.proxy, b.proxy);
      require((added != nullptr) == isWanted(a, b) || wasThere, "the filter was not asked");
      require(cache_->addOverlappingPair(b.proxy, a.proxy) == added, "added twice");
      if (added != nullptr && !wasThere) edited_.insert(key);
      break;
    }
    case 1:
      cache_->removeOverlappingPair(b.proxy, a.proxy, &dispatcher_);
      require(cache_->findPair(a.proxy, b.proxy) == nullptr, "not removed");
      if (wasThere) edited_.insert(key);
      break;
    default:
      cache_->removeOverlappingPairsContainingProxy(a.proxy, &dispatcher_);
      a.mustAsk = a.mustAsk || broadPhase_.kind == Cache::own;
      for (const auto& [pair, algorithm] : known_)
        if (pair.first == a.id() || pair.second == a.id()) edited_.insert(pair);
  }
  known_ = readCache();
}

void Episode::resetPool() {
  ours_->resetPool(&dispatcher_);
  if (clients_.empty()) lastId_ = 0;
  Box all;
  ours_->getBroadphaseAabb(all.min, all.max);
  for (const auto& [id, client] : clients_)
    if (isOrdinary(client.box))
      for (int axis = 0; axis < 3; ++axis)
        require(!(all.min[axis] > client.box.min[axis] || all.max[axis] < client.box.max[axis]),
                "getBroadphaseAabb is too small");
}

/// To a new broad phase of this library, with other options and another cache.
void Episode::migrate() {
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (client->second.object) {
      ++client;
      continue;
    }
    // A proxy without an object does not travel.
    leaveTwin(client->second);
    ours_->destroyProxy(client->second.proxy, &dispatcher_);
    forgetPairsOf({client->first});
    client = clients_.erase(client);
  }
  BroadPhase next = makeBroadPhase();
  btCollisionWorld world(&dispatcher_, ours_, &configuration_);
  for (auto& [id, client] : clients_)
    world.getCollisionObjectArray().push_back(client.object.get());
  GpuLbvhBroadphase* old = ours_;
  require(
      migrateBroadphase(&world, next.adapter.get(), hasGhosts_ ? &ghostCallback_ : nullptr) == old,
      "another broad phase came back");
  world.getCollisionObjectArray().clear();  // or the world would destroy their proxies
  unshareCache();
  require(cache_->getNumOverlappingPairs() == 0, "pairs stayed behind");
  std::swap(broadPhase_, next);
  use(broadPhase_);
  shareCache();

  Clients moved;
  std::map<int, int> newIds;
  lastId_ = 0;
  stepPairs_.clear();
  edited_.clear();
  lastFilter_ = nullptr;
  isRefiltered_ = false;
  for (auto& [id, client] : clients_) leaveTwin(client);
  for (auto& [id, client] : clients_) {
    client.proxy = client.object->getBroadphaseHandle();
    require(client.proxy != nullptr && client.id() == ++lastId_, "the ids changed their order");
    client.fat = fattened(client.box);
    client.plane.reset();
    newIds[id] = lastId_;
    moved.emplace(lastId_, std::move(client));
  }
  clients_.swap(moved);
  renewTwin();
  Pairs known;  // a pair that both have keeps its algorithm
  for (const auto& [key, algorithm] : known_)
    known[{newIds.at(key.first), newIds.at(key.second)}] = algorithm;
  known_ = *ours_->error() == '\0' ? known : readCache();
  stepIsDone();
}

/// Only called; what it prints is discarded.
void Episode::printStats() {
  std::fflush(stdout);
  const int screen = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  ours_->printStats();
  std::fflush(stdout);
  dup2(screen, STDOUT_FILENO);
  close(screen);
  close(nowhere);
}

}  // namespace fuzz

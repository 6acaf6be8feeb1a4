// SPDX-License-Identifier: Zlib
// Implements the calls of an episode's user that concern filters, planes, steps, queries, the cache
// and migrations. See adapter_episode.h.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "adapter_episode.h"
#include "failing_new.h"

#include "migrateBroadphase.h"

namespace fuzz {

/// Changes a group or a mask. If there is a filter callback, it may change the callback's answers
/// instead.
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
  if (broadPhase_.isStrangers) return changeSilently();
  client.isUnsettled = true;
  leaveTwin(client);
  enterTwin(client);
}

/// Changes some of the callback's answers, usually from no to yes. Does not call the adapter.
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

/// Sets or removes the filter callback, or changes its answers and calls refilter().
void Episode::changeCallback() {
  if (bytes_.below(2) == 0) {
    cache_->setOverlapFilterCallback(hasFilter() ? nullptr : &filter_);
    if (broadPhase_.isStrangers) return changeSilently();
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
  require(ours_->setPlane(client.proxy, plane.normal, plane.constant), "setPlane failed");
  client.plane = std::make_unique<HalfSpace>(plane);
}

/// Creates proxies while memory may run out. Either all proxies are created, or none. If memory
/// runs out, pairs of ghosts may be missed. The next step finds those pairs.
void Episode::createWithLittleMemory() {
  const std::uint32_t count = 1 + bytes_.below(3) * 200;
  const long allocations = bytes_.below(12);
  std::vector<Client> clients(count);
  std::vector<GpuLbvhNewProxy> objects(count);
  do {
    objects[0] = drawObject(clients[0]);
  } while (clients[0].isGhost() && !bytes_.atEnd());
  if (clients[0].isGhost()) return;          // steps might never find the pairs of such a ghost
  for (std::size_t i = 1; i < count; ++i) {  // Bullet's ghosts identify proxies by object
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

/// Calls refilter() if the callback was set or removed since the last step, and this may matter.
/// If it was removed and set again, the adapter notices that only if ghosts were moved in between.
/// An unnoticed exchange matters only if the callback's answers have changed, or if the user has
/// edited pairs.
void Episode::beforeStep() {
  if (!isExchanged_ || (!isSilent_ && edited_.empty())) return;
  ours_->refilter();
  isRefiltered_ = true;
}

/// Runs a step, which also frees the algorithms of pairs that were removed without a dispatcher.
void Episode::calculatePairs(bool isRefiltered) {
  leftAlgorithms_ = 0;
  ours_->calculateOverlappingPairs(&dispatcher_);
  checkStrangersCalls(isRefiltered);
}

void Episode::step() {
  beforeStep();
  calculatePairs(isRefiltered_);
  stepIsDone();
}

/// Runs a step that may fail because memory runs out or a filter callback throws. The next step
/// must find what the failed step did not. If there are edited pairs, this is a normal step,
/// because nothing is promised for them.
void Episode::stepThatFails() {
  if (!edited_.empty()) return step();
  beforeStep();
  if (hasFilter() && bytes_.below(2) == 0) {
    filter_.answersLeft = static_cast<int>(1 + bytes_.below(6));
    bool hasThrown = false;
    try {
      calculatePairs(isRefiltered_);
    } catch (const Thrown&) {
      hasThrown = true;
    }
    filter_.answersLeft = 0;
    if (hasThrown) checkStrangersCalls(isRefiltered_);
    isInterrupted_ = hasThrown;
    isRefiltered_ = isRefiltered_ || (hasThrown && !broadPhase_.isStrangers);
    return hasThrown ? afterFailure() : stepIsDone();
  }
  if (broadPhase_.options.threads != 1) return step();  // oneTBB's own allocations must not fail
  const bool hasFailed =
      failing_new::callWith(bytes_.below(24), [this] { calculatePairs(isRefiltered_); });
  if (!hasFailed) return stepIsDone();
  if (*ours_->error() == '\0') {
    stepIsDone();
    // The step may have forgotten a pair that the filter refused. So the next step calls the filter
    // for all pairs.
    ours_->refilter();
    isRefiltered_ = true;
    return;
  }
  if (isSilent_) {  // the step may have called the filter for some pairs
    ours_->refilter();
    isRefiltered_ = true;
  }
  afterFailure();
}

/// Makes one of the calls that a callback may make.
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

/// Runs a step in which a filter callback calls the broad phase. The callback's changes may or may
/// not be in this step's pairs, but the next step must be right. With edited pairs this is a normal
/// step, as in stepThatFails().
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
  calculatePairs(mustAskAll);
  filter_.meddle = nullptr;
  filter_.answersLeft = 0;
  // If the step succeeded, it has called the filter for all pairs that needed a call.
  if (hasMeddled && *ours_->error() == '\0') {
    lastFilter_ = cache_->getOverlapFilterCallback();
  } else {
    isRefiltered_ = isRefiltered_ || mustAskAll;
    stepPairs_ = before;
    for (auto& [id, client] : clients_) client.mustAsk = client.mustAsk || mustAsk.count(id) == 1;
  }
  return hasMeddled ? afterFailure() : stepIsDone();
}

/// Runs a query whose callback calls the broad phase.
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

/// Visits the pairs with a callback that calls the broad phase. The narrow phase visits the pairs
/// in the same way.
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

/// Runs queries, sometimes on two threads at the same time.
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

/// Calls functions of the cache that leave its pairs unchanged.
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
              "not all pairs were processed");
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
      // To sort, Bullet's hashed cache removes all pairs and adds them again. This calls the
      // filter.
      if (broadPhase_.kind == Cache::own || (isStepped_ && !isSilent_ && edited_.empty()))
        cache_->sortOverlappingPairs(&dispatcher_);
  }
  const Pairs now = readCache();
  require(now.size() == known_.size(), "the cache lost or made pairs");
  for (const auto& pair : now) require(known_.count(pair.first) == 1, "the cache made a pair");
  known_ = now;
  checkGhosts();
}

/// The user adds or removes pairs.
void Episode::editCache() {
  if (broadPhase_.kind == Cache::sorted || broadPhase_.kind == Cache::none || isSilent_) return;
  Client &a = any(), &b = any();
  if (a.id() == b.id()) return;
  const Key key{std::min(a.id(), b.id()), std::max(a.id(), b.id())};
  const bool wasThere = known_.count(key) == 1;
  switch (bytes_.below(3)) {
    case 0: {
      btBroadphasePair* added = cache_->addOverlappingPair(a.proxy, b.proxy);
      require((added != nullptr) == isWanted(a, b) || wasThere, "the filter was not applied");
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

/// Moves the world to a new broad phase with other options and another cache.
void Episode::migrate() {
  if (leftAlgorithms_ > 0) step();  // a broad phase that is not used again does not free them
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (client->second.object) {
      ++client;
      continue;
    }
    // A proxy without an object is not migrated.
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
      "migrateBroadphase returned another broad phase");
  world.getCollisionObjectArray().clear();  // otherwise the world would destroy their proxies
  unshareCache();
  require(cache_->getNumOverlappingPairs() == 0, "the old cache still has pairs");
  std::swap(broadPhase_, next);
  use(broadPhase_);
  shareCache();

  Clients moved;
  std::map<int, int> newIds;
  lastId_ = 0;
  stepPairs_.clear();
  edited_.clear();
  lastFilter_ = nullptr;
  isRefiltered_ = true;  // a new broad phase applies its rule to all pairs
  if (broadPhase_.isStrangers) *broadPhase_.talk = {.returnsNull = broadPhase_.talk->returnsNull};
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
  Pairs known;  // pairs in both broad phases keep their algorithms
  for (const auto& [key, algorithm] : known_)
    known[{newIds.at(key.first), newIds.at(key.second)}] = algorithm;
  const bool isDone = *ours_->error() == '\0';
  known_ = isDone ? known : readCache();
  if (!isDone) ours_->refilter();  // the rule was applied to the pairs of ghosts only
  stepIsDone();
}

/// Calls printStats() and discards what it prints.
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

// SPDX-License-Identifier: Zlib
// The calls of an episode's user that create, move and destroy proxies. See adapter_episode.h.
#include "adapter_episode.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuzz {
namespace {

using Proxies = std::vector<btBroadphaseProxy*>;

/// Small pools, because the default ones are as large as the rest of an episode.
btDefaultCollisionConstructionInfo smallPools() {
  btDefaultCollisionConstructionInfo info;
  info.m_defaultMaxPersistentManifoldPoolSize = info.m_defaultMaxCollisionAlgorithmPoolSize = 16;
  return info;
}

/// Compares by value, so 0 equals -0, and a NaN equals nothing.
bool isSame(const Box& a, const Box& b) {
  bool isSame = true;
  for (int axis = 0; axis < 3; ++axis)
    isSame = isSame && a.min[axis] == b.min[axis] && a.max[axis] == b.max[axis];
  return isSame;
}

float roundedDown(btScalar x) {
  const auto f = static_cast<float>(x);
  return f > x ? std::nextafter(f, -std::numeric_limits<float>::infinity()) : f;
}

}  // namespace

Episode::Episode(Bytes& bytes)
    : bytes_(bytes), hasGhosts_(bytes.below(2) == 0), configuration_(smallPools()) {
  for (int i = 0; i < 2; ++i)
    strangeProxies_[i].m_uniqueId = kStrangeId + i,
    strangeProxies_[i].m_collisionFilterGroup = strangeProxies_[i].m_collisionFilterMask = -1,
    strangeProxies_[i].m_clientObject = &strangers_[i];
  gDbvtMargin = 0;
  twinFilter_.isWanted = [this](const Client& a, const Client& b) { return isWanted(a, b); };
  broadPhase_ = makeBroadPhase();
  use(broadPhase_);
  if (hasGhosts_) cache_->setInternalGhostPairCallback(&ghostCallback_);
  shareCache();
  renewTwin();
  if (bytes.oneIn(4)) changeCallback();
}

Episode::~Episode() {
  destroyAll();
  unshareCache();
  require(cache_->getNumOverlappingPairs() == 0, "pairs are left after all proxies were destroyed");
  require(Algorithm::alive == 0, "an algorithm leaked");
}

Episode::BroadPhase Episode::makeBroadPhase() {
  BroadPhase made;
  const std::uint32_t byte = bytes_.byte(), kind = byte % 8;
  made.options.announcedFilters = byte / 8 % 4 == 3;
  if (byte / 32 % 4 == 3) made.options.hierarchy = lbvh::Hierarchy::binary;
  made.kind = kind < 5 ? Cache::own : Cache(kind - 4);
  // Bullet's sorted cache does not report removals.
  if (hasGhosts_ && made.kind == Cache::sorted) made.kind = Cache::hashed;
  if (made.kind == Cache::hashed) made.handedIn = std::make_unique<btHashedOverlappingPairCache>();
  if (made.kind == Cache::sorted) made.handedIn = std::make_unique<btSortedOverlappingPairCache>();
  if (made.kind == Cache::none) made.handedIn = std::make_unique<btNullPairCache>();
  made.isStrangers = byte / 128 == 1 && (made.kind == Cache::hashed || made.kind == Cache::sorted);
  if (made.isStrangers) {
    made.talk = std::make_unique<strangers::Talk>();
    made.handedIn = strangers::makeDerived(made.kind == Cache::sorted, *made.talk);
    made.wrapper = strangers::wrap(*made.handedIn, *made.talk);
    made.talk->returnsNull = bytes_.oneIn(4);
  }
  btOverlappingPairCache* const given = made.isStrangers ? made.wrapper.get() : made.handedIn.get();
  made.options.backend = lbvh::Backend::host;
  const std::uint32_t more = bytes_.byte();
  made.options.threads = more % 8 == 7 ? 2 : 1;
  made.options.sortsPairs = more / 8 % 2 == 1;
  if (bytes_.oneIn(8)) made.options.maxPairs = 30;
  if (bytes_.oneIn(4)) made.options.margin = btScalar(0.25) * btScalar(1 + bytes_.below(4));
  made.isShared = made.handedIn && made.kind != Cache::none && bytes_.oneIn(4);
  if (hasGhosts_ && made.handedIn && bytes_.oneIn(4)) {  // uses the constructor without options
    made.options = {};
    made.adapter = std::make_unique<GpuLbvhBroadphase>(given);
  } else {
    made.options.cacheHasGhosts = hasGhosts_ || !made.isStrangers;
    made.adapter = std::make_unique<GpuLbvhBroadphase>(made.options, given);
  }
  return made;
}

void Episode::shareCache() {
  if (broadPhase_.isShared) cache_->addOverlappingPair(&strangeProxies_[0], &strangeProxies_[1]);
}

/// The pair of the other broad phase must still be there. Removes this pair, as its owner would.
void Episode::unshareCache() {
  if (!broadPhase_.isShared) return;
  require(cache_->getNumOverlappingPairs() == 1 &&
              cache_->getOverlappingPairArray()[0].m_pProxy0 == &strangeProxies_[0],
          "another broad phase's pair is gone");
  cache_->removeOverlappingPair(&strangeProxies_[0], &strangeProxies_[1], &dispatcher_);
  if (cache_->hasDeferredRemoval()) cache_->getOverlappingPairArray().clear();
  broadPhase_.isShared = false;
}

void Episode::use(BroadPhase& broadPhase) {
  ours_ = broadPhase.adapter.get();
  cache_ = ours_->getOverlappingPairCache();
  require(!broadPhase.handedIn || cache_ == broadPhase.handedIn.get() ||
              cache_ == broadPhase.wrapper.get(),
          "the adapter uses another cache than the given one");
  if (broadPhase.isStrangers) cache_ = broadPhase.handedIn.get();
}

void Episode::run() {
  while (!bytes_.atEnd()) act();
  step();
}

void Episode::act() {
  const std::uint32_t dice = bytes_.below(100);
  if (clients_.empty()) return dice < 90 ? create() : resetPool();
  if (dice < 25) return clients_.size() < 80 ? create() : destroy();
  if (dice < 32) return destroy();
  if (dice < 47) return move();
  if (dice < 50) return moveWhatAGhostSees();
  if (dice < 55) return changeFilter();
  if (dice < 58) return changeCallback();
  if (dice < 62) return changePlane();
  if (dice < 77) return step();
  if (dice < 79) return stepThatFails();
  if (dice < 82) return stepThatMeddles();
  if (dice < 83) return meddleInQuery();
  if (dice < 84) return meddleInCache();
  if (dice < 88) return query();
  if (dice < 95) return useCache();
  if (dice < 97) return migrate();
  if (dice < 98) return createWithLittleMemory();
  if (dice < 99) return resetPool();
  if (bytes_.oneIn(8)) return printStats();
  destroyAll();
}

Client& Episode::any() {
  auto client = clients_.begin();
  std::advance(client, bytes_.below(static_cast<std::uint32_t>(clients_.size())));
  return client->second;
}

GpuLbvhNewProxy Episode::drawObject(Client& client) {
  const std::uint32_t kind = bytes_.below(16);
  if (kind < 2) client.object = std::make_unique<btGhostObject>();
  if (kind == 2) client.object = std::make_unique<btPairCachingGhostObject>();
  // Bullet's ghost callback does not expect a proxy without an object.
  if (kind > 3 || (kind == 3 && hasGhosts_)) client.object = std::make_unique<btCollisionObject>();
  if (client.object) client.object->setCollisionShape(&shape_);
  const Box box = drawBox(bytes_);
  const int mask = bytes_.below(2) == 0 ? -1 : static_cast<int>(bytes_.below(16));
  return {box.min, box.max, SPHERE_SHAPE_PROXYTYPE, client.object.get(), 1 << bytes_.below(4),
          mask};
}

/// Adds a new object to the model and to the twin.
void Episode::adopt(Client client, btBroadphaseProxy* proxy, const GpuLbvhNewProxy& asked) {
  const int chosen = std::exchange(chosenId_, 0);
  require(proxy->m_uniqueId == (chosen != 0 ? chosen : lastId_ + 1), "ids do not count up");
  lastId_ = std::max(lastId_, proxy->m_uniqueId);
  require(reinterpret_cast<std::uintptr_t>(proxy) % 16 == 0, "an address is not aligned");
  require(proxy->m_clientObject == asked.client && proxy->m_collisionFilterGroup == asked.group &&
              proxy->m_collisionFilterMask == asked.mask,
          "a proxy does not have the values it was created with");
  client.proxy = proxy;
  if (client.object) client.object->setBroadphaseHandle(proxy);
  client.box = {asked.aabbMin, asked.aabbMax};
  client.fat = fattened(client.box);
  Client& placed = clients_.emplace(proxy->m_uniqueId, std::move(client)).first->second;
  enterTwin(placed);
}

/// Chooses the next unique id, which may be one that an object has, had, or never had.
void Episode::chooseId() {
  const int id = static_cast<int>(bytes_.below(static_cast<std::uint32_t>(lastId_) + 4));
  const bool isFree = clients_.count(id) == 0;
  require(ours_->setNextUniqueId(id) == isFree, "setNextUniqueId is wrong");
  chosenId_ = isFree ? id : 0;
}

/// Creates one proxy, or many with one call.
void Episode::create() {
  const std::uint32_t byte = bytes_.byte();
  const std::uint32_t count = byte % 4 == 3 ? 2 + bytes_.below(8) : 1;
  if (byte / 4 % 8 == 7) chooseId();
  std::vector<Client> clients(count);
  std::vector<GpuLbvhNewProxy> objects;
  for (Client& client : clients) objects.push_back(drawObject(client));
  Proxies proxies(count);
  const GpuLbvhNewProxy& one = objects[0];
  if (count > 1)
    require(
        ours_->createProxies(objects.data(), static_cast<int>(count), proxies.data(), &dispatcher_),
        "createProxies failed");
  else
    proxies[0] = ours_->createProxy(one.aabbMin, one.aabbMax, one.shapeType, one.client, one.group,
                                    one.mask, &dispatcher_);
  for (std::size_t i = 0; i < count; ++i) adopt(std::move(clients[i]), proxies[i], objects[i]);
  afterChange();
}

void Episode::forgetPairsOf(const std::set<int>& ids) {
  const auto isGone = [&](const Key& key) {
    return ids.count(key.first) == 1 || ids.count(key.second) == 1;
  };
  std::erase_if(known_, [&](const auto& pair) { return isGone(pair.first); });
  std::erase_if(stepPairs_, isGone);
  std::erase_if(edited_, isGone);
}

void Episode::destroy() {
  const bool isBulk = bytes_.oneIn(4);
  std::set<int> ids;
  for (std::uint32_t left = isBulk ? bytes_.below(10) : 1; left > 0; --left) ids.insert(any().id());
  Proxies proxies;
  for (const int id : ids) {
    proxies.push_back(clients_.at(id).proxy);
    leaveTwin(clients_.at(id));
  }
  btDispatcher* const dispatcher = maybeNoDispatcher();
  for (const auto& [key, algorithm] : known_)
    if (dispatcher == nullptr && algorithm != nullptr)
      leftAlgorithms_ += ids.count(key.first) == 1 || ids.count(key.second) == 1;
  if (isBulk)
    ours_->destroyProxies(proxies.data(), static_cast<int>(proxies.size()), dispatcher);
  else
    ours_->destroyProxy(proxies[0], dispatcher);
  for (const int id : ids) clients_.erase(id);
  forgetPairsOf(ids);
  afterChange();
}

void Episode::destroyAll() {
  for (auto& [id, client] : clients_) {
    leaveTwin(client);
    ours_->destroyProxy(client.proxy, &dispatcher_);
    client.object.reset();
  }
  clients_.clear();
  known_.clear();
  stepPairs_.clear();
  edited_.clear();
  isStepped_ = false;
}

void Episode::move() {
  Proxies proxies;
  std::vector<btVector3> mins, maxs;
  for (std::uint32_t left = bytes_.oneIn(4) ? 1 + bytes_.below(8) : 1; left > 0; --left) {
    Client& client = any();
    Box box = client.box;
    const std::uint32_t kind = bytes_.below(4);
    if (kind == 0) box = drawBox(bytes_);
    if (kind == 1)
      box = {box.min + btVector3(btScalar(0.5), 0, 0), box.max + btVector3(btScalar(0.5), 0, 0)};
    if (kind == 2) box = {box.min - btVector3(0, btScalar(0.25), 0), box.max - btVector3(0, 0, 1)};
    setBox(client, box);
    proxies.push_back(client.proxy);
    mins.push_back(box.min);
    maxs.push_back(box.max);
  }
  if (proxies.size() > 1)
    ours_->setAabbs(proxies.data(), mins.data(), maxs.data(), static_cast<int>(proxies.size()),
                    &dispatcher_);
  else
    ours_->setAabb(proxies[0], mins[0], maxs[0], maybeNoDispatcher());
  Box now;
  ours_->getAabb(proxies.back(), now.min, now.max);
  for (int axis = 0; axis < 3; ++axis) {
    // The boxes are compared by value, because a box that differs only in the sign of a zero is not
    // written again.
    const btScalar is = now.min[axis], was = mins.back()[axis];
    require(is == was || (is != is && was != was), "not the box that was set last");
  }
  afterChange();
}

/// The user moves the objects in a ghost's list one by one. During these moves the list must not
/// shrink.
void Episode::moveWhatAGhostSees() {
  Client& client = any();
  if (!hasGhosts_ || !client.isGhost()) return move();
  auto& ghost = static_cast<btGhostObject&>(*client.object);
  for (int i = 0, all = ghost.getNumOverlappingObjects(); i < all; ++i) {
    require(i < ghost.getNumOverlappingObjects(), "a ghost's list shrinks between two steps");
    Client& seen = clients_.at(ghost.getOverlappingObject(i)->getBroadphaseHandle()->m_uniqueId);
    const Box box = drawBox(bytes_);
    setBox(seen, box);
    ours_->setAabb(seen.proxy, box.min, box.max, nullptr);
  }
  afterChange();
}

/// Sets a box in the model and in the twin.
void Episode::setBox(Client& client, const Box& box) {
  if (isSame(client.box, box)) return;
  client.mustAsk = true;
  client.box = box;
  bool isInside = broadPhase_.options.margin > 0;
  for (int axis = 0; axis < 3; ++axis)
    isInside =
        isInside && client.fat.min[axis] <= box.min[axis] && box.max[axis] <= client.fat.max[axis];
  if (!isInside) client.fat = fattened(box);
  if (client.twin != nullptr && isOrdinary(box)) {
    twin_.setAabb(client.twin, box.min, box.max, &dispatcher_);
  } else {
    leaveTwin(client);
    enterTwin(client);
  }
}

/// The box with its margin. The box is rounded outward if Bullet has double precision.
lbvh::Aabb Episode::fattened(const Box& box) const {
  const btScalar margin = broadPhase_.options.margin;
  lbvh::Aabb fat{};
  for (int axis = 0; axis < 3; ++axis) {
    fat.min[axis] = roundedDown(box.min[axis] - margin);
    fat.max[axis] = -roundedDown(-(box.max[axis] + margin));
  }
  return fat;
}

void Episode::enterTwin(Client& client) {
  if (!isOrdinary(client.box)) return;
  client.twin = twin_.createProxy(client.box.min, client.box.max, SPHERE_SHAPE_PROXYTYPE, &client,
                                  client.group(), client.mask(), &dispatcher_);
}

void Episode::leaveTwin(Client& client) {
  if (client.twin != nullptr) twin_.destroyProxy(client.twin, &dispatcher_);
  client.twin = nullptr;
}

/// Recreates the twin's proxies, because btDbvtBroadphase calls filters only when a box changes.
void Episode::renewTwin() {
  twin_.getOverlappingPairCache()->setOverlapFilterCallback(asksOnce() ? &twinFilter_ : nullptr);
  for (auto& [id, client] : clients_) leaveTwin(client);
  for (auto& [id, client] : clients_) enterTwin(client);
  onlyOpens_ = true;
}

}  // namespace fuzz

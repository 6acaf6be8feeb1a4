// SPDX-License-Identifier: Zlib
// An episode of the adapter's fuzz target has one broad phase, a model of it, and a
// btDbvtBroadphase (the twin), which gets the same calls. The user's calls are in
// adapter_episode.cpp and adapter_calls.cpp, the checks against brute force in adapter_checks.cpp.
#pragma once

#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "GpuLbvhBroadphase.h"
#include "adapter_boxes.h"
#include "no_algorithm.h"
#include "strangers_caches.h"
#include "target.h"

/// The margin by which btDbvtBroadphase fattens boxes.
extern btScalar gDbvtMargin;

namespace fuzz {

using Key = std::pair<int, int>;  // two unique ids, the smaller one first

/// The algorithm of a pair (m_algorithm). The class counts its existing instances.
struct Algorithm : NoAlgorithm {
  Algorithm() { ++alive; }
  ~Algorithm() override { --alive; }
  static inline int alive = 0;
};

struct HalfSpace {
  btVector3 normal{0, 0, 0};
  btScalar constant = 0;
};

/// A proxy with its object, if it has one, and what the test knows about them. The object is freed
/// as soon as its proxy is destroyed.
struct Client {
  std::unique_ptr<btCollisionObject> object;  ///< null if the proxy has none
  btBroadphaseProxy* proxy = nullptr;
  btBroadphaseProxy* twin = nullptr;  ///< proxy in the twin, only while isOrdinary(box)
  Box box;
  lbvh::Aabb fat{};  ///< the box as the finder knows it
  std::unique_ptr<HalfSpace> plane;
  bool isUnsettled = false;  ///< its filter or plane changed; the next step updates its pairs
  bool mustAsk = true;       ///< the box changed or its pairs were cleaned since the last step

  int id() const { return proxy->m_uniqueId; }
  int group() const { return proxy->m_collisionFilterGroup; }
  int mask() const { return proxy->m_collisionFilterMask; }
  bool isGhost() const { return object && btGhostObject::upcast(object.get()) != nullptr; }
};

struct Thrown {};

/// A filter callback of the user. It may change its answers, throw, and change the world.
struct NotMultiples : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    const int first = a->m_uniqueId, second = b->m_uniqueId;
    if (answersLeft > 0 && --answersLeft == 0) {
      if (!meddle) throw Thrown{};
      if (!meddle(first, second)) return false;  // one of them was destroyed
    }
    return accepts(first, second);
  }
  bool accepts(int a, int b) const { return (a + b) % of != 0 || (a + b) / of % 8 < opened; }
  int of = 3;
  int opened = 0;                        ///< the greater it is, the more pairs are accepted
  mutable int answersLeft = 0;           ///< answers until it throws or meddles; 0: never
  std::function<bool(int, int)> meddle;  ///< false if it destroyed one of the two
};

/// The filter of the twin, whose proxies have a Client as their client object.
struct TwinFilter : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    return isWanted(*static_cast<Client*>(a->m_clientObject),
                    *static_cast<Client*>(b->m_clientObject));
  }
  std::function<bool(const Client&, const Client&)> isWanted;
};

/// The life of a broad phase. A migration replaces the broad phase by one with other options.
class Episode {
 public:
  explicit Episode(Bytes& bytes);
  ~Episode();
  void run();

 private:
  enum class Cache { own, hashed, sorted, none };
  using Pairs = std::map<Key, btCollisionAlgorithm*>;
  using Clients = std::map<int, Client>;  // the key is the unique id
  /// A broad phase, and its cache if the broad phase does not own the cache.
  struct BroadPhase {
    Cache kind = Cache::own;
    bool isShared = false;     ///< the cache has a pair of another broad phase
    bool isStrangers = false;  ///< the cache is of a stranger's class (strangers_caches.h)
    GpuLbvhOptions options;
    std::unique_ptr<strangers::Talk> talk;  ///< shared with the stranger's cache
    std::unique_ptr<btOverlappingPairCache> handedIn;
    std::unique_ptr<btOverlappingPairCache> wrapper;  ///< of a stranger's class, around `handedIn`
    std::unique_ptr<GpuLbvhBroadphase> adapter;
  };

  BroadPhase makeBroadPhase();
  void shareCache();
  void unshareCache();
  void use(BroadPhase& broadPhase);
  void act();

  // The user's calls.
  void chooseId();
  void create();
  void createWithLittleMemory();
  void destroy();
  void destroyAll();
  void move();
  void moveWhatAGhostSees();
  void changeFilter(bool mayChangeAnswers = true);
  void changeCallback();
  void changeAnswers(std::uint32_t how);
  void changePlane();
  void beforeStep();
  void step();
  void stepThatFails();
  void stepThatMeddles();
  void meddleInQuery();
  void meddleInCache();
  void meddle();
  void query();
  void useCache();
  void editCache();
  void resetPool();
  void migrate();
  void printStats();

  // The model.
  Client& any();
  GpuLbvhNewProxy drawObject(Client& client);
  void adopt(Client client, btBroadphaseProxy* proxy, const GpuLbvhNewProxy& asked);
  void setBox(Client& client, const Box& box);
  lbvh::Aabb fattened(const Box& box) const;
  void forgetPairsOf(const std::set<int>& ids);
  void enterTwin(Client& client);
  void leaveTwin(Client& client);
  void renewTwin();
  bool isAbove(const Client& client, const Client& plane) const;
  bool overlaps(const Client& a, const Client& b) const;
  bool isWanted(const Client& a, const Client& b) const;
  std::set<Key> overlapping() const;
  bool isExpected(const Key& key, const Client& a, const Client& b) const;
  /// Whether the next step applies the rule to all pairs, also to pairs that the user removed.
  bool asksAnew() const {
    return isRefiltered_ ||
           (!broadPhase_.isStrangers && cache_->getOverlapFilterCallback() != lastFilter_);
  }
  bool hasFilter() const { return cache_->getOverlapFilterCallback() != nullptr; }
  /// Whether pairs are accepted or refused only when they are offered to the cache. If not, each
  /// step reads the groups and masks.
  bool asksOnce() const { return broadPhase_.isStrangers || hasFilter(); }
  void changeSilently() {
    isSilent_ = true;
    onlyOpens_ = false;
  }
  bool isGhosts(const Key& key) const;

  // The checks.
  Pairs readCache() const;
  std::size_t countFound() const;
  void checkPairs();
  void checkOrder() const;
  bool checkEdited(const Key& key, bool isThere, bool isExpected, bool overlapsNow);
  void stepIsDone();
  void afterChange();
  void afterFailure();
  void checkGhosts() const;
  void checkStrangersCalls(bool isRefiltered) const;
  void calculatePairs(bool isRefiltered);
  btDispatcher* maybeNoDispatcher() { return lastId_ % 2 == 0 ? nullptr : &dispatcher_; }
  void checkTwin();
  void checkTwinsPairs() const;

  Bytes& bytes_;
  const bool hasGhosts_;
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_{&configuration_};
  btGhostPairCallback ghostCallback_;
  NotMultiples filter_;
  TwinFilter twinFilter_;
  btSphereShape shape_{1};
  btCollisionObject strangers_[2];  ///< objects of another broad phase in a shared cache
  btBroadphaseProxy strangeProxies_[2];
  BroadPhase broadPhase_;
  GpuLbvhBroadphase* ours_ = nullptr;
  btOverlappingPairCache* cache_ = nullptr;
  btDbvtBroadphase twin_;
  Clients clients_;
  Pairs known_;              ///< the cache's content, as the user knows it
  std::set<Key> stepPairs_;  ///< overlaps in the last step, before filter callbacks
  std::set<Key> edited_;     ///< pairs that the user removed or added
  const btOverlapFilterCallback* lastFilter_ = nullptr;  ///< filter callback of the last step
  bool isExchanged_ = false;    ///< the callback was set or removed since the last step
  bool isRefiltered_ = false;   ///< refilter() was called since the last step
  bool isInterrupted_ = false;  ///< the last step failed, so the next offers all pairs
  bool isSilent_ = false;       ///< answers changed since the filter was last called for all pairs
  bool onlyOpens_ = true;  ///< since the twin was renewed, answers have changed only from no to yes
  bool isStepped_ = true;  ///< nothing has changed since the last step
  int lastId_ = 0;         ///< the largest id that was given
  int chosenId_ = 0;       ///< id of the next object; 0: none was chosen
  /// Number of algorithms of pairs that were removed without a dispatcher since the last step.
  int leftAlgorithms_ = 0;
};

/// The first id of another broad phase's proxies. No filter of an episode refuses their pair.
constexpr int kStrangeId = 1080000;
static_assert((2 * kStrangeId + 1) % 12 == 1);

/// Checks a box query and a ray query against brute force. `bytes` is a copy, so that this can run
/// on another thread.
template <class Clients>
void checkQueries(GpuLbvhBroadphase& ours, const Clients& clients, Bytes bytes);

}  // namespace fuzz

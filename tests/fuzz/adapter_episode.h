// SPDX-License-Identifier: Zlib
// An episode of the adapter's target: one broad phase, what its user knows of it, and a twin of
// Bullet's that gets the same calls. What the user does: adapter_episode.cpp and adapter_calls.cpp;
// what is compared with brute force: adapter_checks.cpp.
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
#include "target.h"

/// btDbvtBroadphase fattens boxes by it.
extern btScalar gDbvtMargin;

namespace fuzz {

using Key = std::pair<int, int>;  // of unique ids, the smaller first

/// What lies in a pair's m_algorithm, counted.
struct Algorithm : NoAlgorithm {
  Algorithm() { ++alive; }
  ~Algorithm() override { --alive; }
  static inline int alive = 0;
};

struct HalfSpace {
  btVector3 normal{0, 0, 0};
  btScalar constant = 0;
};

/// An object of the user's, freed as soon as its proxy is destroyed, and what is known of it.
struct Client {
  std::unique_ptr<btCollisionObject> object;  ///< a proxy may have none
  btBroadphaseProxy* proxy = nullptr;
  btBroadphaseProxy* twin = nullptr;  ///< in Bullet's own broad phase; only while isOrdinary(box)
  Box box;
  lbvh::Aabb fat{};  ///< as the finder knows it
  std::unique_ptr<HalfSpace> plane;
  bool isUnsettled =
      false;            ///< filter or plane changed: its pairs wait for the step, also a ghost's
  bool mustAsk = true;  ///< since the last step: another box, or its pairs were cleaned

  int id() const { return proxy->m_uniqueId; }
  int group() const { return proxy->m_collisionFilterGroup; }
  int mask() const { return proxy->m_collisionFilterMask; }
  bool isGhost() const { return object && btGhostObject::upcast(object.get()) != nullptr; }
};

struct Thrown {};

/// A filter of the user's own, which may change its mind, may throw, and may change the world.
struct NotMultiples : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    const int first = a->m_uniqueId, second = b->m_uniqueId;
    if (answersLeft > 0 && --answersLeft == 0) {
      if (!meddle) throw Thrown{};
      if (!meddle(first, second)) return false;  // one of them is no more
    }
    return accepts(first, second);
  }
  bool accepts(int a, int b) const { return (a + b) % of != 0 || (a + b) / of % 8 < opened; }
  int of = 3;
  int opened = 0;                        ///< the more, the more it accepts
  mutable int answersLeft = 0;           ///< then it throws or meddles; 0: never
  std::function<bool(int, int)> meddle;  ///< false if it destroyed one of the two
};

/// The same for the twin, whose proxies' clients are Client.
struct TwinFilter : btOverlapFilterCallback {
  explicit TwinFilter(const NotMultiples& f) : filter(f) {}
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    return filter.accepts(static_cast<Client*>(a->m_clientObject)->id(),
                          static_cast<Client*>(b->m_clientObject)->id());
  }
  const NotMultiples& filter;
};

/// One broad phase with one set of options, from birth to death; a migration gives it another.
class Episode {
 public:
  explicit Episode(Bytes& bytes);
  ~Episode();
  void run();

 private:
  enum class Cache { own, hashed, sorted, none };
  using Pairs = std::map<Key, btCollisionAlgorithm*>;
  using Clients = std::map<int, Client>;  // by unique id
  /// A broad phase, and the cache that it may not own.
  struct BroadPhase {
    Cache kind = Cache::own;
    bool isShared = false;  ///< the cache has a pair of another broad phase's
    GpuLbvhOptions options;
    std::unique_ptr<btOverlappingPairCache> handedIn;
    std::unique_ptr<GpuLbvhBroadphase> adapter;
  };

  BroadPhase makeBroadPhase();
  void shareCache();
  void unshareCache();
  void use(BroadPhase& broadPhase);
  void act();

  // What the user does.
  void create();
  void createWithLittleMemory();
  void destroy();
  void destroyAll();
  void move();
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
  void removeAndAdd(const btBroadphasePair& pair);
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
  /// The next step asks the filters for all pairs, also those that the user removed.
  bool asksAnew() const {
    return isRefiltered_ || cache_->getOverlapFilterCallback() != lastFilter_;
  }
  bool hasFilter() const { return cache_->getOverlapFilterCallback() != nullptr; }
  bool isGhosts(const Key& key) const;

  // What is compared.
  Pairs readCache() const;
  std::size_t countFound() const;
  void checkPairs();
  bool checkEdited(const Key& key, bool isThere, bool isExpected, bool overlapsNow);
  void stepIsDone();
  void afterChange();
  void afterFailure();
  void checkGhosts() const;
  void checkTwin();
  void checkTwinsPairs() const;

  Bytes& bytes_;
  const bool hasGhosts_;
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_{&configuration_};
  btGhostPairCallback ghostCallback_;
  NotMultiples filter_;
  TwinFilter twinFilter_{filter_};
  btSphereShape shape_{1};
  btCollisionObject strangers_[2];  ///< of another broad phase, in a cache that is shared
  btBroadphaseProxy strangeProxies_[2];
  BroadPhase broadPhase_;
  GpuLbvhBroadphase* ours_ = nullptr;
  btOverlappingPairCache* cache_ = nullptr;
  btDbvtBroadphase twin_;
  Clients clients_;
  Pairs known_;              ///< the cache's content, as the user knows it
  std::set<Key> stepPairs_;  ///< what overlapped at the last step, filter callbacks aside
  std::set<Key> edited_;     ///< pairs that the user removed or added himself
  const btOverlapFilterCallback* lastFilter_ = nullptr;  ///< of the last step
  bool isExchanged_ = false;   ///< the filter callback, since the last step
  bool isRefiltered_ = false;  ///< since then
  bool isSilent_ = false;      ///< since the filters were asked for all pairs, answers have changed
  bool onlyOpens_ = true;      ///< since the twin was renewed, answers have only turned to yes
  bool isStepped_ = true;      ///< nothing has changed since the last step
  int lastId_ = 0;
};

/// Of strangers: no filter of an episode refuses a pair of them.
constexpr int kStrangeId = 1080000;
static_assert((2 * kStrangeId + 1) % 12 == 1);

/// What each ray or box query visits must be what brute force finds; draws from its own bytes, so
/// that it can run on a thread.
template <class Clients>
void checkQueries(GpuLbvhBroadphase& ours, const Clients& clients, Bytes bytes);

}  // namespace fuzz

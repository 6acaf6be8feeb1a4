// An episode of adapter_soak: one broad phase, what its user knows of it, and what is compared with
// brute force (soak_checks.cpp). Does not decide when to stop (adapter_soak.cpp).
#pragma once

#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "GpuLbvhBroadphase.h"
#include "no_algorithm.h"
#include "soak_boxes.h"
#include "twins.h"

namespace soak {

using twins::overlap;
using twins::wanted;
using Key = std::pair<int, int>;  // of clients' numbers, the smaller first

inline std::uint32_t seed = 1;
inline int operation = 0;

/// Not assert: it must not depend on the build.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s; operation %d of --seed %u --episodes 1\n", what, operation, seed);
  std::exit(1);
}

/// What lies in a pair's m_algorithm, counted.
struct Algorithm : NoAlgorithm {
  Algorithm() { ++alive; }
  ~Algorithm() override { --alive; }
  static inline int alive = 0;
};

/// An object of the user's, freed as soon as its proxy is destroyed.
struct Client {
  std::unique_ptr<btCollisionObject> object;
  btBroadphaseProxy* proxy = nullptr;
};

inline bool isGhost(const Client& client) {
  return btGhostObject::upcast(client.object.get()) != nullptr;
}

inline int numberOf(const btBroadphaseProxy* proxy) {
  return static_cast<const btCollisionObject*>(proxy->m_clientObject)->getUserIndex();
}

inline Key keyOf(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return {std::min(numberOf(a), numberOf(b)), std::max(numberOf(a), numberOf(b))};
}

/// A filter of the user's own, which may change its mind.
struct NotMultiples : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    return (numberOf(a) + numberOf(b)) % of != 0;
  }
  int of = 3;
};

/// One broad phase with one set of options, from birth to death.
class Episode {
 public:
  explicit Episode(Random& random);
  ~Episode();
  void run(int operations);

 private:
  enum class Cache { own, hashed, sorted, none };
  using Pairs = std::map<Key, btCollisionAlgorithm*>;

  static btOverlappingPairCache* makeCache(Cache kind);
  void act();
  void create();
  void destroy();
  void move();
  void changeFilter();
  void changeCallback();
  void step();
  void query();
  void useCache();
  void resetPool();

  void checkStep();
  void afterChange();
  void checkGhosts();
  Pairs readCache();
  bool isWanted(const btBroadphaseProxy* a, const btBroadphaseProxy* b) const;
  Client& any();

  Random& random_;
  Cache kind_;
  bool hasGhosts_;
  std::uint64_t maxPairs_;
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_{&configuration_};
  btGhostPairCallback ghostCallback_;
  NotMultiples filter_;
  std::unique_ptr<btOverlappingPairCache> handedIn_;
  std::unique_ptr<GpuLbvhBroadphase> ours_;
  btOverlappingPairCache* cache_;
  std::map<int, Client> clients_;
  Pairs known_;                 ///< the cache's content, as the user knows it
  bool isStepped_ = true;       ///< nothing has changed since the last step
  bool areFiltersRead_ = true;  ///< no filter has changed since
  int lastNumber_ = 0, lastId_ = 0;
};

}  // namespace soak

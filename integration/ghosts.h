// Ghost objects, whose pairs must be right between two steps: who moves a btGhostObject may read
// what it overlaps in the next line, as btKinematicCharacterController does. Knows which proxies
// are ghosts, and gives and takes their pairs at once; all other pairs wait for the step. Not
// installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btDbvt.h>

#include <cstddef>
#include <vector>

#include "exact_pairs.h"
#include "pair_sink.h"
#include "proxies.h"
#include "queries.h"

class btDispatcher;

class GpuLbvhGhosts {
 public:
  GpuLbvhGhosts(const GpuLbvhProxies& proxies, GpuLbvhQueries& queries, GpuLbvhPairSink& sink)
      : m_proxies(proxies), m_queries(queries), m_sink(sink) {}

  /// Only with a ghost pair callback clients are known to be btCollisionObjects, and are read.
  /// To be told before each of the calls below.
  void setCallbackIsThere(bool isThere);

  /// The proxy is new.
  void created(GpuLbvhProxy* proxy);
  /// The proxy had the box `before`. A query of the ghosts; for a ghost one of all boxes, or, where
  /// that would have to build a tree or boxes are fattened, a test of each.
  void moved(GpuLbvhProxy* proxy, const lbvh::Aabb& before, btDispatcher* dispatcher);
  void destroyed(GpuLbvhProxy* proxy);
  /// There are no proxies, and slots and unique ids begin anew.
  void reset() {
    m_early.clear();
    m_settling.clear();
  }

  /// The step's pairs are found: what callbacks move from now on is behind them.
  void beginStep() { m_settling.swap(m_early); }
  /// After a step: what was given or taken before it now follows the step's pairs, which know of
  /// filters that were changed since.
  void settle(const GpuLbvhExactPairs& pairs, btDispatcher* dispatcher);

 private:
  struct Ghost {
    GpuLbvhProxy* proxy;
    btDbvtNode* leaf;  ///< null while the box has a NaN
  };

  void setGhost(GpuLbvhProxy* proxy);
  void placeLeaf(Ghost& ghost);
  void findPartners(const GpuLbvhProxy* proxy, const lbvh::Aabb& before);
  void findAmongAll(const lbvh::Aabb& box);
  void findAmongGhosts(const lbvh::Aabb& box);
  void update(GpuLbvhProxy* proxy, const lbvh::Aabb& before, btDispatcher* dispatcher);
  bool noteEarly(lbvh::Pair pair);
  void follow(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher);

  const GpuLbvhProxies& m_proxies;
  GpuLbvhQueries& m_queries;
  GpuLbvhPairSink& m_sink;
  std::vector<Ghost> m_ghosts;
  btDbvt m_tree;  // of the ghosts: they are few, and their leaves move one by one
  std::vector<GpuLbvhProxy*> m_partners;  // of the proxy at hand: they overlap it, or did
  std::vector<lbvh::Pair> m_early;        // pairs given or taken since the last step's pairs
  std::vector<lbvh::Pair> m_settling;     // those that the step at hand decides
  bool m_callbackIsThere = false;
};

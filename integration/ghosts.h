// Ghost objects, whose pairs must be right between two steps: who moves a btGhostObject may read
// what it overlaps in the next line, as btKinematicCharacterController does. Knows which proxies
// are ghosts, and gives and takes their pairs at once; all other pairs wait for the step. Not
// installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btDbvt.h>

#include <cstddef>
#include <vector>

#include "exact_pairs.h"
#include "proxies.h"
#include "queries.h"

class btDispatcher;
class btOverlappingPairCache;

class GpuLbvhGhosts {
 public:
  GpuLbvhGhosts(const GpuLbvhProxies& proxies, GpuLbvhQueries& queries)
      : m_proxies(proxies), m_queries(queries) {}

  /// Only with a ghost pair callback clients are known to be btCollisionObjects, and are read.
  /// To be told before each of the calls below.
  void setCallbackIsThere(bool isThere);

  /// The proxy is new.
  void created(GpuLbvhProxy* proxy, btOverlappingPairCache& cache);
  /// The proxy had the box `before`. A query of the ghosts; for a ghost one of all boxes, or, where
  /// that would have to build a tree or boxes are fattened, a test of each.
  void moved(GpuLbvhProxy* proxy, const lbvh::Aabb& before, btOverlappingPairCache& cache,
             btDispatcher* dispatcher);
  void destroyed(GpuLbvhProxy* proxy);

  /// After a step: what was given or taken early now follows the step's pairs, which know of
  /// filters that were changed since.
  void settle(const GpuLbvhExactPairs& pairs, btOverlappingPairCache& cache,
              btDispatcher* dispatcher);

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
  void update(GpuLbvhProxy* proxy, const lbvh::Aabb& before, btOverlappingPairCache& cache,
              btDispatcher* dispatcher);

  const GpuLbvhProxies& m_proxies;
  GpuLbvhQueries& m_queries;
  std::vector<Ghost> m_ghosts;
  btDbvt m_tree;  // of the ghosts: they are few, and their leaves move one by one
  std::vector<GpuLbvhProxy*> m_partners;  // of the proxy at hand: they overlap it, or did
  std::vector<lbvh::Pair> m_early;        // pairs given or taken since the last step
  bool m_callbackIsThere = false;
};

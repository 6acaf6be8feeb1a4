// The broad phase's own pair cache. Its array is, element for element, what that of
// btHashedOverlappingPairCache would be; but a proxy's pairs are linked, so that removing a proxy
// costs as much as it has pairs and not two scans of all pairs, and sorting keeps algorithms.
// Takes the proxies of any broad phase. Finds no pair. Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>

#include <cstdint>
#include <vector>

#include "proxies.h"
#include "proxy_table.h"

class GpuLbvhPairCache final : public btOverlappingPairCache {
 public:
  /// Null if the filter refuses the pair, or there is no memory for it.
  btBroadphasePair* addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override;
  void* removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b,
                              btDispatcher* dispatcher) override;
  void removeOverlappingPairsContainingProxy(btBroadphaseProxy* proxy,
                                             btDispatcher* dispatcher) override;
  void cleanProxyFromPairs(btBroadphaseProxy* proxy, btDispatcher* dispatcher) override;
  void cleanOverlappingPair(btBroadphasePair& pair, btDispatcher* dispatcher) override;
  btBroadphasePair* findPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override;

  /// The callback may remove and add pairs.
  void processAllOverlappingPairs(btOverlapCallback* callback, btDispatcher* dispatcher) override;
  /// With m_deterministicOverlappingPairs in descending order of unique ids, as Bullet does.
  void processAllOverlappingPairs(btOverlapCallback* callback, btDispatcher* dispatcher,
                                  const btDispatcherInfo& info) override;

  /// Descending as well; the algorithms stay.
  void sortOverlappingPairs(btDispatcher* dispatcher) override;

  bool needsBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override;
  btOverlapFilterCallback* getOverlapFilterCallback() override { return m_filter; }
  void setOverlapFilterCallback(btOverlapFilterCallback* callback) override { m_filter = callback; }
  void setInternalGhostPairCallback(btOverlappingPairCallback* callback) override {
    m_ghost = callback;
  }
  bool hasGhostPairCallback() const { return m_ghost != nullptr; }
  bool hasDeferredRemoval() override { return false; }

  btBroadphasePair* getOverlappingPairArrayPtr() override { return first(); }
  const btBroadphasePair* getOverlappingPairArrayPtr() const override {
    return const_cast<GpuLbvhPairCache*>(this)->first();
  }
  btBroadphasePairArray& getOverlappingPairArray() override { return m_pairs; }
  int getNumOverlappingPairs() const override { return m_pairs.size(); }

  /// removeOverlappingPair and addOverlappingPair of each of a step's pairs in turn; memory is
  /// fetched some pairs ahead. The additions throw std::bad_alloc, with the pairs so far added.
  void removeAll(lbvh::View<const lbvh::Pair> pairs, const GpuLbvhProxies& proxies,
                 btDispatcher* dispatcher);
  void addAll(lbvh::View<const lbvh::Pair> pairs, const GpuLbvhProxies& proxies);

 private:
  static constexpr std::uint32_t kNone = GpuLbvhProxyTable::kNone;

  /// Beside each pair: the next pair of its bucket, and its place in the lists of its two proxies.
  /// These are of ends: end 2 k is pair k as its m_pProxy0's, end 2 k + 1 as its m_pProxy1's.
  struct Links {
    std::uint32_t inBucket;
    std::uint32_t next[2], previous[2];
  };

  btBroadphasePair* first() { return m_pairs.size() > 0 ? &m_pairs[0] : nullptr; }
  btBroadphaseProxy* proxyAt(std::uint32_t end) const;
  std::uint32_t& next(std::uint32_t end) { return m_links[end / 2].next[end % 2]; }
  std::uint32_t& previous(std::uint32_t end) { return m_links[end / 2].previous[end % 2]; }

  std::size_t bucket(const btBroadphaseProxy* a, const btBroadphaseProxy* b) const;
  std::uint32_t find(const btBroadphaseProxy* a, const btBroadphaseProxy* b) const;
  std::uint32_t& bucketLink(std::uint32_t pair);
  void fetchForRemoval(const btBroadphaseProxy* a, const btBroadphaseProxy* b, int stage) const;
  void fetchForAddition(const btBroadphaseProxy* a, const btBroadphaseProxy* b, int stage) const;
  void reserve(std::size_t more);
  void relinkBuckets();
  void linkInBucket(std::uint32_t pair);
  void link(std::uint32_t pair);
  void unlink(std::uint32_t pair);
  void moveLastTo(std::uint32_t pair);
  btBroadphasePair* add(btBroadphaseProxy* a, btBroadphaseProxy* b);
  void* removeAt(std::uint32_t pair, btDispatcher* dispatcher);
  bool gatherPairsOf(const btBroadphaseProxy* proxy);

  btBroadphasePairArray m_pairs;
  std::vector<Links> m_links;            // by pair
  std::vector<std::uint32_t> m_buckets;  // the first pair of each; a power of two of them
  GpuLbvhProxyTable m_ends;              // the first end of each proxy
  std::vector<std::uint32_t> m_gathered;
  btOverlapFilterCallback* m_filter = nullptr;
  btOverlappingPairCallback* m_ghost = nullptr;
};

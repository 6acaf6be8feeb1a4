// SPDX-License-Identifier: Zlib
// Implements the broad phase's own pair cache. Its array equals the array of a
// btHashedOverlappingPairCache, element by element. But removing a proxy does not scan all pairs,
// sorting keeps algorithms, and a pass over the pairs prefetches what the narrow phase will read.
// Refuses proxies of other broad phases. Callbacks (filter, ghost, contact) may change the cache
// while the cache calls them. Does not search for pairs. Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>

#include <cstdint>

#include "pair_sink.h"
#include "pair_table.h"
#include "proxies.h"

class GpuLbvhPairCache final : public GpuLbvhPairSink, public btOverlappingPairCache {
 public:
  /// @param sortsPairs whether settleOrder() sorts the pairs
  explicit GpuLbvhPairCache(GpuLbvhProxies& proxies, bool sortsPairs = false)
      : GpuLbvhPairSink(proxies, &m_ghost), m_sortsPairs(sortsPairs) {}

  /// @return null if the filter refuses the pair, if a callback destroys one of its proxies, if
  ///   there is no memory, or if a proxy belongs to another broad phase
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
  /// With m_deterministicOverlappingPairs, visits pairs in descending order of unique ids, as
  /// Bullet does.
  void processAllOverlappingPairs(btOverlapCallback* callback, btDispatcher* dispatcher,
                                  const btDispatcherInfo& info) override;

  /// Sorts the pairs in descending order of unique ids. Pairs keep their algorithms.
  void sortOverlappingPairs(btDispatcher* dispatcher) override;

  bool needsBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override;
  btOverlapFilterCallback* getOverlapFilterCallback() override { return m_filter; }
  void setOverlapFilterCallback(btOverlapFilterCallback* callback) override { m_filter = callback; }
  void setInternalGhostPairCallback(btOverlappingPairCallback* callback) override {
    m_ghost = callback;
  }
  bool hasDeferredRemoval() override { return false; }

  btBroadphasePair* getOverlappingPairArrayPtr() override { return m_table.data(); }
  const btBroadphasePair* getOverlappingPairArrayPtr() const override {
    return const_cast<GpuLbvhPairCache*>(this)->m_table.data();
  }
  btBroadphasePairArray& getOverlappingPairArray() override { return m_table.array(); }
  int getNumOverlappingPairs() const override { return m_table.array().size(); }

  // Called by the step and the ghosts, which pass only proxies of this broad phase:

  btOverlappingPairCache& cache() override { return *this; }
  bool add(lbvh::View<const lbvh::Pair> pairs) override;
  void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) override;
  bool add(GpuLbvhProxy* a, GpuLbvhProxy* b) override { return addKnown(a, b) != nullptr; }
  bool has(GpuLbvhProxy* a, GpuLbvhProxy* b) override {
    return m_table.find(slotsOf(a, b)) != lbvh::kNullIndex;
  }
  void remove(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher) override {
    removeKnown(a, b, dispatcher);
  }
  void removePairsOf(GpuLbvhProxy* proxy, btDispatcher* dispatcher) override {
    removeOverlappingPairsContainingProxy(proxy, dispatcher);
  }
  void prepareRemovalOf(btBroadphaseProxy* const*, int, btDispatcher*) override {}
  void settleOrder() override {
    if (m_sortsPairs) m_table.sort(GpuLbvhPairTable::Order::ascending);
  }

  /// For tests.
  const GpuLbvhPartners& partners() const { return m_table.partners(); }

 private:
  std::size_t slots() const { return m_proxies.boxes().size(); }
  /// Whether the pair at index `place` has a proxy in this slot. False if there is no such index.
  bool contains(std::uint32_t place, std::uint32_t slot) const {
    if (place >= m_table.size()) return false;
    const lbvh::Pair pair = m_table.slots(place);
    return pair.first == slot || pair.second == slot;
  }

  /// Whether removing the pair destroys an algorithm or calls a ghost callback.
  bool concernsOthers(const btBroadphasePair& pair) const {
    return pair.m_algorithm != nullptr || m_ghost != nullptr;
  }

  btBroadphasePair* refuseForeign();
  btBroadphasePair* add(lbvh::Pair pair, btBroadphaseProxy* a, btBroadphaseProxy* b);
  btBroadphasePair* addKnown(btBroadphaseProxy* a, btBroadphaseProxy* b);
  void* removeKnown(btBroadphaseProxy* a, btBroadphaseProxy* b, btDispatcher* dispatcher);
  void* removeAt(std::uint32_t pair, btDispatcher* dispatcher);
  std::uint32_t announceRemoval(std::uint32_t pair, btDispatcher* dispatcher);
  bool process(std::uint32_t pair, btOverlapCallback* callback, btDispatcher* dispatcher);
  void removeByScan(std::uint32_t slot, btDispatcher* dispatcher);
  void prefetchToAdd(lbvh::View<const lbvh::Pair> few) const;
  void prefetchToRemove(lbvh::View<const lbvh::Pair> few, bool freesManifolds) const;
  void prefetchForNarrowPhase(int at) const;

  const bool m_sortsPairs;
  GpuLbvhPairTable m_table;
  btOverlapFilterCallback* m_filter = nullptr;
  btOverlappingPairCallback* m_ghost = nullptr;
  bool m_hasRefused = false;  ///< the message about another broad phase's pair was printed
};

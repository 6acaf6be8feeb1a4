// SPDX-License-Identifier: Zlib
// The broad phase's own pair cache. Its array is, element for element, what that of
// btHashedOverlappingPairCache would be. But removing a proxy does not scan all pairs, sorting
// keeps algorithms, and memory is prefetched for those who walk the pairs, above all the narrow
// phase. Takes only the proxies of its broad phase: it refuses others, and has no pairs of theirs.
// Callbacks (filter, ghost, contact) may change it while it calls them. Finds no pair itself.
// Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>

#include <cstdint>
#include <vector>

#include "growing_array.h"
#include "pair_index.h"
#include "partners.h"
#include "proxies.h"
#include "refused_pairs.h"

class GpuLbvhPairCache final : public btOverlappingPairCache {
 public:
  explicit GpuLbvhPairCache(GpuLbvhProxies& proxies) : m_proxies(proxies) {}

  /// @return null if the filter refuses the pair or destroys one of the two, if there is no memory,
  ///   or if one of the two is another broad phase's
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
  /// With m_deterministicOverlappingPairs it goes in descending order of unique ids, as Bullet
  /// does.
  void processAllOverlappingPairs(btOverlapCallback* callback, btDispatcher* dispatcher,
                                  const btDispatcherInfo& info) override;

  /// In descending order of unique ids. The algorithms stay.
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

  /// As addOverlappingPair and removeOverlappingPair, for proxies that are known to be this broad
  /// phase's.
  btBroadphasePair* add(GpuLbvhProxy* a, GpuLbvhProxy* b);
  void* remove(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher);

  /// As removeOverlappingPair and addOverlappingPair for each of a step's pairs in turn. Pairs of
  /// which a callback has destroyed an object since the step are passed over.
  void removeAll(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher);
  /// @param refused is told of each answer
  /// @throws std::bad_alloc with the pairs so far added
  void addAll(lbvh::View<const lbvh::Pair> pairs, GpuLbvhRefusedPairs& refused);

 private:
  btBroadphasePair* first() { return m_pairs.size() > 0 ? &m_pairs[0] : nullptr; }
  btBroadphasePair& at(std::uint32_t pair) { return m_pairs[static_cast<int>(pair)]; }
  bool contains(std::uint32_t pair, std::uint32_t slot) const {
    return m_index[pair].first == slot || m_index[pair].second == slot;
  }

  /// Whether an algorithm or a ghost callback hears of its removal.
  bool concernsOthers(const btBroadphasePair& pair) const {
    return pair.m_algorithm != nullptr || m_ghost != nullptr;
  }

  void reserve(std::size_t more);
  void takeOut(std::uint32_t& link);
  btBroadphasePair* refuseForeign();
  btBroadphasePair* add(lbvh::Pair slots, btBroadphaseProxy* a, btBroadphaseProxy* b);
  void* removeAt(std::uint32_t pair, btDispatcher* dispatcher);
  std::uint32_t announceRemoval(std::uint32_t pair, btDispatcher* dispatcher);
  bool process(std::uint32_t pair, btOverlapCallback* callback, btDispatcher* dispatcher);
  bool gatherPairsOf(std::uint32_t slot);
  void removeByScan(std::uint32_t slot, btDispatcher* dispatcher);
  void prefetchForNarrowPhase(int at) const;

  GpuLbvhProxies& m_proxies;
  GpuLbvhPages m_memory;  ///< of m_pairs
  btBroadphasePairArray m_pairs;
  GpuLbvhPairIndex m_index;  ///< of m_pairs
  GpuLbvhPartners m_partners;
  std::vector<std::uint32_t> m_gathered;  ///< scratch: the pairs of one proxy
  btOverlapFilterCallback* m_filter = nullptr;
  btOverlappingPairCallback* m_ghost = nullptr;
  bool m_hasRefused = false;  ///< a pair of others, and has said so
};

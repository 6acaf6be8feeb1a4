// SPDX-License-Identifier: Zlib
// Compiled without RTTI, like many games.
#include "strangers_caches.h"

namespace strangers {
namespace {

template <class Cache>
struct Derived : Cache {
  explicit Derived(Talk& t) : talk(t) {}
  bool needsBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    if (const auto* filter = const_cast<Derived*>(this)->getOverlapFilterCallback())
      return filter->needBroadphaseCollision(a, b);
    return !talk.isShut && accepts(a, b);
  }
  Talk& talk;
};

class Wrapper : public btOverlappingPairCache {
 public:
  Wrapper(btOverlappingPairCache& cache, Talk& talk) : m_cache(cache), m_talk(talk) {}

  btBroadphasePair* addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override {
    ++m_talk.adds;
    m_talk.others += a->m_uniqueId > b->m_uniqueId;
    if (m_talk.addsLeft > 0 && --m_talk.addsLeft == 0) throw Thrown{};
    btBroadphasePair* pair = m_cache.addOverlappingPair(a, b);
    return m_talk.returnsNull ? nullptr : pair;
  }
  void* removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b,
                              btDispatcher* dispatcher) override {
    m_talk.others += a->m_uniqueId > b->m_uniqueId;
    return m_cache.removeOverlappingPair(a, b, dispatcher);
  }
  void removeOverlappingPairsContainingProxy(btBroadphaseProxy* proxy,
                                             btDispatcher* dispatcher) override {
    m_cache.removeOverlappingPairsContainingProxy(proxy, dispatcher);
  }
  btBroadphasePairArray& getOverlappingPairArray() override {
    return m_cache.getOverlappingPairArray();
  }
  void cleanOverlappingPair(btBroadphasePair& pair, btDispatcher* dispatcher) override {
    m_cache.cleanOverlappingPair(pair, dispatcher);
  }
  bool hasDeferredRemoval() override { return m_cache.hasDeferredRemoval(); }

  bool needsBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    ++m_talk.questions;
    return m_cache.needsBroadphaseCollision(a, b);
  }

  btBroadphasePair* getOverlappingPairArrayPtr() override {
    return other().getOverlappingPairArrayPtr();
  }
  const btBroadphasePair* getOverlappingPairArrayPtr() const override {
    return other().getOverlappingPairArrayPtr();
  }
  int getNumOverlappingPairs() const override { return other().getNumOverlappingPairs(); }
  void cleanProxyFromPairs(btBroadphaseProxy* proxy, btDispatcher* dispatcher) override {
    other().cleanProxyFromPairs(proxy, dispatcher);
  }
  btOverlapFilterCallback* getOverlapFilterCallback() override {
    other();
    return nullptr;
  }
  void setOverlapFilterCallback(btOverlapFilterCallback* callback) override {
    other().setOverlapFilterCallback(callback);
  }
  void processAllOverlappingPairs(btOverlapCallback* callback, btDispatcher* dispatcher) override {
    other().processAllOverlappingPairs(callback, dispatcher);
  }
  btBroadphasePair* findPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override {
    return other().findPair(a, b);
  }
  void setInternalGhostPairCallback(btOverlappingPairCallback* callback) override {
    other().setInternalGhostPairCallback(callback);
  }
  void sortOverlappingPairs(btDispatcher* dispatcher) override {
    other().sortOverlappingPairs(dispatcher);
  }

 private:
  btOverlappingPairCache& other() const {
    ++m_talk.others;
    return m_cache;
  }
  btOverlappingPairCache& m_cache;
  Talk& m_talk;
};

}  // namespace

std::unique_ptr<btOverlappingPairCache> makeDerived(bool isDeferred, Talk& talk) {
  if (isDeferred) return std::make_unique<Derived<btSortedOverlappingPairCache>>(talk);
  return std::make_unique<Derived<btHashedOverlappingPairCache>>(talk);
}

std::unique_ptr<btOverlappingPairCache> wrap(btOverlappingPairCache& cache, Talk& talk) {
  return std::make_unique<Wrapper>(cache, talk);
}

}  // namespace strangers

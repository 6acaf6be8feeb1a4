// SPDX-License-Identifier: Zlib
// Compares GpuLbvhRefusedPairs with a std::set: with few and with many changes at once, and with a
// proxy that has thousands of partners.
#include "integration/refused_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "support.h"

namespace {

using lbvh::test::Random;
using Pairs = std::vector<lbvh::Pair>;

class RefusedPairs : public testing::Test {
 protected:
  RefusedPairs() {
    for (std::uint32_t i = 0; i < kProxies; ++i) create();
  }
  ~RefusedPairs() override {
    for (GpuLbvhProxy* proxy : m_alive) m_proxies.destroy(proxy);
  }

  void create() {
    m_alive.push_back(m_proxies.create(btVector3(0, 0, 0), btVector3(1, 1, 1), nullptr, 1, -1));
  }
  /// Replaces a random proxy by a new one, which gets the same slot. The old proxy's refused pairs
  /// are forgotten.
  void replaceAny() {
    GpuLbvhProxy*& one = m_alive[m_random.below(kProxies)];
    const std::uint32_t slot = one->m_slot;
    m_refused.forgetPairsOf(one);
    m_proxies.destroy(one);
    one = m_proxies.create(btVector3(0, 0, 0), btVector3(1, 1, 1), nullptr, 1, -1);
    ASSERT_EQ(one->m_slot, slot);
    std::erase_if(m_model,
                  [slot](lbvh::Pair pair) { return pair.first == slot || pair.second == slot; });
    m_replaced.insert(slot);
  }
  /// Some pairs that are not refused, sorted. Half of them are pairs of one proxy.
  Pairs drawOthers(std::size_t count) {
    std::set<lbvh::Pair> drawn;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t a = i % 2 == 0 ? kProxies / 2 : m_random.below(kProxies);
      const std::uint32_t b = m_random.below(kProxies);
      if (a != b && m_model.count(lbvh::makePair(a, b)) == 0) drawn.insert(lbvh::makePair(a, b));
    }
    return {drawn.begin(), drawn.end()};
  }
  /// Removes about one in `share` of the refused pairs from the model. Returns these and some other
  /// pairs, sorted.
  Pairs drawGone(std::uint32_t share) {
    Pairs gone, others = drawOthers(10);
    for (const lbvh::Pair pair : m_model)
      if (m_random.below(share) == 0) gone.push_back(pair);
    for (const lbvh::Pair pair : gone) m_model.erase(pair);
    gone.insert(gone.end(), others.begin(), others.end());
    std::sort(gone.begin(), gone.end());
    return gone;
  }
  /// Marks some proxies, and returns the pairs that must then be offered.
  Pairs mark(std::uint32_t count, const Pairs& added) {
    std::set<std::uint32_t> marked;
    m_proxies.clearToAsk();
    for (std::uint32_t i = 0; i < count; ++i) {
      const GpuLbvhProxy* one = m_alive[count == kProxies ? i : m_random.below(kProxies)];
      m_proxies.askAgain(one);
      marked.insert(one->m_slot);
    }
    Pairs again, all;
    for (const lbvh::Pair pair : m_model)
      if (marked.count(pair.first) + marked.count(pair.second) != 0) again.push_back(pair);
    std::merge(again.begin(), again.end(), added.begin(), added.end(), std::back_inserter(all));
    return all;
  }
  void note(lbvh::Pair pair, bool isRefused) {
    m_refused.note(pair, isRefused);
    if (isRefused)
      m_model.insert(pair);
    else
      m_model.erase(pair);
  }
  void check() {
    ASSERT_EQ(m_refused.size(), m_model.size());
    for (const lbvh::Pair pair : m_model) ASSERT_TRUE(m_refused.contains(pair));
    for (const lbvh::Pair pair : drawOthers(100)) ASSERT_FALSE(m_refused.contains(pair));
  }

  static constexpr std::uint32_t kProxies = 5000;
  Random m_random{7};
  GpuLbvhProxies m_proxies;
  std::vector<GpuLbvhProxy*> m_alive;
  GpuLbvhRefusedPairs m_refused{m_proxies};
  std::set<lbvh::Pair> m_model;
  std::set<std::uint32_t> m_replaced;  ///< slots of proxies that were replaced during this step
};

TEST_F(RefusedPairs, EqualASetAfterRandomSteps) {
  for (int step = 0; step < 60 && !HasFatalFailure(); ++step) {
    SCOPED_TRACE(step);
    m_refused.forget(viewOf(drawGone(step % 10 == 9 ? 1 : step % 3 == 0 ? 3 : 1000)));
    const Pairs added = drawOthers(step % 4 == 0 ? 30000 : 20);
    const Pairs expected = mark(step % 5 == 0 ? kProxies : step % 5 == 1 ? 2000 : 3, added);
    const lbvh::View<const lbvh::Pair> offered = m_refused.withMarked(viewOf(added));
    ASSERT_EQ(Pairs(offered.begin(), offered.end()), expected);
    m_replaced.clear();
    const bool acceptsMost = step % 7 == 6;
    for (const lbvh::Pair pair : offered) {
      if (m_random.below(4000) == 0) replaceAny();  // as a callback may do
      if (m_replaced.count(pair.first) + m_replaced.count(pair.second) == 0)
        note(pair, acceptsMost ? m_random.below(9) == 0 : m_random.below(9) != 0);
    }
    m_refused.applyNotes();
    check();
    for (const lbvh::Pair pair : drawOthers(3)) note(pair, true);
    m_refused.applyNotes();
    for (std::uint32_t i = m_random.below(40); i > 0; --i) replaceAny();
  }
}

}  // namespace

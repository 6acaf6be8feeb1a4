// SPDX-License-Identifier: Zlib
// Tests on the interpreter that Bullet's pairs are right after a GPU has found wrong pairs and is
// then lost. Skipped without the interpreter.
#include "cuda_fixture.h"
#if defined(HAS_SCENES)
#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>
#include <LinearMath/btAabbUtil2.h>
#include <dlfcn.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "GpuLbvhBroadphase.h"
#include "support.h"

namespace lbvh {
namespace {

class CudaLost : public test::OnCuda {
 protected:
  using Control = int (*)(const char*, long);
  using Order = std::vector<std::pair<int, int>>;

  void SetUp() override {
    OnCuda::SetUp();
    control = reinterpret_cast<Control>(dlsym(RTLD_DEFAULT, "ptxvm_control"));
    if (control == nullptr) GTEST_SKIP() << "skipped: a real GPU does not fail on request";
  }
  static GpuLbvhOptions onCuda() {
    GpuLbvhOptions options;
    options.backend = Backend::cuda;
    return options;
  }

  /// Makes a proxy for each box. Boxes with odd indices are far from all others.
  void fill() {
    test::Random random(41);
    for (int i = 0; i < 120; ++i) {
      btVector3 low(random.uniform(0, 8), random.uniform(0, 8), random.uniform(0, 8));
      if (i % 2 == 1) low.setX(btScalar(1e4 * i));
      const btVector3 high = low + btVector3(2, 2, 2);
      proxies.push_back(
          broadphase.createProxy(low, high, BOX_SHAPE_PROXYTYPE, nullptr, 1, 1, nullptr));
    }
  }
  /// Moves all proxies from index `first` on, and runs a step.
  void step(std::size_t first) {
    const btVector3 way(0, btScalar(0.01), 0);
    for (std::size_t i = first; i < proxies.size(); ++i)
      broadphase.setAabb(proxies[i], proxies[i]->m_aabbMin + way, proxies[i]->m_aabbMax + way,
                         nullptr);
    broadphase.calculateOverlappingPairs(nullptr);
  }
  Order cached() {
    Order order;
    const auto& pairs = broadphase.getOverlappingPairCache()->getOverlappingPairArray();
    for (int i = 0; i < pairs.size(); ++i)
      order.push_back(std::minmax(pairs[i].m_pProxy0->getUid(), pairs[i].m_pProxy1->getUid()));
    std::sort(order.begin(), order.end());
    return order;
  }
  Order bruteForce() const {
    Order order;
    for (const btBroadphaseProxy* a : proxies)
      for (const btBroadphaseProxy* b : proxies)
        if (a->getUid() < b->getUid() &&
            TestAabbAgainstAabb2(a->m_aabbMin, a->m_aabbMax, b->m_aabbMin, b->m_aabbMax))
          order.emplace_back(a->getUid(), b->getUid());
    std::sort(order.begin(), order.end());
    return order;
  }
  const Stats& stats() const { return broadphase.stats(); }

  Control control = nullptr;
  GpuLbvhBroadphase broadphase{onCuda()};
  std::vector<btBroadphaseProxy*> proxies;
};

// The boxes of the wrong pair rest. The host that takes over finds no change in their pairs, so no
// delta corrects the cache.
TEST_F(CudaLost, CacheIsComparedWithAllPairs) {
  fill();
  step(0);
  ASSERT_EQ(cached(), bruteForce());
  ASSERT_EQ(control("spoil PairsKernel", 10), 0);
  step(0);
  step(119);
  ASSERT_NE(stats().backend, "host");
  EXPECT_NE(cached(), bruteForce()) << "no pair was spoiled";
  ASSERT_EQ(control("fail_all", 700), 0);
  step(119);
  EXPECT_EQ(stats().backend, "host") << stats().reason;
  EXPECT_EQ(cached(), bruteForce());
  ASSERT_EQ(control("fail_all", 0), 0);
  ASSERT_EQ(control("spoil PairsKernel", 0), 0);
}

}  // namespace
}  // namespace lbvh
#endif

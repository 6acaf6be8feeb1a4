// SPDX-License-Identifier: Zlib
// Asks the processor whether calls leave the upper halves of the vector registers in use. SSE code,
// such as Bullet's solver, would then be slower. This program is built for several optimisation
// levels, because compilers clear the registers only from -O2 on.
#include <btBulletCollisionCommon.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "GpuLbvhBroadphase.h"
#include "broadphase/core/compiler.h"
#include "simd_test.h"
#include "support.h"

namespace {

using lbvh::test::Boxes;
using lbvh::test::Random;
using lbvh::test::view;

#if defined(GPULBVH_X86_64) && defined(GPULBVH_GNU)
/// XGETBV with ECX = 1 tells which of the registers that the system saves are in use. Bit 2 is for
/// the upper halves of the YMM registers. Bit 6 is for the upper halves of the ZMM registers 0 to
/// 15 (Intel, "Software Developer's Manual", volume 1, section 13.6).
bool tellsRegistersInUse() { return (lbvh::cpuid(0xD, 1).eax & 4) != 0; }

bool areUpperHalvesInUse() {
  std::uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return (low & (1u << 2 | 1u << 6)) != 0;
}

void clearUpperHalves() { __asm__ volatile("vzeroupper"); }
void useUpperHalves() {
  __asm__ volatile("vcmpps $15, %%ymm0, %%ymm0, %%ymm0" ::: "xmm0");  // sets all bits
}
#else
bool tellsRegistersInUse() { return false; }
bool areUpperHalvesInUse() { return false; }
void clearUpperHalves() {}
void useUpperHalves() {}
#endif

class CleanRegisters : public lbvh::test::SimdTest {
 protected:
  void SetUp() override {
    SimdTest::SetUp();
    if (IsSkipped()) return;
    const char* const kWhy = "this processor does not tell which registers are in use";
    if (!tellsRegistersInUse()) GTEST_SKIP() << kWhy;
    useUpperHalves();
    const bool used = areUpperHalvesInUse();
    clearUpperHalves();
    if (!used || areUpperHalvesInUse()) GTEST_SKIP() << kWhy;
  }

  /// Requires that `call` leaves the upper halves clear.
  template <class Call>
  static void clean(const char* name, const Call& call) {
    clearUpperHalves();
    call();
    const bool used = areUpperHalvesInUse();
    clearUpperHalves();
    EXPECT_FALSE(used) << name;
  }
};

void move(Boxes& boxes, Random& random, std::uint32_t every, float by) {
  for (lbvh::Aabb& box : boxes) {
    if (random.below(every) != 0) continue;
    for (int axis = 0; axis < 3; ++axis) {
      const float d = random.uniform(-by, by);
      box.min[axis] += d;
      box.max[axis] += d;
    }
  }
}

TEST_P(CleanRegisters, AfterEachCallOfAPairFinder) {
  lbvh::Options options;
  options.backend = lbvh::Backend::host;
  options.threads = 1;
  for (const std::size_t n : {40u, 4000u}) {
    Random random(71);
    Boxes boxes = lbvh::test::boxSets()[0].make(n, random);
    std::vector<lbvh::Filter> filters(n, lbvh::Filter{1, -1});
    std::unique_ptr<lbvh::PairFinder> finder;
    clean("constructor", [&] { finder = std::make_unique<lbvh::PairFinder>(options); });
    std::size_t found = 0;
    for (std::uint32_t step = 0; step < 60; ++step) {
      if (step % 10 == 5) filters[step % n] = {2, 4};
      move(boxes, random, step < 30 ? 1 : 200, step % 20 == 19 ? 1.0f : 0.01f);
      clean("update", [&] { finder->update(view(boxes), view(filters)); });
      clean("pairs", [&] { found += finder->pairs().size(); });
      clean("added", [&] { found += finder->added().size(); });
      clean("updateUnchanged", [&] { finder->updateUnchanged(); });
    }
    EXPECT_GT(found, 0u);
  }
}

struct CleanCallbacks : btOverlapFilterCallback, btBroadphaseRayCallback {
  mutable std::size_t asked = 0, dirty = 0;
  void count() const {
    ++asked;
    dirty += areUpperHalvesInUse() ? 1 : 0;
  }
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    count();
    return (a->m_uniqueId + b->m_uniqueId) % 7 != 0;
  }
  bool process(const btBroadphaseProxy*) override {
    count();
    return true;
  }
};

btVector3 toBullet(const float (&corner)[3]) { return {corner[0], corner[1], corner[2]}; }

TEST_P(CleanRegisters, AfterEachCallOfABroadPhaseAndWithinItsCallbacks) {
  CleanCallbacks callbacks;
  callbacks.m_rayDirectionInverse.setValue(1, btScalar(BT_LARGE_FLOAT), btScalar(BT_LARGE_FLOAT));
  callbacks.m_lambda_max = 1000;
  for (const std::size_t n : {40u, 4000u}) {
    Random random(72);
    Boxes boxes = lbvh::test::boxSets()[0].make(n, random);
    GpuLbvhOptions options;
    options.threads = 1;
    options.margin = n == 40 ? 0 : btScalar(0.02);
    GpuLbvhBroadphase broadphase(options);
    btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
    cache.setOverlapFilterCallback(&callbacks);
    std::vector<btBroadphaseProxy*> proxies;
    for (const lbvh::Aabb& box : boxes)
      clean("createProxy", [&] {
        proxies.push_back(broadphase.createProxy(toBullet(box.min), toBullet(box.max), 0, &proxies,
                                                 1, -1, nullptr));
      });
    for (std::uint32_t step = 0; step < 30; ++step) {
      move(boxes, random, step < 15 ? 1 : 200, step % 10 == 9 ? 1.0f : 0.01f);
      for (std::size_t i = 0; i < n; ++i)
        clean("setAabb", [&] {
          broadphase.setAabb(proxies[i], toBullet(boxes[i].min), toBullet(boxes[i].max), nullptr);
        });
      clean("step", [&] { broadphase.calculateOverlappingPairs(nullptr); });
      clean("rayTest", [&] { broadphase.rayTest({-900, 5, 5}, {900, 5, 5}, callbacks); });
      clean("aabbTest", [&] { broadphase.aabbTest({0, 0, 0}, {9, 9, 9}, callbacks); });
    }
    for (std::size_t i = 0; i < n / 2; ++i)
      clean("destroyProxy", [&] { broadphase.destroyProxy(proxies[i], nullptr); });
    clean("step", [&] { broadphase.calculateOverlappingPairs(nullptr); });
    EXPECT_GT(cache.getNumOverlappingPairs(), 0);
    for (std::size_t i = n / 2; i < n; ++i) broadphase.destroyProxy(proxies[i], nullptr);
  }
  EXPECT_GT(callbacks.asked, 1000u);
  EXPECT_EQ(callbacks.dirty, 0u);
}

// The other instruction sets have no upper halves.
INSTANTIATE_TEST_SUITE_P(Each, CleanRegisters, testing::Values("avx512", "avx2"),
                         lbvh::test::simdName);

}  // namespace

// SPDX-License-Identifier: Zlib
// Tests how much memory the broad phase uses. A steady step allocates nothing. An object takes at
// most 200 bytes and a pair 24 bytes. While boxes move little, the limits are 260 and 32 bytes.
// Counts every operator new of this process.
#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "GpuLbvhBroadphase.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/pair_finder.h"
#include "broadphase/tree_query.h"
#include "support.h"

namespace {
std::atomic<std::size_t> allocations{0};
std::atomic<std::size_t> bytesHeld{0};

void* allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* p = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (p == nullptr) throw std::bad_alloc();
  bytesHeld += malloc_usable_size(p);
  return p;
}

void release(void* p) {
  bytesHeld -= malloc_usable_size(p);
  std::free(p);
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t a) {
  return allocate(size, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::view;

void jiggle(Boxes& boxes, Random& random, float most = 0.05f) {
  for (Aabb& box : boxes)
    for (int axis = 0; axis < 3; ++axis) {
      const float d = random.uniform(-most, most);
      box.min[axis] += d;
      box.max[axis] += d;
    }
}

/// One thread, because each further thread takes 3 to 5 more bytes per box.
Options onOneThread() {
  Options options;
  options.backend = Backend::host;
  options.threads = 1;
  return options;
}

// The limits do not hold for checked builds, because the checks allocate memory.
#if !defined(GPULBVH_CHECKED)
TEST(Memory, SteadyStepsDoNotAllocate) {
  Random random(31);
  Boxes boxes = test::boxSets()[0].make(20000, random);
  std::vector<Filter> filters(boxes.size(), Filter{1, -1});
  PairFinder finder(onOneThread());
  for (int warmUp = 0; warmUp < 60; ++warmUp) {  // enough steps to sort the boxes again
    jiggle(boxes, random);
    finder.update(view(boxes), view(filters));
  }
  const std::size_t before = allocations;
  for (int step = 0; step < 20; ++step) {
    jiggle(boxes, random);
    finder.update(view(boxes), view(filters));
  }
  EXPECT_EQ(allocations, before);
  EXPECT_GT(finder.stats().added, 100u) << "the scene hardly changes";
}

// The steps use every buffer: they search for the pairs of all boxes or of few, with filters, and
// with or without the caller's bits of changed boxes.
TEST(Memory, ReportedMemoryIsWhatIsAllocated) {
  Random random(34);
  Boxes boxes = test::boxSets()[0].make(400000, random);
  const std::vector<Filter> filters(boxes.size(), Filter{1, -1});
  const std::vector<std::uint64_t> changed(boxes.size() / 64 + 1, 1);
  const std::size_t before = bytesHeld;
  PairFinder finder(onOneThread());
  for (int step = 0; step < 12; ++step) {
    for (std::size_t i = 0; i < boxes.size(); i += 64) boxes[i] = boxes[random.below(400000)];
    if (step % 3 == 0) EXPECT_FALSE(finder.pairs().empty() && step > 0);
    finder.update(view(boxes), view(filters),
                  step % 2 == 0 ? view(changed) : View<const std::uint64_t>{});
    const std::size_t held = bytesHeld - before, told = finder.stats().memoryBytes;
    EXPECT_LE(told, held) << step;
    EXPECT_LE(held, told + 64000) << step << ": more than partly filled pages";
  }
}

TEST(Memory, ATreeTakesAndReportsSixtyTwoBytesPerBox) {
  Random random(36);
  const Boxes boxes = test::boxSets()[0].make(400000, random);
  const std::size_t before = bytesHeld;
  BoxTree tree(1);
  tree.build(view(boxes));
  const std::size_t held = bytesHeld - before, told = tree.memoryBytes();
  EXPECT_LE(told, held);
  EXPECT_LE(held, told + 64000) << "more than the sort's counters and partly filled pages";
  EXPECT_LE(told, 62 * boxes.size());
}
#endif

// A checked build reads pairs() in each step, so the pairs are also kept by index. Then a pair
// takes 36 bytes, and up to a third more of spare capacity.
#if defined(GPULBVH_CHECKED)
constexpr std::size_t kBytesOfPair = 48;
#else
constexpr std::size_t kBytesOfPair = 24;
#endif

TEST(Memory, StaysWithinItsLimits) {
  Random random(32);
  for (const std::size_t n : {1000u, 20000u, 200000u}) {
    Boxes boxes = test::boxSets()[0].make(n, random);
    PairFinder finder(onOneThread());
    for (int step = 0; step < 6; ++step) {
      jiggle(boxes, random);
      finder.update(view(boxes));
    }
    const Stats& stats = finder.stats();
    // The limit includes the box (24 bytes) and the filter (8) that the finder reads. With
    // most instruction sets the finder also keeps each box as 16-bit integers.
    const std::size_t bytesOfBox = simdKernels().usesShorts ? 204 : 190;
    EXPECT_LE(stats.memoryBytes + 32 * n, 8000 + bytesOfBox * n + kBytesOfPair * stats.pairs) << n;
  }
}

TEST(Memory, StaysWithinItsLimitsWhileBoxesMoveLittle) {
  Random random(35);
  for (const std::size_t n : {1000u, 20000u, 200000u}) {
    const std::vector<std::uint64_t> allChanged(n / 64 + 1, ~std::uint64_t{0});
    Boxes boxes = test::boxSets()[0].make(n, random);
    PairFinder finder(onOneThread());
    for (int step = 0; step < 24; ++step) {
      jiggle(boxes, random, 0.001f);
      // Without the bits of changed boxes the finder would copy the boxes.
      finder.update(view(boxes), {}, view(allChanged));
      if (step % 5 == 0) EXPECT_GT(finder.pairs().size(), n);
    }
    const Stats& stats = finder.stats();
    EXPECT_LT(stats.searched, n / 4);
    EXPECT_LE(stats.memoryBytes + 32 * n, 260 * n + 32 * stats.pairs) << n;
  }
}

// After objects are destroyed, up to half a megabyte is kept for new ones.
TEST(Memory, OfDestroyedObjectsIsFreed) {
  GpuLbvhOptions options;
  options.backend = Backend::host;
  options.threads = 1;
  const std::size_t before = bytesHeld;
  GpuLbvhBroadphase broadphase(options);
  const auto held = [&] { return bytesHeld - before; };
  std::vector<btBroadphaseProxy*> proxies(50000);
  for (std::size_t i = 0; i < proxies.size(); ++i) {
    const btVector3 low(2 * btScalar(i), 0, 0), high(2 * btScalar(i) + 1, 1, 1);
    proxies[i] = broadphase.createProxy(low, high, 0, nullptr, 1, -1, nullptr);
  }
  broadphase.calculateOverlappingPairs(nullptr);
  EXPECT_GT(held(), 200 * proxies.size());
  for (std::size_t i = 100; i < proxies.size(); ++i) broadphase.destroyProxy(proxies[i], nullptr);
  for (int step = 0; step < 2; ++step) {
    const btVector3 low(0, btScalar(step), 0), high(1, btScalar(step) + 1, 1);
    broadphase.setAabb(proxies[0], low, high, nullptr);
    broadphase.calculateOverlappingPairs(nullptr);
  }
  EXPECT_LT(held(), sizeof(btBroadphaseProxy*) * proxies.size() + 1000000);
}

// Adds and removes 1,500 equal objects. The memory of Bullet's array does not come from operator
// new, so its capacity is tested instead.
TEST(Memory, OfRemovedPairsIsFreed) {
  GpuLbvhOptions options;
  options.backend = Backend::host;
  options.threads = 1;
  GpuLbvhBroadphase broadphase(options);
  btBroadphasePairArray& pairs = broadphase.getOverlappingPairCache()->getOverlappingPairArray();
  std::vector<btBroadphaseProxy*> proxies;
  const auto add = [&](btScalar x) {
    const btVector3 low(x, 0, 0), high(x + 1, 1, 1);
    proxies.push_back(broadphase.createProxy(low, high, 0, nullptr, 1, -1, nullptr));
  };
  for (int i = 0; i < 100; ++i) add(btScalar(-2 * i));
  broadphase.calculateOverlappingPairs(nullptr);
  const std::size_t before = bytesHeld;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 1500; ++i) add(10);
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(pairs.size(), 1500 * 1499 / 2);
    for (; proxies.size() > 100; proxies.pop_back())
      broadphase.destroyProxy(proxies.back(), nullptr);
    EXPECT_GT(bytesHeld, before + 20 * 1500 * 1499 / 2);
    for (int step = 0; step < 2; ++step) {
      const btVector3 low(0, btScalar(step), 0), high(1, btScalar(step) + 1, 1);
      broadphase.setAabb(proxies[0], low, high, nullptr);
      broadphase.calculateOverlappingPairs(nullptr);
    }
    EXPECT_LT(bytesHeld, before + 1000000);
#if defined(__linux__)
    EXPECT_LT(pairs.capacity(), 5000);
#endif
  }
}

// Pairs of ghosts, even refused ones, are remembered until the next step. Further moves must take
// no more memory, because a program may move a ghost for hours without a step.
TEST(Memory, ManyMovesOfAGhostWithoutAStepTakeNoMoreMemory) {
  struct RefusesAll : btOverlapFilterCallback {
    bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
      ++questions;
      return false;
    }
    mutable int questions = 0;
  } filter;
  GpuLbvhOptions options;
  options.backend = Backend::host;
  GpuLbvhBroadphase broadphase(options);
  btGhostPairCallback ghosts;
  broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&ghosts);
  broadphase.getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  btGhostObject ghost;
  btCollisionObject objects[50];
  const btVector3 low(0, 0, 0), high(1, 1, 1);
  btBroadphaseProxy* proxy = broadphase.createProxy(low, high, 0, &ghost, 1, -1, nullptr);
  for (btCollisionObject& object : objects)
    broadphase.createProxy(low, high, 0, &object, 1, -1, nullptr);
  std::size_t before = 0;
  for (int move = 0; move < 2000; ++move) {
    if (move == 100) before = bytesHeld;
    const btVector3 by(btScalar(move % 2) / 8, 0, 0);
    broadphase.setAabb(proxy, low + by, high + by, nullptr);
  }
  EXPECT_GT(filter.questions, 99000);
  EXPECT_EQ(bytesHeld, before);
  broadphase.calculateOverlappingPairs(nullptr);
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
std::size_t residentBytes() {
#if defined(__GLIBC__)
  // Fixes the mmap threshold, which glibc would raise when a large block is freed. With a higher
  // threshold, large blocks may be on the heap, where gaps between blocks are resident, too.
  mallopt(M_MMAP_THRESHOLD, 1 << 17);
  malloc_trim(0);
#endif
  std::size_t pages = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  const int read = std::fscanf(file, "%zu %zu", &pages, &resident);
  std::fclose(file);
  return read == 2 ? resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

// Measures the adapter with its proxies, but without the memory of a pair cache.
TEST(Memory, AdapterStaysWithinItsLimits) {
  if (sizeof(btScalar) == 8) GTEST_SKIP() << "Bullet's proxies are larger with double precision";
  Random random(33);
  const std::size_t n = 300000;
  Boxes boxes = test::boxSets()[0].make(n, random);
  btNullPairCache none;
  const std::size_t before = residentBytes();
  GpuLbvhBroadphase broadphase(onOneThread(), &none);
  std::vector<btBroadphaseProxy*> proxies;
  proxies.reserve(n);
  const auto corner = [](const float(&v)[3]) { return btVector3(v[0], v[1], v[2]); };
  for (const Aabb& box : boxes)
    proxies.push_back(
        broadphase.createProxy(corner(box.min), corner(box.max), 0, nullptr, 1, -1, nullptr));
  for (int step = 0; step < 6; ++step) {
    jiggle(boxes, random);
    for (std::size_t i = 0; i < n; ++i)
      broadphase.setAabb(proxies[i], corner(boxes[i].min), corner(boxes[i].max), nullptr);
    broadphase.calculateOverlappingPairs(nullptr);
  }
  const std::size_t used = residentBytes() - before - n * sizeof(btBroadphaseProxy*);
  const std::size_t pairs = broadphase.stats().pairs;
  ASSERT_GT(pairs, 4 * n);
  EXPECT_LE(used, 200 * n + 24 * pairs) << (used - 24 * pairs) / n << " bytes an object";
}

// 3,000 equal boxes have enough pairs to measure the bytes of a pair.
TEST(Memory, PairsTakeTwentyFourBytes) {
  const Boxes boxes(3000, test::boxAt(0, 0, 0, 1));
  Options options;
  options.threads = 1;  // these two lines exclude oneTBB and CUDA,
                        // whose own memory does not grow with the scene
  options.backend = Backend::host;
  Boxes apart;
  for (int i = 0; i < 300; ++i) apart.push_back(test::boxAt(3.0f * static_cast<float>(i), 0, 0, 1));
  PairFinder finder(options);
  // These steps load the code, so that it is not measured.
  for (int step = 0; step < 5; ++step) finder.update(view(apart));
  const std::size_t before = residentBytes();
  for (int step = 0; step < 5; ++step) finder.update(view(boxes));
  const std::size_t used = residentBytes() - before, pairs = finder.stats().pairs;
  ASSERT_EQ(pairs, 3000u * 2999 / 2);
  EXPECT_LE(used, 200 * boxes.size() + 24 * pairs);
}
#endif

}  // namespace
}  // namespace lbvh

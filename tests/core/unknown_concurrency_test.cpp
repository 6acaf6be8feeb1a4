// SPDX-License-Identifier: Zlib
// In some containers oneTBB cannot find the number of threads and returns 0. Tests that the library
// then uses one thread by default. This program replaces oneTBB's function by one that returns 0.
#include <gtest/gtest.h>
#include <tbb/info.h>

#include "broadphase/tree_query.h"
#include "support.h"

namespace tbb::detail::r1 {
int __TBB_EXPORTED_FUNC numa_default_concurrency(int) { return 0; }
}  // namespace tbb::detail::r1

namespace lbvh::test {
namespace {

TEST(UnknownConcurrency, IsOneThread) {
  ASSERT_EQ(tbb::info::default_concurrency(), 0);
  for (const int threads : {0, 1, 4}) {
    Options options;
    options.backend = Backend::host;
    options.threads = threads;
    PairFinder finder(options);
    EXPECT_EQ(finder.stats().threads, threads == 0 ? 1 : threads);
    for (const std::size_t n : {5u, 500u, 20000u}) {
      Random random(7);
      const Boxes boxes = boxSets().front().make(n, random);
      finder.update(view(boxes));
      EXPECT_EQ(finder.stats().objects, n);
      if (n < 1000) EXPECT_EQ(toVector(finder.pairs()), bruteForce(boxes));
    }
  }
}

TEST(UnknownConcurrency, BatchesOfQueriesAreAnswered) {
  Random random(8);
  const Boxes boxes = boxSets().front().make(300, random);
  BoxTree tree;
  tree.build(view(boxes));
  BatchHits hits;
  tree.aabbTest(view(boxes), hits);
  for (std::size_t i = 0; i < boxes.size(); ++i) EXPECT_GE(hits.of(i).size(), 1u) << i;
}

}  // namespace
}  // namespace lbvh::test

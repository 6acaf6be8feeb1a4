// SPDX-License-Identifier: Zlib
// Tests the founding documents' variants on the host. Counts the work of each variant, and compares
// it with what the documents say.
#include "variants_checks.h"

namespace lbvh::variants {
namespace {

using test::Random;

TEST(Variants, AllGiveTheSameResults) {
  Random random(101);
  for (const std::size_t n : {0u, 1u, 2u, 3u, 31u, 32u, 33u, 700u}) {
    SCOPED_TRACE(n);
    expectAllTheSame<CatalogueHost>(test::boxSets()[0].make(n, random));
    expectAllTheSame<CatalogueHost>(Boxes(std::min<std::size_t>(n, 100), test::boxAt(1, 1, 1, 1)));
  }
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    for (const std::size_t n : {40u, 333u}) expectAllTheSame<CatalogueHost>(set.make(n, random));
  }
}

/// Unit boxes with about a dozen neighbours each.
Boxes crowd(std::size_t n) {
  Random random(102);
  Boxes boxes;
  const float side = std::cbrt(static_cast<float>(n) * 8 / 12);
  for (std::size_t i = 0; i < n; ++i)
    boxes.push_back(test::boxAt(random.uniform(0, side), random.uniform(0, side),
                                random.uniform(0, side), 0.5f));
  return boxes;
}

class Counted : public testing::Test {
 protected:
  static Work workOf(const char* name) {
    static Workbench<CatalogueHost> bench(1);
    static const Boxes boxes = crowd(12486);
    if (bench.leaves() == 0) bench.prepare(view(boxes));
    const auto rows = finders<CatalogueHost>();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& candidate) {
      return std::string(candidate.name) == name;
    });
    EXPECT_NE(row, rows.end());
    Work work;
    row->count(bench.findProblem(200000), work);
    return work;
  }

  static double ratio(std::uint64_t a, std::uint64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  }
};

TEST_F(Counted, HalfPairsDoAboutHalfTheTests) {
  const double half = ratio(workOf("stack, half pairs").tests, workOf("stack, leaf order").tests);
  EXPECT_GT(half, 0.4);
  EXPECT_LT(half, 0.65);
}

TEST_F(Counted, LeafOrderChangesNoCount) {
  EXPECT_EQ(workOf("stack, leaf order").tests, workOf("stack, object order").tests);
  EXPECT_EQ(workOf("stack, leaf order").nodes, workOf("stack, object order").nodes);
}

TEST_F(Counted, SimultaneousTraversalTestsLessThanIndependent) {
  EXPECT_LT(workOf("simultaneous, from the root").tests, workOf("stack, leaf order").tests / 2);
  EXPECT_GE(workOf("simultaneous, from a cut").tests, workOf("simultaneous, from the root").tests);
}

}  // namespace
}  // namespace lbvh::variants

// SPDX-License-Identifier: Zlib
// Tests the founding documents' variants on a GPU. Skipped if there is no device.
#include "benchmarks/catalogue/find_production.cuh"
#include "broadphase/cuda/runtime/space.cuh"
#include "broadphase/cuda/step.h"
#include "device_boxes.cuh"
#include "variants_checks.h"

namespace lbvh {

template <class T>
std::vector<T> download(CudaSpace& space, View<const T> there) {
  space.wait();
  return test::download(there);
}

}  // namespace lbvh

namespace lbvh::variants {
namespace {

TEST(CudaVariants, AllGiveTheSameResults) {
  const std::string why = whyNoCuda();
  if (!why.empty()) GTEST_SKIP() << why;
  cudaDeviceSetLimit(cudaLimitStackSize, 1 << 14);  // for recursion
  test::Random random(111);
  for (const std::size_t n : {0u, 1u, 2u, 3u, 33u, 300u}) {
    SCOPED_TRACE(n);
    expectAllTheSame<CatalogueCuda>(test::boxSets()[0].make(n, random));
  }
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    expectAllTheSame<CatalogueCuda>(set.make(60, random));
  }
}

}  // namespace
}  // namespace lbvh::variants

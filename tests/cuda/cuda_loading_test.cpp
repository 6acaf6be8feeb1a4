// SPDX-License-Identifier: Zlib
// Tests that all kernels are loaded when a finder is made. On the interpreter, no test of this
// program may load a kernel after that. Skipped if there is no device.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cuda_fixture.h"
#include "device_arrays.cuh"

namespace lbvh {
namespace {

using test::Boxes;
using test::view;

enum Loads { kAllowed, kRefused, kFatal };

/// @return false if this is a real device
bool setLoads(Loads loads) {
  const auto control =
      reinterpret_cast<int (*)(const char*, long)>(dlsym(RTLD_DEFAULT, "ptxvm_control"));
  return control != nullptr && control("loads_forbidden", loads) == 0;
}

/// Loads all kernels before the first test, and forbids loading kernels in the tests. Does nothing
/// when faults are injected, because the finder may then have failed to load some kernels.
class NothingLoadsLater : public testing::Environment {
  void SetUp() override {
    if (std::getenv("PTXVM_FAIL") != nullptr || !whyUnavailable(Backend::cuda).empty()) return;
    const DevicePairFinder finder;
    setLoads(kFatal);
  }
};
[[maybe_unused]] testing::Environment* const environment =
    testing::AddGlobalTestEnvironment(new NothingLoadsLater);

class CudaLoading : public test::OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (!IsSkipped() && !setLoads(kAllowed))
      GTEST_SKIP() << "a real device cannot refuse to load kernels";
    cudaDeviceReset();  // nothing is loaded now
  }
  void TearDown() override {
    const DevicePairFinder finder;
    setLoads(kFatal);
  }
};

TEST_F(CudaLoading, PairFinderLoadsAllKernelsOfItsSteps) {
  for (const Hierarchy hierarchy : {Hierarchy::wide, Hierarchy::binary}) {
    Options options;
    options.backend = Backend::cuda;
    options.hierarchy = hierarchy;
    options.threads = 1;
    setLoads(kAllowed);
    cudaDeviceReset();
    PairFinder finder(options);
    setLoads(kRefused);
    test::Random random(731);
    // 500 boxes are sorted by one kernel, 3,000 boxes by merging.
    for (const std::size_t n : {500u, 3000u}) {
      Boxes boxes = test::boxSets()[0].make(n, random);
      for (int step = 0; step < 8; ++step) {
        for (Aabb& box : boxes) box.max[0] += step < 5 ? 0.001f : 0;
        if (step >= 5) boxes[7] = boxes[10 * static_cast<std::size_t>(step)];  // few boxes change
        finder.update(view(boxes));
        finder.pairs();
        ASSERT_NE(finder.stats().backend, "host") << finder.stats().reason;
        const bool isFew = hierarchy == Hierarchy::wide && step > 4;
        EXPECT_EQ(finder.stats().searched, isFew ? 1 : n);
      }
    }
  }
}

TEST_F(CudaLoading, DevicePairFinderLoadsAllKernelsOfItsFirstSearch) {
  DevicePairFinder finder;
  setLoads(kRefused);
  test::Random random(732);
  const test::OnDevice<Aabb> boxes(test::boxSets()[0].make(3000, random));
  finder.find(DeviceScene::of(boxes.view()), {}, nullptr);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
}

}  // namespace
}  // namespace lbvh

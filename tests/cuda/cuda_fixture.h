// SPDX-License-Identifier: Zlib
// The fixture of tests that use a GPU.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "broadphase/options.h"
#include "broadphase/pair_finder.h"
#include "support.h"

namespace lbvh::test {

/// Skips if there is no device.
class OnCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("PTXVM_FAIL") != nullptr) return;  // even looking for a device may fail
    const std::string why = whyUnavailable(Backend::cuda);
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

/// Checks that the last step ran on the GPU, and that its pairs and changes equal the host
/// finder's.
inline void expectAsOnHost(PairFinder& gpu, PairFinder& host) {
  ASSERT_EQ(toVector(gpu.added()), toVector(host.added()));
  ASSERT_EQ(toVector(gpu.removed()), toVector(host.removed()));
  ASSERT_EQ(toVector(gpu.pairs()), toVector(host.pairs()));
  ASSERT_EQ(gpu.stats().oversizedBoxes, host.stats().oversizedBoxes);
  ASSERT_EQ(gpu.stats().nanBoxes, host.stats().nanBoxes);
  ASSERT_NE(gpu.stats().backend, "host") << gpu.stats().reason;
}

}  // namespace lbvh::test

// A fixture for tests that run with each set of the host's SIMD instructions.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "broadphase/host/simd/kernels.h"
#include "portable.h"

namespace lbvh::test {

/// Its parameter is a name that GPULBVH_SIMD takes.
class SimdTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setVariable("GPULBVH_SIMD", GetParam());
    if (std::string(simdKernels().name) != GetParam()) GTEST_SKIP() << "not on this processor";
  }
  void TearDown() override { unsetVariable("GPULBVH_SIMD"); }
};

inline auto everySimd() { return testing::Values("avx512", "avx2", "neon", "baseline"); }

inline std::string simdName(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace lbvh::test

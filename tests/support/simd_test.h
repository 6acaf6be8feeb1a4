// SPDX-License-Identifier: Zlib
// A fixture for tests that run with each set of the host's SIMD instructions.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "broadphase/core/compiler.h"
#include "broadphase/host/simd/kernels.h"
#include "portable.h"

namespace lbvh::test {

/// Parameter: a value of GPULBVH_SIMD.
class SimdTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(simdKernels().name) != GetParam()) GTEST_SKIP() << "not on this processor";
  }

 private:
  const ScopedVariable simd_{"GPULBVH_SIMD", GetParam()};
};

#if defined(GPULBVH_ARM64)
inline auto everySimd() { return testing::Values("neon", "baseline"); }
#else
inline auto everySimd() { return testing::Values("avx512", "avx2", "baseline"); }
#endif

inline std::string simdName(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace lbvh::test

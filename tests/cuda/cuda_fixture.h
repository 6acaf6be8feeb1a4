// SPDX-License-Identifier: Zlib
// The fixture of tests that want a GPU through the library's own face.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "broadphase/options.h"

namespace lbvh::test {

/// Skips where there is no device.
class OnCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("PTXVM_FAIL") != nullptr) return;  // even looking for a device may fail
    const std::string why = whyUnavailable(Backend::cuda);
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

}  // namespace lbvh::test

// SPDX-License-Identifier: Zlib
// The fuzz targets: each a function of bytes that returns if all it did was right, and else ends
// the process. Does not know what hands the bytes over: libFuzzer (libfuzzer.cpp), or a program
// that replays files (replay_inputs.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "broadphase/pair_finder.h"

namespace fuzz {

/// Defined by each target's file, once in a program.
void runTarget(const std::uint8_t* data, std::size_t size);

/// Finders are compared on this space as well; for the target of PairFinder.
inline lbvh::Backend otherBackend = lbvh::Backend::host;

/// Not assert: it must not depend on the build. An abort is what a fuzzer reports.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::abort();
}

}  // namespace fuzz

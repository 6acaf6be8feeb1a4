// SPDX-License-Identifier: Zlib
// The interface of fuzz targets. Each target is a function that takes bytes. It returns if all
// results were right, and otherwise aborts. The bytes come from libFuzzer (libfuzzer.cpp), or from
// a program that replays files (replay_inputs.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "broadphase/pair_finder.h"

namespace fuzz {

/// Each target defines this function, and a program has one target.
void runTarget(const std::uint8_t* data, std::size_t size);

/// The target of PairFinder also runs finders with this backend.
inline lbvh::Backend otherBackend = lbvh::Backend::host;

/// Aborts if `holds` is false, also in release builds. Fuzzers report the abort.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::abort();
}

}  // namespace fuzz

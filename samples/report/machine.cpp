// SPDX-License-Identifier: Zlib
// Collects facts about the machine and the build; see the header.
#include "report/machine.h"

#include <LinearMath/btScalar.h>
#include <fmt/format.h>

#include <utility>

#include "broadphase/pair_finder.h"
#include "revision.h"

namespace {

std::string compiler() {
#if defined(__clang__)
  return __VERSION__;
#elif defined(__GNUC__)
  return std::string("GCC ").append(__VERSION__);
#elif defined(_MSC_VER)
  return fmt::format("MSVC {}", _MSC_VER);
#else
  return "unknown";
#endif
}

std::string instructions() {
  lbvh::Options options;
  options.backend = lbvh::Backend::host;
  return lbvh::PairFinder(options).stats().instructions;
}

}  // namespace

Facts machineFacts() {
  Facts facts{{"Commit", GPULBVH_REVISION}};
  for (auto& fact : systemFacts()) facts.push_back(std::move(fact));
  facts.emplace_back("Compiler", fmt::format("{}, build type {}", compiler(), GPULBVH_BUILD_TYPE));
  facts.emplace_back("Bullet",
                     fmt::format("{}.{}, {} precision", btGetVersion() / 100, btGetVersion() % 100,
                                 sizeof(btScalar) == sizeof(double) ? "double" : "single"));
  facts.emplace_back("SIMD on the host", instructions());
  return facts;
}

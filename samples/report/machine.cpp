// SPDX-License-Identifier: Zlib
// Reads what the system and the compiler tell; see the header. Where there is no /proc, less.
#include "report/machine.h"

#include <LinearMath/btScalar.h>
#include <fmt/format.h>

#include <thread>

#include "broadphase/pair_finder.h"
#include "revision.h"
#include "support/system.h"

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

std::vector<std::pair<std::string, std::string>> machineFacts() {
  return {
      {"Commit", GPULBVH_REVISION},
      {"Processor", fmt::format("{}, {} hardware threads", processorName(),
                                std::thread::hardware_concurrency())},
      {"Memory", fmt::format("{:.0f} GiB", memoryGib())},
      {"System", systemName()},
      {"Compiler", fmt::format("{}, build type {}", compiler(), GPULBVH_BUILD_TYPE)},
      {"Bullet", fmt::format("{}.{}, {} precision", btGetVersion() / 100, btGetVersion() % 100,
                             sizeof(btScalar) == sizeof(double) ? "double" : "single")},
      {"SIMD on the host", instructions()},
  };
}

// SPDX-License-Identifier: Zlib
// Translates the names of version 0.2 to the current ones. To be removed in 0.4.
#pragma once

#include <stdexcept>
#include <string>

#include "broadphase/export.h"
#include "broadphase/options.h"

namespace lbvh {

GPULBVH_BEGIN_OLD_NAMES

inline Options withoutOldNames(Options options) {
  if (options.mappedMiB != 16) options.pinnedDeltaMiB = options.mappedMiB;
  return options;
}

/// @return a name for simdKernels(), or null for `automatic`
inline const char* nameOf(InstructionSet instructions) {
  switch (instructions) {
    case InstructionSet::automatic:
      return nullptr;
    case InstructionSet::baseline:
      return "baseline";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
    case InstructionSet::neon:
      return "neon";
  }
  return "unknown";
}
inline const char* oldInstructions(const Options& options) { return nameOf(options.instructions); }

/// @throws std::invalid_argument on Backend::automatic
inline DeviceOptions withoutOldNames(DeviceOptions options) {
  if (options.leastCapacity != 0) options.initialPairCapacity = options.leastCapacity;
  if (options.backend == Backend::host) options.memory = MemorySpace::host;
  if (options.backend == Backend::automatic)
    throw std::invalid_argument("DeviceOptions::backend is automatic: set DeviceOptions::memory");
  return options;
}

inline void copyToOldNames(Stats& stats) {
  stats.hostMedianMs = stats.hostMeanMs;
  stats.gpuMedianMs = stats.gpuMeanMs;
}

inline std::string whyNotOldInstructions(const Options& options) {
  return whyUnavailable(options.instructions);
}

GPULBVH_END_OLD_NAMES

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "broadphase/core/compiler.h"
#include "broadphase/host/simd/kernels.h"

namespace lbvh {

extern const SimdKernels kBaselineKernels;

#if defined(GPULBVH_X86_64)
extern const SimdKernels kAvx2Kernels;
extern const SimdKernels kAvx512Kernels;

namespace {

std::atomic<std::uint32_t> timesAsked{0};

/// What the system and the processor support. `registers` has the bits of XCR0: the registers that
/// the system saves. `features` has the bits of EBX in CPUID's leaf 7: the processor's features
/// (Intel, "Software Developer's Manual", volume 2A).
struct Processor {
  std::uint32_t registers = 0, features = 0;

  Processor() {
    constexpr std::uint32_t kOsxsave = 1u << 27;
    ++timesAsked;
    if (cpuid(0, 0).eax < 7 || (cpuid(1, 0).ecx & kOsxsave) == 0) return;
    registers = registersOfSystem();
    features = cpuid(7, 0).ebx;
  }
};

struct SimdSet {
  const SimdKernels* kernels;
  std::uint32_t registers, features;  ///< needed by the kernels; bits as in Processor
};

bool has(const SimdSet& set) {
  if (set.features == 0) return true;
  static const Processor processor;  // read once, because a hypervisor traps CPUID, which is slow
  return (processor.registers & set.registers) == set.registers &&
         (processor.features & set.features) == set.features;
}

constexpr std::uint32_t kYmm = 1u << 1 | 1u << 2, kZmm = kYmm | 7u << 5;
constexpr std::uint32_t kAvx2 = 1u << 3 | 1u << 5 | 1u << 8;  // BMI1, AVX2, BMI2
constexpr std::uint32_t kAvx512 =
    kAvx2 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL

/// The instruction sets, the best one first.
constexpr SimdSet kSets[] = {
    {&kAvx512Kernels, kZmm, kAvx512}, {&kAvx2Kernels, kYmm, kAvx2}, {&kBaselineKernels, 0, 0}};

}  // namespace
#else
#if defined(GPULBVH_ARM64)
extern const SimdKernels kNeonKernels;
#endif

namespace {

struct SimdSet {
  const SimdKernels* kernels;
};

bool has(const SimdSet&) { return true; }

/// The instruction sets, the best one first.
constexpr SimdSet kSets[] = {
#if defined(GPULBVH_ARM64)
    {&kNeonKernels},
#endif
    {&kBaselineKernels}};

}  // namespace
#endif

std::uint32_t timesProcessorWasAsked() {
#if defined(GPULBVH_X86_64)
  return timesAsked;
#else
  return 0;
#endif
}

const SimdKernels* simdKernels(const char* name) {
  for (const SimdSet& set : kSets)
    if (std::strcmp(name, set.kernels->name) == 0 && has(set)) return set.kernels;
  return nullptr;
}

const SimdKernels& simdKernels() {
  if (const char* name = std::getenv("GPULBVH_SIMD")) {
    const SimdKernels* named = simdKernels(name);
    return named != nullptr ? *named : kBaselineKernels;
  }
  for (const SimdSet& set : kSets)
    if (has(set)) return *set.kernels;
  return kBaselineKernels;
}

}  // namespace lbvh

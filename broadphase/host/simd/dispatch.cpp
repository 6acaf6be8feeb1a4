// SPDX-License-Identifier: Zlib
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "broadphase/core/compiler.h"
#include "broadphase/host/simd/kernels.h"

namespace lbvh {

extern const SimdKernels kBaselineKernels;

#if defined(LBVH_X86_64)
extern const SimdKernels kAvx2Kernels;
extern const SimdKernels kAvx512Kernels;

namespace {

std::atomic<std::uint32_t> timesAsked{0};

/// The registers that the system keeps, and the processor's features: bits of CPUID's leaf 7 in EBX
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

bool has(std::uint32_t registers, std::uint32_t features) {
  static const Processor processor;  // asked once: a hypervisor traps CPUID, which takes long
  return (processor.registers & registers) == registers &&
         (processor.features & features) == features;
}

constexpr std::uint32_t kYmm = 1u << 1 | 1u << 2, kZmm = kYmm | 7u << 5;
constexpr std::uint32_t kAvx2 = 1u << 3 | 1u << 5 | 1u << 8;  // BMI1, AVX2, BMI2
constexpr std::uint32_t kAvx512 =
    kAvx2 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL

}  // namespace
#elif defined(LBVH_ARM64)
extern const SimdKernels kNeonKernels;
#endif

std::uint32_t timesProcessorWasAsked() {
#if defined(LBVH_X86_64)
  return timesAsked;
#else
  return 0;
#endif
}

const SimdKernels* simdKernels(InstructionSet wanted) {
  if (wanted == InstructionSet::baseline) return &kBaselineKernels;
#if defined(LBVH_X86_64)
  if (wanted == InstructionSet::avx2) return has(kYmm, kAvx2) ? &kAvx2Kernels : nullptr;
  if (wanted == InstructionSet::avx512) return has(kZmm, kAvx512) ? &kAvx512Kernels : nullptr;
#elif defined(LBVH_ARM64)
  if (wanted == InstructionSet::neon) return &kNeonKernels;
#endif
  return wanted == InstructionSet::automatic ? &simdKernels() : nullptr;
}

const SimdKernels& simdKernels() {
  const char* name = std::getenv("GPULBVH_SIMD");
  for (const InstructionSet set :
       {InstructionSet::avx512, InstructionSet::avx2, InstructionSet::neon}) {
    const SimdKernels* kernels = simdKernels(set);
    if (kernels != nullptr && (name == nullptr || std::strcmp(name, kernels->name) == 0))
      return *kernels;
  }
  return kBaselineKernels;
}

}  // namespace lbvh

#include <cstdlib>
#include <cstring>

#include "broadphase/host/simd/kernels.h"

namespace lbvh {

extern const SimdKernels kBaselineKernels;

#if defined(__x86_64__)
extern const SimdKernels kAvx2Kernels;
extern const SimdKernels kAvx512Kernels;

namespace {

bool hasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }

bool hasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("bmi2");
}

}  // namespace
#elif defined(__aarch64__)
extern const SimdKernels kNeonKernels;
#endif

const SimdKernels* simdKernels(InstructionSet wanted) {
  if (wanted == InstructionSet::baseline) return &kBaselineKernels;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (wanted == InstructionSet::avx2) return hasAvx2() ? &kAvx2Kernels : nullptr;
  if (wanted == InstructionSet::avx512) return hasAvx512() ? &kAvx512Kernels : nullptr;
#elif defined(__aarch64__)
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

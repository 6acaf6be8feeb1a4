#include "broadphase/host/simd/kernels.h"

#include <cstdlib>
#include <cstring>

namespace lbvh {

extern const SimdKernels kBaselineKernels;

#if defined(__x86_64__)
extern const SimdKernels kAvx2Kernels;
extern const SimdKernels kAvx512Kernels;
#endif

const SimdKernels& simdKernels() {
  const char* wanted = std::getenv("GPULBVH_SIMD");
#if defined(__x86_64__)
  const auto mayBe = [wanted](const SimdKernels& kernels) {
    return wanted == nullptr || std::strcmp(wanted, kernels.name) == 0;
  };
  __builtin_cpu_init();
  if (mayBe(kAvx512Kernels) && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
    return kAvx512Kernels;
  if (mayBe(kAvx2Kernels) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
    return kAvx2Kernels;
#else
  (void)wanted;
#endif
  return kBaselineKernels;
}

}  // namespace lbvh

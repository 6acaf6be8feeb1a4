// SPDX-License-Identifier: Zlib
// Implements the host's inner loops with AVX-512: sixteen lanes are one register.
#include "broadphase/host/simd/target.h"

#if defined(GPULBVH_X86_64)
GPULBVH_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,popcnt")

namespace lbvh {
namespace avx512 {
namespace {

struct Simd {
  static constexpr const char* kName = "avx512";
  static constexpr std::uint32_t kWidth = 16;
  static constexpr bool kUsesShorts = false;  // sixteen floats fit into a register

  static void leave() { _mm256_zeroupper(); }

  struct Box {
    __m512 corners[6];
    Box(const BoxBlock& block, std::uint32_t lane) {
      for (int k = 0; k < 6; ++k) corners[k] = _mm512_set1_ps(block.corners[k][lane]);
    }
  };

  static void load(const float* const (&fours)[4], Lanes<float, 16>& out) {
    __m512 all = _mm512_castps128_ps512(_mm_loadu_ps(fours[0]));
    all = _mm512_insertf32x4(all, _mm_loadu_ps(fours[1]), 1);
    all = _mm512_insertf32x4(all, _mm_loadu_ps(fours[2]), 2);
    all = _mm512_insertf32x4(all, _mm_loadu_ps(fours[3]), 3);
    std::memcpy(&out, &all, sizeof out);
  }

  /// Tests the signs of six differences, which are correct for all finite numbers. That takes half
  /// the time of six comparisons into mask registers.
  static std::uint32_t overlaps(const Box& box, const float* first, std::size_t stride) {
    __m512i apart[6];
    for (std::size_t k = 0; k < 3; ++k) {
      const __m512 lo = _mm512_loadu_ps(first + k * stride);
      const __m512 hi = _mm512_loadu_ps(first + (k + 3) * stride);
      apart[k] = _mm512_castps_si512(_mm512_sub_ps(box.corners[k + 3], lo));
      apart[k + 3] = _mm512_castps_si512(_mm512_sub_ps(hi, box.corners[k]));
    }
    constexpr int kOr = 0xFE;
    const __m512i any =
        _mm512_or_si512(_mm512_ternarylogic_epi32(apart[0], apart[1], apart[2], kOr),
                        _mm512_ternarylogic_epi32(apart[3], apart[4], apart[5], kOr));
    return _mm512_cmpge_epi32_mask(any, _mm512_setzero_si512());
  }

  static std::uint32_t greater(const std::uint32_t* indices, int index) {
    return _mm512_cmpgt_epi32_mask(_mm512_loadu_si512(indices), _mm512_set1_epi32(index));
  }

  static std::uint32_t shouldCollide(const FilterBlock& filters, std::uint32_t lane,
                                     const FilterBlock& others) {
    const __mmask16 theirs = _mm512_test_epi32_mask(_mm512_load_si512(others.mask),
                                                    _mm512_set1_epi32(filters.group[lane]));
    return _mm512_mask_test_epi32_mask(theirs, _mm512_load_si512(others.group),
                                       _mm512_set1_epi32(filters.mask[lane]));
  }

  // Compresses in a register, because compressing stores are slow on some processors.
  template <class T>
  static void append(T* out, const T* in, std::uint32_t bits) {
    _mm512_storeu_si512(
        out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), _mm512_loadu_si512(in)));
  }

  static constexpr std::uint32_t kRow = 16;

  static PairMasks compareEight(const Pair* a, const Pair* b) {
    // Puts `first` into the high half. Uses a mask, because GCC 12 warns about the form without a
    // mask.
    const __m512i x = _mm512_maskz_rol_epi64(0xFF, _mm512_loadu_si512(a), 32);
    const __m512i y = _mm512_maskz_rol_epi64(0xFF, _mm512_loadu_si512(b), 32);
    return {_mm512_cmpneq_epi64_mask(x, y), _mm512_cmplt_epi64_mask(x, y)};
  }

  static std::uint32_t differEight(const BlockHits* a, const BlockHits* b) {
    return _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(a), _mm512_loadu_si512(b));
  }
};

#include "broadphase/host/simd/kernels.inl"

}  // namespace
}  // namespace avx512

extern const SimdKernels kAvx512Kernels = avx512::kKernels;

}  // namespace lbvh

GPULBVH_END_TARGET
#endif

// SPDX-License-Identifier: Zlib
// Implements the host's inner loops with AVX2: sixteen lanes are two registers.
#include "broadphase/host/simd/target.h"

#if defined(GPULBVH_X86_64)
#include <array>

namespace lbvh {
namespace {

/// For each mask of eight lanes, the numbers of the lanes whose bits are set, as bytes.
constexpr std::array<std::uint64_t, 256> kLanesOf = [] {
  std::array<std::uint64_t, 256> lanes{};
  for (std::uint32_t mask = 0; mask < 256; ++mask)
    for (std::uint64_t lane = 0, at = 0; lane < 8; ++lane)
      if ((mask >> lane & 1) != 0) lanes[mask] |= lane << 8 * at++;
  return lanes;
}();

}  // namespace
}  // namespace lbvh

GPULBVH_BEGIN_TARGET("avx2,bmi,bmi2,popcnt")

namespace lbvh {
namespace avx2 {
namespace {

struct Simd {
  static constexpr const char* kName = "avx2";
  static constexpr std::uint32_t kWidth = 8;
  static constexpr bool kUsesShorts = true;

  static void leave() { _mm256_zeroupper(); }

  struct Box {
    __m256 corners[6];
    Box(const BoxBlock& block, std::uint32_t lane) {
      for (int k = 0; k < 6; ++k) corners[k] = _mm256_set1_ps(block.corners[k][lane]);
    }
  };

  static void load(const float* const (&fours)[2], Lanes<float, 8>& out) {
    const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(fours[0]));
    const __m256 both = _mm256_insertf128_ps(low, _mm_loadu_ps(fours[1]), 1);
    std::memcpy(&out, &both, sizeof out);
  }

  /// The maxima of a box, and its negated minima.
  struct ShortBox {
    __m256i corners[6];
    void set(const ShortBlock& block, std::uint32_t lane) {
      for (int k = 0; k < 6; ++k) corners[k] = _mm256_set1_epi16(block.corners[k][lane]);
    }
  };

  /// Tests the minimum of six differences. It is negative if the boxes are apart, positive if they
  /// overlap, and 0 if 16 bits cannot tell.
  static ShortHits overlaps(const ShortBox& box, const ShortBlock& block) {
    const auto apart = [&](int k) {
      return _mm256_subs_epi16(box.corners[k], load(block.corners[k]));
    };
    const auto smaller = [&](int k) { return _mm256_min_epi16(apart(k), apart(k + 3)); };
    const __m256i least = _mm256_min_epi16(_mm256_min_epi16(smaller(0), smaller(1)), smaller(2));
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));
    const int none = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
    return {0xFFFFu & ~static_cast<std::uint32_t>(_mm_movemask_epi8(bytes)), none == 0};
  }

  static std::uint32_t overlaps(const Box& box, const float* first, std::size_t stride) {
    return overlapsEight(box, first, stride) | overlapsEight(box, first + 8, stride) << 8;
  }

  /// Tests the signs of six differences, which are correct for all finite numbers.
  static std::uint32_t overlapsEight(const Box& box, const float* first, std::size_t stride) {
    __m256 apart = _mm256_setzero_ps();
    for (std::size_t k = 0; k < 3; ++k) {
      const __m256 lo = _mm256_loadu_ps(first + k * stride);
      const __m256 hi = _mm256_loadu_ps(first + (k + 3) * stride);
      apart = _mm256_or_ps(apart, _mm256_or_ps(_mm256_sub_ps(box.corners[k + 3], lo),
                                               _mm256_sub_ps(hi, box.corners[k])));
    }
    return 0xFFu & ~static_cast<std::uint32_t>(_mm256_movemask_ps(apart));
  }

  // Indices are below 2^31, so a signed comparison is correct.
  static std::uint32_t greater(const std::uint32_t* indices, int index) {
    const __m256i than = _mm256_set1_epi32(index);
    return bits(_mm256_cmpgt_epi32(load(indices), than)) |
           bits(_mm256_cmpgt_epi32(load(indices + 8), than)) << 8;
  }

  static std::uint32_t shouldCollide(const FilterBlock& filters, std::uint32_t lane,
                                     const FilterBlock& others) {
    const __m256i group = _mm256_set1_epi32(filters.group[lane]);
    const __m256i mask = _mm256_set1_epi32(filters.mask[lane]);
    const auto unwanted = [&](std::uint32_t from) {
      const __m256i zero = _mm256_setzero_si256();
      const __m256i theirs = _mm256_and_si256(load(others.mask + from), group);
      const __m256i mine = _mm256_and_si256(load(others.group + from), mask);
      return bits(
          _mm256_or_si256(_mm256_cmpeq_epi32(theirs, zero), _mm256_cmpeq_epi32(mine, zero)));
    };
    return 0xFFFFu & ~(unwanted(0) | unwanted(8) << 8);
  }

  template <class T>
  static void append(T* out, const T* in, std::uint32_t bits) {
    const std::uint32_t low = bits & 0xFFu, high = bits >> 8;
    appendEight(out, in, low);
    appendEight(out + std::popcount(low), in + 8, high);
  }

  static constexpr std::uint32_t kRow = 8;

  static PairMasks compareEight(const Pair* a, const Pair* b) {
    const PairMasks low = compareFour(a, b), high = compareFour(a + 4, b + 4);
    return {low.differ | high.differ << 4, low.less | high.less << 4};
  }

  static std::uint32_t differEight(const BlockHits* a, const BlockHits* b) {
    const auto equalFour = [&](int from) {
      const __m256i equal = _mm256_cmpeq_epi64(load(a + from), load(b + from));
      return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(equal)));
    };
    return 0xFFu & ~(equalFour(0) | equalFour(4) << 4);
  }

 private:
  template <class T>
  static __m256i load(const T* in) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
  }

  static PairMasks compareFour(const Pair* a, const Pair* b) {
    constexpr int kSwapHalves = 0xB1;  // puts `first` into the high half
    const __m256i x = _mm256_shuffle_epi32(load(a), kSwapHalves);
    const __m256i y = _mm256_shuffle_epi32(load(b), kSwapHalves);
    const auto wide = [](__m256i lanes) {
      return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(lanes)));
    };
    return {0xFu & ~wide(_mm256_cmpeq_epi64(x, y)), wide(_mm256_cmpgt_epi64(y, x))};
  }

  static std::uint32_t bits(__m256i lanes) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
  }

  static __m256i lanesOf(std::uint32_t bits) {
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(kLanesOf[bits])));
  }

  template <class T>
  static void appendEight(T* out, const T* in, std::uint32_t bits) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                        _mm256_permutevar8x32_epi32(load(in), lanesOf(bits)));
  }
};

#include "broadphase/host/simd/kernels.inl"

}  // namespace
}  // namespace avx2

extern const SimdKernels kAvx2Kernels = avx2::kKernels;

}  // namespace lbvh

GPULBVH_END_TARGET
#endif

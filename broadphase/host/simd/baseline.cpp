// SPDX-License-Identifier: Zlib
// Implements the host's inner loops for every processor: with SSE2 if the compiler may use it (on
// every x86-64), else with plain loops.
#include "broadphase/host/simd/target.h"

namespace lbvh {
namespace baseline {
namespace {

struct Simd {
  static constexpr const char* kName = "baseline";
  static constexpr std::uint32_t kWidth = 4;
  static constexpr bool kUsesShorts = true;

  static void leave() {}

  struct Box {
    float corners[6];
    Box(const BoxBlock& block, std::uint32_t lane) {
      for (int k = 0; k < 6; ++k) corners[k] = block.corners[k][lane];
    }
  };

  static void load(const float* const (&fours)[1], Lanes<float, 4>& out) {
    std::memcpy(&out, fours[0], sizeof out);
  }

  /// The maxima of a box, and its negated minima.
  struct ShortBox {
    alignas(16) std::int16_t corners[6][8];
    void set(const ShortBlock& block, std::uint32_t lane) {
      for (int k = 0; k < 6; ++k) std::fill_n(corners[k], 8, block.corners[k][lane]);
    }
  };

  /// Tests the minimum of six differences. It is negative if the boxes are apart, positive if they
  /// overlap, and 0 if 16 bits cannot tell.
  static ShortHits overlaps(const ShortBox& box, const ShortBlock& block) {
#if defined(GPULBVH_SSE2)
    const __m128i bytes = _mm_packs_epi16(leastOfEight(box, block, 0), leastOfEight(box, block, 8));
    const int none = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
    return {0xFFFFu & ~static_cast<std::uint32_t>(_mm_movemask_epi8(bytes)), none == 0};
#else
    ShortHits hits{0, true};
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      int least = box.corners[0][0] - block.corners[0][i];
      for (int k = 1; k < 6; ++k) least = std::min(least, box.corners[k][0] - block.corners[k][i]);
      hits.bits |= static_cast<std::uint32_t>(least >= 0) << i;
      hits.areSure &= least != 0;
    }
    return hits;
#endif
  }

  static std::uint32_t overlaps(const Box& box, const float* first, std::size_t stride) {
    std::uint32_t bits = 0;
    for (std::uint32_t from = 0; from < kLanes; from += 4)
      bits |= overlapsFour(box, first + from, stride) << from;
    return bits;
  }

  static std::uint32_t greater(const std::uint32_t* indices, int index) {
    return bitsOf([=](std::uint32_t i) { return static_cast<int>(indices[i]) > index; });
  }

  static std::uint32_t shouldCollide(const FilterBlock& filters, std::uint32_t lane,
                                     const FilterBlock& others) {
    const Filter mine{filters.group[lane], filters.mask[lane]};
    return bitsOf([&](std::uint32_t i) {
      return lbvh::shouldCollide(mine, Filter{others.group[i], others.mask[i]});
    });
  }

  template <class T>
  static void append(T* out, const T* in, std::uint32_t bits) {
    for (; bits != 0; bits &= bits - 1) *out++ = in[std::countr_zero(bits)];
  }

  static constexpr std::uint32_t kRow = 4;

  static PairMasks compareEight(const Pair* a, const Pair* b) {
    PairMasks masks{};
    for (std::uint32_t i = 0; i < 8; ++i) {
      masks.differ |= static_cast<std::uint32_t>(a[i] != b[i]) << i;
      masks.less |= static_cast<std::uint32_t>(a[i] < b[i]) << i;
    }
    return masks;
  }

  static std::uint32_t differEight(const BlockHits* a, const BlockHits* b) {
    std::uint32_t differ = 0;
    for (std::uint32_t i = 0; i < 8; ++i)
      differ |= static_cast<std::uint32_t>(a[i].number != b[i].number) << i;
    return differ;
  }

 private:
  template <class Test>
  static std::uint32_t bitsOf(const Test& test) {
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < kLanes; ++i) bits |= static_cast<std::uint32_t>(test(i)) << i;
    return bits;
  }

#if defined(GPULBVH_SSE2)
  static __m128i leastOfEight(const ShortBox& box, const ShortBlock& block, std::uint32_t from) {
    const auto apart = [&](int k) {
      const auto load = [](const std::int16_t* eight) {
        return _mm_load_si128(reinterpret_cast<const __m128i*>(eight));
      };
      return _mm_subs_epi16(load(box.corners[k]), load(block.corners[k] + from));
    };
    __m128i least = apart(0);
    for (int k = 1; k < 6; ++k) least = _mm_min_epi16(least, apart(k));
    return least;
  }
#endif

  static std::uint32_t overlapsFour(const Box& box, const float* first, std::size_t stride) {
#if defined(GPULBVH_SSE2)
    __m128 together = _mm_castsi128_ps(_mm_set1_epi32(-1));
    for (std::size_t k = 0; k < 3; ++k) {
      const __m128 lo = _mm_loadu_ps(first + k * stride);
      const __m128 hi = _mm_loadu_ps(first + (k + 3) * stride);
      together = _mm_and_ps(together, _mm_cmple_ps(lo, _mm_set1_ps(box.corners[k + 3])));
      together = _mm_and_ps(together, _mm_cmpge_ps(hi, _mm_set1_ps(box.corners[k])));
    }
    return static_cast<std::uint32_t>(_mm_movemask_ps(together));
#else
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      bool together = true;
      for (int k = 0; k < 3; ++k)
        together &= (first[k * stride + i] <= box.corners[k + 3]) &
                    (box.corners[k] <= first[(k + 3) * stride + i]);
      bits |= static_cast<std::uint32_t>(together) << i;
    }
    return bits;
#endif
  }
};

#include "broadphase/host/simd/kernels.inl"

}  // namespace
}  // namespace baseline

extern const SimdKernels kBaselineKernels = baseline::kKernels;

}  // namespace lbvh

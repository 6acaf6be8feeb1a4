// SPDX-License-Identifier: Zlib
// Implements the host's inner loops with NEON, which every 64-bit ARM processor has. Sixteen lanes
// are four registers.
#include "broadphase/host/simd/target.h"

#if defined(GPULBVH_ARM64)
#include <array>

namespace lbvh {
namespace neon {
namespace {

/// For each mask of four lanes, the indices of the bytes of the lanes whose bits are set.
constexpr auto kBytesOf = [] {
  std::array<std::array<std::uint8_t, 16>, 16> bytes{};
  for (std::uint32_t mask = 0; mask < 16; ++mask)
    for (std::uint32_t lane = 0, at = 0; lane < 4; ++lane)
      for (std::uint32_t byte = 0; byte < 4 && (mask >> lane & 1) != 0; ++byte)
        bytes[mask][at++] = static_cast<std::uint8_t>(4 * lane + byte);
  return bytes;
}();

struct Simd {
  static constexpr const char* kName = "neon";
  static constexpr std::uint32_t kWidth = 4;
  static constexpr bool kUsesShorts = true;

  static void leave() {}

  struct Box {
    float32x4_t corners[6];
    Box(const BoxBlock& block, std::uint32_t lane) {
      for (int k = 0; k < 6; ++k) corners[k] = vdupq_n_f32(block.corners[k][lane]);
    }
  };

  static void load(const float* const (&fours)[1], Lanes<float, 4>& out) {
    std::memcpy(&out, fours[0], sizeof out);
  }

  /// The maxima of a box, and its negated minima.
  struct ShortBox {
    int16x8_t corners[6];
    void set(const ShortBlock& block, std::uint32_t lane) {
      for (int k = 0; k < 6; ++k) corners[k] = vdupq_n_s16(block.corners[k][lane]);
    }
  };

  /// Tests the minimum of six differences. It is negative if the boxes are apart, positive if they
  /// overlap, and 0 if 16 bits cannot tell.
  static ShortHits overlaps(const ShortBox& box, const ShortBlock& block) {
    const auto eight = [&](std::size_t from) {
      const auto apart = [&](int k) {
        return vqsubq_s16(box.corners[k], vld1q_s16(block.corners[k] + from));
      };
      int16x8_t least = apart(0);
      for (int k = 1; k < 6; ++k) least = vminq_s16(least, apart(k));
      return vqmovn_s16(least);
    };
    const int8x16_t bytes = vcombine_s8(eight(0), eight(8));
    return {bits(vcgezq_s8(bytes)), vmaxvq_u8(vceqzq_s8(bytes)) == 0};
  }

  /// Tests the signs of six differences, which are correct for all finite numbers.
  static std::uint32_t overlaps(const Box& box, const float* first, std::size_t stride) {
    const auto apart = [&](std::size_t from) {
      uint32x4_t any = vdupq_n_u32(0);
      for (std::size_t k = 0; k < 3; ++k) {
        const float32x4_t lo = vld1q_f32(first + k * stride + from);
        const float32x4_t hi = vld1q_f32(first + (k + 3) * stride + from);
        any = vorrq_u32(any, vreinterpretq_u32_f32(vsubq_f32(box.corners[k + 3], lo)));
        any = vorrq_u32(any, vreinterpretq_u32_f32(vsubq_f32(hi, box.corners[k])));
      }
      return any;
    };
    return bits(vcgezq_s8(vreinterpretq_s8_u8(topBytes(apart(0), apart(4), apart(8), apart(12)))));
  }

  // Indices are below 2^31, so a signed comparison is correct.
  static std::uint32_t greater(const std::uint32_t* indices, int index) {
    const int32x4_t than = vdupq_n_s32(index);
    const auto four = [&](std::size_t from) {
      return vcgtq_s32(vreinterpretq_s32_u32(vld1q_u32(indices + from)), than);
    };
    return bits(topBytes(four(0), four(4), four(8), four(12)));
  }

  static std::uint32_t shouldCollide(const FilterBlock& filters, std::uint32_t lane,
                                     const FilterBlock& others) {
    const int32x4_t group = vdupq_n_s32(filters.group[lane]);
    const int32x4_t mask = vdupq_n_s32(filters.mask[lane]);
    const auto four = [&](std::size_t from) {
      return vandq_u32(vtstq_s32(vld1q_s32(others.mask + from), group),
                       vtstq_s32(vld1q_s32(others.group + from), mask));
    };
    return bits(topBytes(four(0), four(4), four(8), four(12)));
  }

  template <class T>
  static void append(T* out, const T* in, std::uint32_t bits) {
    static_assert(sizeof(T) == 4);
    for (std::size_t from = 0; from < kLanes; from += 4, bits >>= 4) {
      const std::uint32_t four = bits & 15;
      const uint8x16_t lanes = vld1q_u8(reinterpret_cast<const std::uint8_t*>(in + from));
      vst1q_u8(reinterpret_cast<std::uint8_t*>(out),
               vqtbl1q_u8(lanes, vld1q_u8(kBytesOf[four].data())));
      out += std::popcount(four);
    }
  }

  static constexpr std::uint32_t kRow = 4;

  static PairMasks compareEight(const Pair* a, const Pair* b) {
    uint64x2_t equal[4], less[4];
    for (int k = 0; k < 4; ++k) {
      const uint64x2_t x = load(a + 2 * k), y = load(b + 2 * k);
      equal[k] = vceqq_u64(x, y);
      less[k] = vcltq_u64(x, y);
    }
    return {0xFFu & ~bitsOfEight(equal), bitsOfEight(less)};
  }

  static std::uint32_t differEight(const BlockHits* a, const BlockHits* b) {
    uint64x2_t equal[4];
    for (int k = 0; k < 4; ++k)
      equal[k] = vceqq_u64(vld1q_u64(&a[2 * k].number), vld1q_u64(&b[2 * k].number));
    return 0xFFu & ~bitsOfEight(equal);
  }

 private:
  /// Two pairs as 64-bit numbers, which compare like the pairs: `first` is in the high half.
  static uint64x2_t load(const Pair* pairs) {
    return vreinterpretq_u64_u32(vrev64q_u32(vld1q_u32(&pairs->first)));
  }

  /// The most significant byte of each of sixteen words.
  static uint8x16_t topBytes(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
    const uint16x8_t low = vuzp2q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
    const uint16x8_t high = vuzp2q_u16(vreinterpretq_u16_u32(c), vreinterpretq_u16_u32(d));
    return vuzp2q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
  }

  /// A bit for each byte of a mask. The bytes must be 0 or 255.
  static std::uint32_t bits(uint8x16_t bytes) {
    constexpr std::uint8_t kBits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x8_t bit = vld1_u8(kBits);
    const std::uint32_t low = vaddv_u8(vand_u8(vget_low_u8(bytes), bit));
    const std::uint32_t high = vaddv_u8(vand_u8(vget_high_u8(bytes), bit));
    return low | high << 8;
  }

  /// A bit for each lane of four masks of two lanes.
  static std::uint32_t bitsOfEight(const uint64x2_t (&lanes)[4]) {
    const auto halves = [](uint64x2_t a, uint64x2_t b) {
      return vuzp1q_u32(vreinterpretq_u32_u64(a), vreinterpretq_u32_u64(b));
    };
    const uint32x4_t none = vdupq_n_u32(0);
    return bits(topBytes(halves(lanes[0], lanes[1]), halves(lanes[2], lanes[3]), none, none));
  }
};

#include "broadphase/host/simd/kernels.inl"

}  // namespace
}  // namespace neon

extern const SimdKernels kNeonKernels = neon::kKernels;

}  // namespace lbvh
#endif

// SPDX-License-Identifier: Zlib
// Finds the candidates of a box that have begun or ceased to overlap it. Included by kernels.inl.

/// Tests a box against others, one at a time.
class OverlapTest {
 public:
#if defined(GPULBVH_SSE2)
  explicit OverlapTest(const Aabb& box)
      : max_(_mm_setr_ps(box.max[0], box.max[1], box.max[2], kInfinity)),
        min_(_mm_setr_ps(-kInfinity, box.min[0], box.min[1], box.min[2])) {}

  bool operator()(const Aabb& other) const {
    // Compares the first four and the last four of the six numbers. The first four include a
    // maximum and the last four a minimum. These two are compared with infinity, which only a NaN
    // fails.
    const auto* const numbers = reinterpret_cast<const float*>(&other);
    const __m128 below = _mm_cmple_ps(_mm_loadu_ps(numbers), max_);
    const __m128 above = _mm_cmpge_ps(_mm_loadu_ps(numbers + 2), min_);
    return _mm_movemask_ps(_mm_and_ps(below, above)) == 15;
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  static_assert(sizeof(Aabb) == 6 * sizeof(float), "min, then max");
  __m128 max_, min_;
#elif defined(GPULBVH_ARM64)
  explicit OverlapTest(const Aabb& box) {
    const float max[4] = {box.max[0], box.max[1], box.max[2], kInfinity};
    const float min[4] = {-kInfinity, box.min[0], box.min[1], box.min[2]};
    max_ = vld1q_f32(max);
    min_ = vld1q_f32(min);
  }

  /// Makes the same comparisons as the version with SSE2 above.
  bool operator()(const Aabb& other) const {
    const auto* const numbers = reinterpret_cast<const float*>(&other);
    const uint32x4_t below = vcleq_f32(vld1q_f32(numbers), max_);
    const uint32x4_t above = vcgeq_f32(vld1q_f32(numbers + 2), min_);
    return vminvq_u32(vandq_u32(below, above)) != 0;
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float32x4_t max_, min_;
#else
  explicit OverlapTest(const Aabb& box) : box_(box) {}
  bool operator()(const Aabb& other) const { return overlap(box_, other); }

 private:
  const Aabb box_;
#endif
};

std::uint64_t findFlips(const Aabb* boxes, const Aabb& box, const std::uint32_t* candidates,
                        std::uint32_t count) {
  const OverlapTest overlaps(box);
  std::uint64_t flips = 0;
  for (std::uint32_t k = 0; k < count; ++k) {
    const bool is = overlaps(boxes[candidates[k] & kCandidateIndex]);
    flips |= std::uint64_t{is != ((candidates[k] & kCandidateOverlaps) != 0)} << k;
  }
  return flips;
}

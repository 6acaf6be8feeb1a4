// SPDX-License-Identifier: Zlib
// Tests a box against other boxes, one by one or a whole block at once. Not installed.
#pragma once

#include <LinearMath/btScalar.h>

#include <cstddef>
#include <cstdint>

#include "broadphase/core/compiler.h"
#include "broadphase/types.h"

class GpuLbvhBoxTest {
 public:
  /// @param box overlaps nothing if it has a NaN
  template <class Box>
  explicit GpuLbvhBoxTest(const Box& box)
      : min{box.min[0], box.min[1], box.min[2]}, max{box.max[0], box.max[1], box.max[2]} {}

  template <class Box>
  bool operator()(const Box& other) const {
    return lbvh::overlap(*this, other);
  }

  /// Tests several boxes at once. Bit i of the result is set if box i overlaps.
  /// @param corners minima of all boxes on each axis, then their maxima
  template <std::size_t kCount>
  std::uint32_t lanes(const float (&corners)[6][kCount]) const {
    std::uint32_t bits = 0;
#if defined(GPULBVH_SSE2) && !defined(BT_USE_DOUBLE_PRECISION)
    static_assert(kCount % 4 == 0);
    for (std::size_t i = 0; i < kCount; i += 4) {
      __m128 hits = _mm_castsi128_ps(_mm_set1_epi32(-1));
      for (int axis = 0; axis < 3; ++axis) {
        hits =
            _mm_and_ps(hits, _mm_cmple_ps(_mm_loadu_ps(&corners[axis][i]), _mm_set1_ps(max[axis])));
        hits = _mm_and_ps(
            hits, _mm_cmpge_ps(_mm_loadu_ps(&corners[3 + axis][i]), _mm_set1_ps(min[axis])));
      }
      bits |= static_cast<std::uint32_t>(_mm_movemask_ps(hits)) << i;
    }
#else
    for (std::size_t i = 0; i < kCount; ++i) {
      bool isHit = true;
      for (int axis = 0; axis < 3; ++axis)
        isHit &= (corners[axis][i] <= max[axis]) & (corners[3 + axis][i] >= min[axis]);
      bits |= std::uint32_t{isHit} << i;
    }
#endif
    return bits;
  }

  const btScalar min[3], max[3];
};

// SPDX-License-Identifier: Zlib
// Instruction semantics: rounding, saturation, subnormal values and NaN.
#pragma once
#include <cfenv>
#include <cmath>
#include <type_traits>

#include "ptxvm.h"

static inline void rnd_set(u8 r) {
  fesetround(r == 1 ? FE_TOWARDZERO : r == 2 ? FE_DOWNWARD : r == 3 ? FE_UPWARD : FE_TONEAREST);
}
template <class T>
static inline T satv(T v) {
  if (std::isnan((double)v)) return (T)0;
  return v < (T)0 ? (T)0 : v > (T)1 ? (T)1 : v;
}
template <class T>
static inline T ftzv(T v, bool z) {
  if constexpr (std::is_same_v<T, f32>) {
    if (z && std::fpclassify(v) == FP_SUBNORMAL) return std::copysign(0.0f, v);
  }
  return v;
}
// Arithmetic results that are NaN become 0x7fffffff in single precision and 0x7fff in half precision.
template <class T>
static inline T canonical_nan(T r) {
  if constexpr (std::is_same_v<T, f64>) return r;
  if (r == r) return r;
  u32 w = std::is_same_v<T, f16> ? 0x7fff : 0x7fffffff;
  memcpy(&r, &w, sizeof(T));
  return r;
}

// SPDX-License-Identifier: Zlib
// Several numbers that are calculated with at once: the vector types of GCC and Clang, whose
// operators take whatever registers the function may use that they are in. Other compilers get a
// struct with plain loops and the same operators, and so does a build with LBVH_PLAIN_LANES, to
// test that. lanes.inl has what a struct has no operators for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/core/compiler.h"

#if defined(LBVH_GNU) && !defined(LBVH_PLAIN_LANES)
#define LBVH_VECTOR_TYPES 1
#endif

namespace lbvh {

#if defined(LBVH_VECTOR_TYPES)

template <class T, std::size_t kCount>
struct LanesOf {
  typedef T Type __attribute__((vector_size(sizeof(T) * kCount)));
};
template <class T, std::size_t kCount>
using Lanes = typename LanesOf<T, kCount>::Type;

#else

template <class T, std::size_t kCount>
struct Lanes {
  T lanes[kCount];

  T& operator[](std::size_t i) { return lanes[i]; }
  const T& operator[](std::size_t i) const { return lanes[i]; }

  /// What stands on a side of an operator: a vector, or a number for all lanes.
  struct Operand {
    Operand(const Lanes& vector) : lanes(vector) {}
    Operand(T number) {
      for (T& lane : lanes.lanes) lane = number;
    }
    Lanes lanes;
  };
  using Mask = Lanes<std::int32_t, kCount>;

  template <class Result = Lanes, class F>
  static Result each(const Operand& a, const Operand& b, const F& f) {
    Result result;
    for (std::size_t i = 0; i < kCount; ++i) result[i] = f(a.lanes[i], b.lanes[i]);
    return result;
  }

#define LBVH_OPERATOR(op)                                               \
  friend Lanes operator op(const Operand& a, const Operand& b) {        \
    return each(a, b, [](T x, T y) { return static_cast<T>(x op y); }); \
  }                                                                     \
  friend Lanes& operator op##=(Lanes& a, const Operand& b) { return a = Operand(a) op b; }
  LBVH_OPERATOR(+)
  LBVH_OPERATOR(-)
  LBVH_OPERATOR(*)
  LBVH_OPERATOR(&)
  LBVH_OPERATOR(|)
  LBVH_OPERATOR(^)
  LBVH_OPERATOR(<<)
  LBVH_OPERATOR(>>)
#undef LBVH_OPERATOR
#define LBVH_COMPARISON(op)                                            \
  friend Mask operator op(const Operand& a, const Operand& b) {        \
    return each<Mask>(a, b, [](T x, T y) { return x op y ? -1 : 0; }); \
  }
  LBVH_COMPARISON(<)
  LBVH_COMPARISON(<=)
  LBVH_COMPARISON(>)
  LBVH_COMPARISON(>=)
  LBVH_COMPARISON(!=)
#undef LBVH_COMPARISON
  Lanes operator-() const { return T(0) - *this; }
  Lanes operator~() const { return *this ^ static_cast<T>(-1); }
};

#endif

}  // namespace lbvh

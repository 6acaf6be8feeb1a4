// SPDX-License-Identifier: Zlib
// Defines vectors of several numbers. With GCC and Clang they are the compiler's vector types,
// whose operators use the instruction set of the enclosing function. Other compilers get a struct
// with plain loops and the same operators. A build with GPULBVH_PLAIN_LANES also uses the struct,
// to test it. lanes.inl has the functions that are not operators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/core/compiler.h"

#if defined(GPULBVH_GNU) && !defined(GPULBVH_PLAIN_LANES)
#define GPULBVH_VECTOR_TYPES 1
#endif

namespace lbvh {

#if defined(GPULBVH_VECTOR_TYPES)

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

  /// An operand of an operator: a vector, or one number for all lanes.
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

#define GPULBVH_OPERATOR(op)                                            \
  friend Lanes operator op(const Operand& a, const Operand& b) {        \
    return each(a, b, [](T x, T y) { return static_cast<T>(x op y); }); \
  }                                                                     \
  friend Lanes& operator op##=(Lanes& a, const Operand& b) { return a = Operand(a) op b; }
  GPULBVH_OPERATOR(+)
  GPULBVH_OPERATOR(-)
  GPULBVH_OPERATOR(*)
  GPULBVH_OPERATOR(&)
  GPULBVH_OPERATOR(|)
  GPULBVH_OPERATOR(^)
  GPULBVH_OPERATOR(<<)
  GPULBVH_OPERATOR(>>)
#undef GPULBVH_OPERATOR
#define GPULBVH_COMPARISON(op)                                         \
  friend Mask operator op(const Operand& a, const Operand& b) {        \
    return each<Mask>(a, b, [](T x, T y) { return x op y ? -1 : 0; }); \
  }
  GPULBVH_COMPARISON(<)
  GPULBVH_COMPARISON(<=)
  GPULBVH_COMPARISON(>)
  GPULBVH_COMPARISON(>=)
  GPULBVH_COMPARISON(!=)
#undef GPULBVH_COMPARISON
  Lanes operator-() const { return T(0) - *this; }
  Lanes operator~() const { return *this ^ static_cast<T>(-1); }
};

#endif

}  // namespace lbvh

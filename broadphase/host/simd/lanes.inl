// SPDX-License-Identifier: Zlib
// Defines the functions on Lanes that are not operators. Each file that uses these functions
// includes this file in its own namespace, among functions for the same instruction set. Otherwise
// the functions would be slow: GCC lowers vector operations by the target of the enclosing
// function, before inlining. No pragma once.

#if defined(GPULBVH_VECTOR_TYPES)

/// Per lane: mask ? a : b.
template <class Mask, class Vector>
inline void select(const Mask& mask, const Vector& a, const Vector& b, Vector& out) {
  out = mask ? a : b;
}

/// Per lane: the minimum or the maximum. A select() of a comparison would not become one
/// instruction.
template <class Vector>
inline void least(const Vector& a, const Vector& b, Vector& out) {
  out = a < b ? a : b;
}
template <class Vector>
inline void greatest(const Vector& a, const Vector& b, Vector& out) {
  out = a < b ? b : a;
}

/// Converts floats to integers, rounded towards zero. They must be in the range of the integers.
template <class Floats, class Integers>
inline void toIntegers(const Floats& floats, Integers& out) {
  out = __builtin_convertvector(floats, Integers);
}

template <std::size_t kCount>
inline void writeShorts(const Lanes<std::int32_t, kCount>& integers, std::int16_t* out) {
  const auto shorts = __builtin_convertvector(integers, Lanes<std::int16_t, kCount>);
  std::memcpy(out, &shorts, sizeof shorts);
}

/// Lane i of `out` becomes lane from(i) of a followed by b.
template <class Vector, class From, std::uint32_t... i>
inline void shuffle(const Vector& a, const Vector& b, From,
                    std::integer_sequence<std::uint32_t, i...>, Vector& out) {
#if defined(__clang__)
  out = __builtin_shufflevector(a, b, From{}(i)...);
#else
  out = __builtin_shuffle(a, b, Lanes<std::uint32_t, sizeof...(i)>{From{}(i)...});
#endif
}

#else

template <class Mask, class Vector>
inline void select(const Mask& mask, const Vector& a, const Vector& b, Vector& out) {
  Vector result;
  for (std::size_t i = 0; i < sizeof(result) / sizeof(result[0]); ++i)
    result[i] = mask[i] ? a[i] : b[i];
  out = result;
}

template <class Vector>
inline void least(const Vector& a, const Vector& b, Vector& out) {
  select(a < b, a, b, out);
}
template <class Vector>
inline void greatest(const Vector& a, const Vector& b, Vector& out) {
  select(a < b, b, a, out);
}

template <class Floats, class Integers>
inline void toIntegers(const Floats& floats, Integers& out) {
  for (std::size_t i = 0; i < sizeof(out) / sizeof(out[0]); ++i)
    out[i] = static_cast<std::int32_t>(floats[i]);
}

template <std::size_t kCount>
inline void writeShorts(const Lanes<std::int32_t, kCount>& integers, std::int16_t* out) {
  for (std::size_t i = 0; i < kCount; ++i) out[i] = static_cast<std::int16_t>(integers[i]);
}

template <class Vector, class From, std::uint32_t... i>
inline void shuffle(const Vector& a, const Vector& b, From,
                    std::integer_sequence<std::uint32_t, i...>, Vector& out) {
  constexpr std::size_t kCount = sizeof...(i);
  out = Vector{{(From{}(i) < kCount ? a[From{}(i)] : b[From{}(i)-kCount])...}};
}

#endif

template <class Vector, class From>
inline void shuffle(const Vector& a, const Vector& b, From from, Vector& out) {
  shuffle(a, b, from, std::make_integer_sequence<std::uint32_t, sizeof(Vector) / sizeof(a[0])>{},
          out);
}

/// Copies the bits to a value of another type.
template <class To, class From>
inline void bitsAs(const From& from, To& out) {
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&out, &from, sizeof out);
}

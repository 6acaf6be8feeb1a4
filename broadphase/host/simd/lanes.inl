// SPDX-License-Identifier: Zlib
// What is done with Lanes beside their operators. Included where it is used, within a namespace of
// its own and among functions with the same instructions: GCC takes a vector to pieces by what the
// function that it is in may use, before it is inlined. No pragma once.

#if defined(LBVH_VECTOR_TYPES)

/// In each lane that of a where the mask is set, else that of b.
template <class Mask, class Vector>
inline void select(const Mask& mask, const Vector& a, const Vector& b, Vector& out) {
  out = mask ? a : b;
}

/// In each lane the lesser, or the greater. A select() of a comparison does not become one
/// instruction.
template <class Vector>
inline void least(const Vector& a, const Vector& b, Vector& out) {
  out = a < b ? a : b;
}
template <class Vector>
inline void greatest(const Vector& a, const Vector& b, Vector& out) {
  out = a < b ? b : a;
}

/// Integers, rounded towards zero, of floats in their range.
template <class Floats, class Integers>
inline void toIntegers(const Floats& floats, Integers& out) {
  out = __builtin_convertvector(floats, Integers);
}

/// Lane i of `out` becomes lane from(i) of a and b, one behind the other.
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

/// The same bits as another type.
template <class To, class From>
inline void bitsAs(const From& from, To& out) {
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&out, &from, sizeof out);
}

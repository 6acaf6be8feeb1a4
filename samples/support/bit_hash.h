// SPDX-License-Identifier: Zlib
// A hash of the bits of a sequence of values. If two runs have equal hashes, their values are
// almost certainly equal.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

class BitHash {
 public:
  /// Adds a value, whose type must have no padding.
  template <class T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    unsigned char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof bytes);
    for (const unsigned char byte : bytes) value_ = (value_ ^ byte) * 0x100000001b3;
  }

  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;  // FNV-1a
};

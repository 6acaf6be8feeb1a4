// SPDX-License-Identifier: Zlib
// Memory that the stages of a step share: one block, lent in typed, named pieces. A piece that was
// given back must not be used again. Debug builds overwrite it; AddressSanitizer reports its use.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "broadphase/core/buffer.h"
#include "broadphase/types.h"

namespace lbvh {

inline constexpr std::size_t kScratchAlignment = 128;  // a cache line of a GPU

/// What n elements take up in a Scratch, alignment included.
template <class T>
constexpr std::size_t scratchBytes(std::size_t n) {
  return (n * sizeof(T) + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

/// @tparam Memory as for GrowBuffer; and static retire(pointer, bytes), for memory that was given
///   back, and static lend(pointer, bytes), for memory that is used again
template <class Memory>
class Scratch {
 public:
  explicit Scratch(Memory memory = {}) : block_(memory) {}

  /// Takes all pieces back, and makes room for new ones of `bytes` bytes together.
  /// @throws std::bad_alloc
  void reset(std::size_t bytes) {
    giveBack(0);
    block_.ensure(bytes);
  }

  /// Lends n elements, contents undefined. They are given back by reset(), or at the end of the
  /// frame around them.
  /// @throws std::logic_error if reset() made no room for them: a bug of the caller's
  template <class T>
  View<T> lend(const char* name, std::size_t n) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kScratchAlignment);
    const std::size_t bytes = scratchBytes<T>(n);
    if (bytes > block_.bytes() - used_)
      throw std::logic_error(std::string("no room in the scratch memory: ") + name);
    std::byte* const piece = block_.data() + used_;
    used_ += bytes;
    Memory::lend(piece, bytes);
    return {reinterpret_cast<T*>(piece), n};
  }

  /// Lends all that is left.
  template <class T>
  View<T> lendRest(const char* name) {
    return lend<T>(name,
                   (block_.bytes() - used_) / kScratchAlignment * kScratchAlignment / sizeof(T));
  }

  /// Pieces that are lent while it lives are given back at its end.
  class Frame {
   public:
    explicit Frame(Scratch& scratch) : scratch_(scratch), begin_(scratch.used_) {}
    ~Frame() { scratch_.giveBack(begin_); }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    const std::size_t begin_;
  };

  const std::byte* data() const { return block_.data(); }
  std::size_t bytes() const { return block_.bytes(); }

 private:
  void giveBack(std::size_t begin) {
    if (used_ <= begin) return;  // a frame that began before the last reset()
    Memory::retire(block_.data() + begin, used_ - begin);
    used_ = begin;
  }

  GrowBuffer<std::byte, Memory> block_;
  std::size_t used_ = 0;
};

}  // namespace lbvh

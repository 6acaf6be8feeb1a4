// SPDX-License-Identifier: Zlib
// Manages the memory that the stages of a step share: one block, lent in typed, named pieces. A
// piece must not be used after it was given back. Checked builds overwrite such a piece, and
// AddressSanitizer reports its use.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "broadphase/core/buffer.h"
#include "broadphase/types.h"

namespace lbvh {

inline constexpr std::size_t kScratchAlignment = 128;  // a cache line of a GPU

/// The number of bytes that n elements take in a Scratch, with alignment.
template <class T>
constexpr std::size_t scratchBytes(std::size_t n) {
  return (n * sizeof(T) + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

/// @tparam Memory a policy as for GrowBuffer, with two more static functions. retire(pointer,
///   bytes) is called for memory that was given back, lend(pointer, bytes) for memory that will be
///   used again.
template <class Memory>
class Scratch {
 public:
  explicit Scratch(Memory memory = {}) : block_(memory) {}

  /// Takes all pieces back. Provides `bytes` bytes for all new pieces together.
  /// @throws std::bad_alloc
  void reset(std::size_t bytes) {
    giveBack(0);
    block_.ensure(bytes);
  }

  /// Lends n elements with undefined contents, until reset() or the end of the enclosing Frame.
  /// @throws std::logic_error if reset() was called with too few bytes, which is a bug in the
  ///   caller
  template <class T>
  View<T> lend(const char* name, std::size_t n) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kScratchAlignment);
    const std::size_t bytes = scratchBytes<T>(n);
    if (bytes > block_.bytes() - used_)
      throw std::logic_error(std::string("scratch memory is too small for ") + name + ": " +
                             std::to_string(block_.bytes() - used_) + " bytes are left, but " +
                             std::to_string(bytes) + " are needed");
    std::byte* const piece = block_.data() + used_;
    used_ += bytes;
    Memory::lend(piece, bytes);
    return {reinterpret_cast<T*>(piece), n};
  }

  /// Lends the rest of the block.
  template <class T>
  View<T> lendRest(const char* name) {
    return lend<T>(name,
                   (block_.bytes() - used_) / kScratchAlignment * kScratchAlignment / sizeof(T));
  }

  /// A scope: its destructor gives back all pieces that were lent since its constructor ran.
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
    if (used_ <= begin) return;  // nothing was lent, or reset() took all pieces back
    Memory::retire(block_.data() + begin, used_ - begin);
    used_ = begin;
  }

  GrowBuffer<std::byte, Memory> block_;
  std::size_t used_ = 0;
};

}  // namespace lbvh

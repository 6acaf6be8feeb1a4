// SPDX-License-Identifier: Zlib
// Defines work that several threads share. A free thread takes the next piece.
#pragma once

#include <atomic>
#include <cstddef>

namespace lbvh {

class SharedWork {
 public:
  explicit SharedWork(std::size_t pieces) : pieces_(pieces) {}
  SharedWork(const SharedWork&) = delete;
  SharedWork& operator=(const SharedWork&) = delete;

  /// The number of pieces that no thread has begun.
  std::size_t remaining() const noexcept {
    const std::size_t begun = begun_.load(std::memory_order_relaxed);
    return begun < pieces_ ? pieces_ - begun : 0;
  }

  /// Runs pieces until none is left. Any number of threads may call help() at once. The work is
  /// done once all their calls have returned.
  void help() noexcept {
    for (;;) {
      const std::size_t piece = begun_.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces_) return;
      run(piece);
    }
  }

 protected:
  ~SharedWork() = default;

 private:
  virtual void run(std::size_t piece) noexcept = 0;

  const std::size_t pieces_;
  std::atomic<std::size_t> begun_{0};
};

}  // namespace lbvh

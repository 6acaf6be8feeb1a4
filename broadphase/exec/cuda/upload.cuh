// A host array's copy on the device, of which a step sends only what has changed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "broadphase/exec/changes.h"
#include "broadphase/exec/cuda/buffer.cuh"
#include "broadphase/exec/cuda/check.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// A copy of a host array on the device, padded so that its size seldom changes. A second copy, in
/// pinned memory, is what the device has; changed elements go through it. So the host must wait for
/// what it uploaded before it uploads again.
template <class T>
class UploadBuffer {
 public:
  explicit UploadBuffer(DeviceMemory device = {}, PinnedMemory pinned = {})
      : device_(device), shadow_(pinned) {}

  /// @param changed a bit for each element that may differ from the last upload; those that it did
  ///   not have count as changed. Or none: all are compared with what the device has.
  View<const T> upload(View<const T> host, View<const std::uint64_t> changed, cudaStream_t stream) {
    const std::size_t last = std::exchange(last_, host.size);
    if (host.empty()) return {};
    const std::size_t padded = paddedSize(host.size);
    if (padded > device_.capacity() || padded > shadow_.capacity()) known_ = 0;
    const View<T> device = device_.ensure(padded);
    shadow_.ensure(padded);
    const std::size_t known = std::exchange(known_, 0);  // none, if a copy fails
    const Source source{host, changed, changed.data != nullptr ? std::min(known, last) : known};
    for (std::size_t begin = 0; begin < host.size; begin += kPiece)
      sendPiece(source, begin, std::min(begin + kPiece, host.size), stream);
    if (padded > host.size && (known != host.size || padded != padded_))
      cudaCheck(cudaMemsetAsync(device.data + host.size, kPadding, (padded - host.size) * sizeof(T),
                                stream));
    known_ = host.size;
    padded_ = padded;
    return device;
  }

  /// The next upload sends everything.
  void invalidate() { known_ = 0; }

 private:
  /// While a piece is copied, the next one is looked through: 255 KiB of boxes.
  static constexpr std::size_t kPiece = 170 * kMaskBits;
  static constexpr int kPadding = std::is_same_v<T, Aabb> ? 0xFF : 0;  // a box of NaNs, or zeros

  struct Source {
    View<const T> host;
    View<const std::uint64_t> changed;
    std::size_t known;  ///< elements behind have changed
  };

  /// At most a sixteenth more, or 255.
  static std::size_t paddedSize(std::size_t n) {
    const std::size_t step = std::max<std::size_t>(256, std::bit_floor(n) / 16);
    return (n + step - 1) / step * step;
  }

  void sendPiece(const Source& source, std::size_t begin, std::size_t end, cudaStream_t stream) {
    std::uint64_t any = 0;
    for (std::size_t first = begin; first < end; first += kMaskBits)
      any |= refresh(source, first, std::min(kMaskBits, end - first));
    if (any == 0) return;
    cudaCheck(cudaMemcpyAsync(device_.data() + begin, shadow_.data() + begin,
                              (end - begin) * sizeof(T), cudaMemcpyHostToDevice, stream));
  }

  /// Brings up to 64 elements of the shadow up to date. What did not change is not read, if the
  /// caller has told. @return a mask of those that changed
  std::uint64_t refresh(const Source& source, std::size_t first, std::size_t count) {
    const T* now = source.host.data + first;
    T* old = shadow_.data() + first;
    const std::uint64_t all = bitsBelow(count, 0), known = bitsBelow(source.known, first) & all;
    const std::uint64_t changed =
        (all & ~known) | (source.changed.data != nullptr
                              ? source.changed[first / kMaskBits] & known
                              : compare(old, now, static_cast<std::size_t>(std::popcount(known))));
    copyChanged(old, now, count, changed);
    return changed;
  }

  /// At once while all rest, as in most scenes most do.
  static std::uint64_t compare(const T* old, const T* now, std::size_t count) {
    return std::memcmp(old, now, count * sizeof(T)) == 0 ? 0 : findChanged(old, now, count);
  }

  DeviceBuffer<T> device_;
  PinnedBuffer<T> shadow_;
  std::size_t known_ = 0;   ///< how much of the shadow is on the device
  std::size_t last_ = 0;    ///< what the last upload had
  std::size_t padded_ = 0;  ///< how far the padding behind it goes
};

}  // namespace lbvh

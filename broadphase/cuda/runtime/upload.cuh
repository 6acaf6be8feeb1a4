// SPDX-License-Identifier: Zlib
// Keeps a copy of a host array on the device. A step sends only the elements that have changed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "broadphase/core/changes.h"
#include "broadphase/cuda/runtime/check.cuh"
#include "broadphase/cuda/runtime/memory.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// Up to 32 changed elements and their indices. Word w of all elements is one array, because a warp
/// reads the record over the bus, and its reads must be coalesced.
template <class T>
struct RecordBlock {
  static constexpr std::uint32_t kRecords = 32;
  static constexpr std::size_t kWords = (sizeof(T) + 3) / 4;
  static constexpr std::size_t kRecordBytes = 4 * (1 + kWords);

  std::uint32_t index[kRecords];
  std::uint32_t words[kWords][kRecords];

  void set(std::uint32_t k, std::uint32_t i, const T& element) {
    std::uint32_t raw[kWords] = {};
    std::memcpy(raw, &element, sizeof element);
    index[k] = i;
    for (std::size_t w = 0; w < kWords; ++w) words[w][k] = raw[w];
  }
  GPULBVH_HD T element(std::uint32_t k) const {
    std::uint32_t raw[kWords];
    for (std::size_t w = 0; w < kWords; ++w) raw[w] = words[w][k];
    T element;
    std::memcpy(&element, raw, sizeof element);
    return element;
  }
};

/// Writes record r to its place in the array.
template <class T>
struct ScatterRecords {
  static constexpr std::uint32_t kRecords = RecordBlock<T>::kRecords;
  const RecordBlock<T>* blocks;
  T* to;
  GPULBVH_HD void operator()(std::uint32_t r) const {
    const RecordBlock<T>& block = blocks[r / kRecords];
    to[block.index[r % kRecords]] = block.element(r % kRecords);
  }
};

/// A copy of a host array on the device, padded so that its size rarely changes. A second copy, in
/// pinned memory, equals the one on the device. Changed elements are sent from the second copy. So
/// the host must wait for an upload before it begins the next one.
template <class T>
class UploadBuffer {
 public:
  explicit UploadBuffer(DeviceMemory device = {}, PinnedMemory pinned = {})
      : device_(device), shadow_(pinned), records_(pinned) {}

  /// @param changed one bit for each element that may differ from the last upload; elements past
  ///   the size of the last upload are sent in any case. Empty: all elements are compared with the
  ///   copy
  /// @param sent receives the indices of the sent elements, unless it is null
  /// @param forEach launches a stage on the stream: forEach(n, body)
  template <class ForEach>
  View<const T> upload(View<const T> host, View<const std::uint64_t> changed, ChangedSet* sent,
                       cudaStream_t stream, const ForEach& forEach) {
    const std::size_t last = std::exchange(last_, host.size);
    if (host.empty()) return {};
    const std::size_t padded = paddedSize(host.size);
    if (padded > device_.capacity() || padded > shadow_.capacity()) known_ = 0;
    const View<T> device = device_.ensure(padded);
    shadow_.ensure(padded);
    const std::size_t known = std::exchange(known_, 0);  // stays 0 if a copy fails
    recorded_ = 0;
    const Source source{host, changed, changed.data != nullptr ? std::min(known, last) : known,
                        sent};
    for (std::size_t begin = 0; begin < host.size; begin += kPiece)
      sendPiece(source, begin, std::min(begin + kPiece, host.size), stream);
    forEach(recorded_, ScatterRecords<T>{records_.data(), device.data});
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
  /// While a piece is copied, the host searches the next one for changes. A piece of boxes has 255
  /// KiB.
  static constexpr std::size_t kPiece = 170 * kMaskBits;
  static constexpr int kPadding = std::is_same_v<T, Aabb> ? 0xFF : 0;  // a box of NaNs, or zeros

  struct Source {
    View<const T> host;
    View<const std::uint64_t> changed;
    std::size_t known;  ///< elements from this index on are sent in any case
    ChangedSet* sent;   ///< may be null
  };

  /// Adds up to a sixteenth of n, or up to 255 if n is small.
  static std::size_t paddedSize(std::size_t n) {
    const std::size_t step = std::max<std::size_t>(256, std::bit_floor(n) / 16);
    return (n + step - 1) / step * step;
  }

  /// Sends records if they take at most a quarter of the bytes of the piece. Otherwise sends the
  /// whole piece.
  void sendPiece(const Source& source, std::size_t begin, std::size_t end, cudaStream_t stream) {
    std::uint64_t masks[kPiece / kMaskBits];
    const std::size_t most = mostRecords(end - begin);
    const std::size_t count = findMasks(source, begin, end, most, masks);
    if (count == 0) return;
    if (source.sent != nullptr) {
      if (count > most) source.sent->addRange(begin, end);
      for (std::size_t first = begin; first < end && count <= most; first += kMaskBits)
        source.sent->add(masks[(first - begin) / kMaskBits], first);
    }
    if (count <= most) return record(source.host, begin, end, masks);
    for (std::size_t first = begin; first < end; first += kMaskBits)
      copyChanged(shadow_.data() + first, source.host.data + first,
                  std::min(kMaskBits, end - first), masks[(first - begin) / kMaskBits]);
    cudaCheck(cudaMemcpyAsync(device_.data() + begin, shadow_.data() + begin,
                              (end - begin) * sizeof(T), cudaMemcpyHostToDevice, stream));
  }

  /// @return how many elements of a piece have changed. If there are more than `most`, the whole
  ///   piece is sent, so the comparison stops
  std::size_t findMasks(const Source& source, std::size_t begin, std::size_t end, std::size_t most,
                        std::uint64_t* masks) const {
    const bool compares = source.changed.data == nullptr;
    std::size_t count = 0;
    for (std::size_t first = begin; first < end; first += kMaskBits) {
      const std::uint64_t all = bitsBelow(end, first), known = bitsBelow(source.known, first) & all;
      std::uint64_t mask = all;
      if (!compares)
        mask = (all & ~known) | (source.changed[first / kMaskBits] & known);
      else if (count <= most)
        mask = (all & ~known) | compare(shadow_.data() + first, source.host.data + first,
                                        static_cast<std::size_t>(std::popcount(known)));
      *masks++ = mask;
      count += static_cast<std::size_t>(std::popcount(mask));
    }
    return count;
  }

  /// The maximum number of records for a piece of n elements.
  static std::size_t mostRecords(std::size_t n) {
    return n * sizeof(T) / (4 * RecordBlock<T>::kRecordBytes);
  }

  void record(View<const T> host, std::size_t begin, std::size_t end, const std::uint64_t* masks) {
    constexpr std::uint32_t kRecords = RecordBlock<T>::kRecords;
    RecordBlock<T>* blocks = records_.ensure(mostRecords(paddedSize(last_)) / kRecords + 1).data;
    T* shadow = shadow_.data();
    std::uint32_t at = recorded_;
    for (std::size_t first = begin; first < end; first += kMaskBits)
      forBits(*masks++, first, [&](std::uint32_t i) {
        shadow[i] = host[i];
        blocks[at / kRecords].set(at % kRecords, i, host[i]);
        ++at;
      });
    recorded_ = at;
  }

  /// Compares all elements at once first, because in most scenes most boxes are at rest.
  static std::uint64_t compare(const T* old, const T* now, std::size_t count) {
    return std::memcmp(old, now, count * sizeof(T)) == 0 ? 0 : findChanged(old, now, count);
  }

  DeviceBuffer<T> device_;
  PinnedBuffer<T> shadow_;
  /// Kernels read them over the bus, so that only the records cross it.
  PinnedBuffer<RecordBlock<T>> records_;
  std::uint32_t recorded_ = 0;
  std::size_t known_ = 0;   ///< number of elements of the shadow that the device has
  std::size_t last_ = 0;    ///< size of the last upload
  std::size_t padded_ = 0;  ///< size with padding
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// Keeps a copy of a host array on the device. A step sends only the elements that have changed.
#pragma once

#include <algorithm>
#include <array>
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

/// Stands for HostTasks if the calling thread works alone.
struct CallingThread {
  int threads() const { return 1; }
  template <class F>
  void forRanges(std::size_t n, std::size_t /*grain*/, const F& f) const {
    f(std::size_t{0}, n);
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
  /// @param tasks the threads that compare and copy: HostTasks, or CallingThread
  /// @param forEach launches a stage on the stream: forEach(n, body)
  template <class Tasks, class ForEach>
  View<const T> upload(View<const T> host, View<const std::uint64_t> changed, ChangedSet* sent,
                       Tasks& tasks, cudaStream_t stream, const ForEach& forEach) {
    const std::size_t last = std::exchange(last_, host.size());
    if (host.empty()) return {};
    const std::size_t padded = paddedSize(host.size());
    if (padded > device_.capacity() || padded > shadow_.capacity()) known_ = 0;
    const View<T> device = device_.ensure(padded);
    shadow_.ensure(padded);
    const std::size_t known = std::exchange(known_, 0);  // stays 0 if a copy fails
    recorded_ = 0;
    const Source source{host, changed, changed.data() != nullptr ? std::min(known, last) : known,
                        sent};
    const std::size_t wave =
        kPiece * piecesPerWave(host.size(), static_cast<std::size_t>(tasks.threads()));
    for (std::size_t begin = 0; begin < host.size(); begin += wave)
      sendWave(source, begin, std::min(begin + wave, host.size()), tasks, stream);
    forEach(recorded_, ScatterRecords<T>{records_.data(), device.data()});
    if (padded > host.size() && (known != host.size() || padded != padded_))
      cudaCheck(cudaMemsetAsync(device.data() + host.size(), kPadding,
                                (padded - host.size()) * sizeof(T), stream));
    known_ = host.size();
    padded_ = padded;
    return device;
  }

  /// The next upload sends everything.
  void invalidate() { known_ = 0; }

 private:
  /// The host's threads compare and copy the pieces of a wave. While a wave is sent, they work on
  /// the next one. A piece of boxes has 96 KiB.
  static constexpr std::size_t kPieceMasks = 64, kPiece = kPieceMasks * kMaskBits, kMaxPieces = 64;
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

  struct Piece {
    std::size_t begin, end, count;  ///< `count`: number of changed elements
    std::uint64_t masks[kPieceMasks];
    /// Records are sent if they take at most a quarter of the bytes of the piece.
    bool isWhole() const { return count > mostRecords(end - begin); }
  };

  /// A wave has two pieces for each thread, but at most a quarter of all pieces, because nothing is
  /// sent before the first wave is complete. On an H100, a step with 100,000 boxes took 0.57 ms
  /// with waves of all their 25 pieces and 16 threads, and 0.48 ms with waves of 8 and 4 threads.
  static std::size_t piecesPerWave(std::size_t n, std::size_t threads) {
    return std::clamp<std::size_t>(n / kPiece / 4, 2, std::min(2 * threads, kMaxPieces));
  }

  template <class Tasks>
  void sendWave(const Source& source, std::size_t begin, std::size_t end, Tasks& tasks,
                cudaStream_t stream) {
    const std::size_t count = (end - begin + kPiece - 1) / kPiece;
    const auto read = [&](std::size_t first, std::size_t last) {
      for (std::size_t k = first; k < last; ++k)
        readPiece(source, begin + k * kPiece, std::min(begin + (k + 1) * kPiece, end), pieces_[k]);
    };
    constexpr std::size_t kGrain = 2;  // fewer pieces take less time than to wake a thread
    tasks.forRanges(count, kGrain, read);
    std::size_t from = begin;  // [from, piece.begin) are pieces that are sent as a whole
    for (std::size_t k = 0; k < count; ++k) {
      const Piece& piece = pieces_[k];
      if (source.sent != nullptr) tell(piece, *source.sent);
      if (piece.isWhole()) continue;
      sendRange(from, piece.begin, stream);
      from = piece.end;
      if (piece.count > 0) record(source.host, piece);
    }
    sendRange(from, end, stream);
  }

  /// Finds the changes of a piece. If the piece is sent as a whole, also copies them to the shadow.
  void readPiece(const Source& source, std::size_t begin, std::size_t end, Piece& piece) {
    piece.begin = begin;
    piece.end = end;
    piece.count = findMasks(source, begin, end, mostRecords(end - begin), piece.masks);
    if (!piece.isWhole()) return;
    for (std::size_t first = begin; first < end; first += kMaskBits)
      copyChanged(shadow_.data() + first, source.host.data() + first,
                  std::min(kMaskBits, end - first), piece.masks[(first - begin) / kMaskBits]);
  }

  static void tell(const Piece& piece, ChangedSet& sent) {
    if (piece.count == 0) return;
    if (piece.isWhole()) return sent.addRange(piece.begin, piece.end);
    for (std::size_t first = piece.begin; first < piece.end; first += kMaskBits)
      sent.add(piece.masks[(first - piece.begin) / kMaskBits], first);
  }

  void sendRange(std::size_t begin, std::size_t end, cudaStream_t stream) {
    if (begin >= end) return;
    cudaCheck(cudaMemcpyAsync(device_.data() + begin, shadow_.data() + begin,
                              (end - begin) * sizeof(T), cudaMemcpyHostToDevice, stream));
  }

  /// @return how many elements of a piece have changed. If there are more than `most`, the whole
  ///   piece is sent, so the comparison stops
  std::size_t findMasks(const Source& source, std::size_t begin, std::size_t end, std::size_t most,
                        std::uint64_t* masks) const {
    const bool compares = source.changed.data() == nullptr;
    std::size_t count = 0;
    for (std::size_t first = begin; first < end; first += kMaskBits) {
      const std::uint64_t all = bitsBelow(end, first), known = bitsBelow(source.known, first) & all;
      std::uint64_t mask = all;
      if (!compares)
        mask = (all & ~known) | (source.changed[first / kMaskBits] & known);
      else if (count <= most)
        mask = (all & ~known) | compare(shadow_.data() + first, source.host.data() + first,
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

  void record(View<const T> host, const Piece& piece) {
    constexpr std::uint32_t kRecords = RecordBlock<T>::kRecords;
    RecordBlock<T>* blocks = records_.ensure(mostRecords(paddedSize(last_)) / kRecords + 1).data();
    T* shadow = shadow_.data();
    std::uint32_t at = recorded_;
    const std::uint64_t* mask = piece.masks;
    for (std::size_t first = piece.begin; first < piece.end; first += kMaskBits)
      forBits(*mask++, first, [&](std::uint32_t i) {
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
  std::array<Piece, kMaxPieces> pieces_;  ///< the pieces of a wave
  std::uint32_t recorded_ = 0;
  std::size_t known_ = 0;   ///< number of elements of the shadow that the device has
  std::size_t last_ = 0;    ///< size of the last upload
  std::size_t padded_ = 0;  ///< size with padding
};

}  // namespace lbvh

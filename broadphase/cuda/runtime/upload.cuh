// SPDX-License-Identifier: Zlib
// Keeps a copy of a host array on the device. A step sends the elements that have changed. If many
// elements of a piece of the array have changed, it sends the whole piece.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "broadphase/core/changes.h"
#include "broadphase/cuda/runtime/check.cuh"
#include "broadphase/cuda/runtime/memory.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// Up to 32 changed elements and their indices. A warp reads them over the bus. Word w of all
/// elements forms one array, so that these reads are coalesced.
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

/// Writes record r to its element of the array.
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

/// A substitute for HostTasks that uses only the calling thread.
struct CallingThread {
  template <class F>
  void forWorkers(std::size_t n, std::size_t grain, const F& f) const {
    for (std::size_t begin = 0; begin < n; begin += grain) f(0, begin, std::min(n, begin + grain));
  }
};

/// A copy of a host array on the device, padded so that its size rarely changes. A second copy in
/// pinned memory, the shadow, equals the one on the device. Pieces are sent from the shadow. So the
/// host must wait for an upload before it begins the next one.
template <class T>
class UploadBuffer {
 public:
  explicit UploadBuffer(DeviceMemory device = {}, PinnedMemory pinned = {})
      : device_(device), shadow_(pinned), records_(pinned) {}

  /// @param changed one bit per element: whether it may differ from the previous upload; elements
  ///   past the size of the previous upload are always sent. Null: all elements are compared with
  ///   the shadow
  /// @param sent receives the indices of the sent elements, unless it is null
  /// @param tasks the threads that compare and copy: HostTasks, or CallingThread
  /// @param forEach launches a kernel on the stream: forEach(n, body)
  template <class Tasks, class ForEach>
  View<const T> upload(View<const T> host, View<const std::uint64_t> changed, SparseBits* sent,
                       Tasks& tasks, cudaStream_t stream, const ForEach& forEach) {
    const std::size_t last = std::exchange(last_, host.size());
    if (host.empty()) return {};
    const std::size_t padded = paddedSize(host.size());
    if (padded > device_.capacity() || padded > shadow_.capacity()) known_ = 0;
    const View<T> device = device_.ensure(padded);
    shadow_.ensure(padded);
    records_.ensure(mostRecords(padded) / RecordBlock<T>::kRecords + 1);
    const std::size_t known = std::exchange(known_, 0);  // stays 0 if a copy fails
    recorded_ = 0;
    readAndSend({host, changed, changed.data() != nullptr ? std::min(known, last) : known, sent},
                tasks, stream);
    forEach(recorded_.load(), ScatterRecords<T>{records_.data(), device.data()});
    if (padded > host.size() && (known != host.size() || padded != padded_))
      cudaCheck(cudaMemsetAsync(device.data() + host.size(), kPadding,
                                (padded - host.size()) * sizeof(T), stream));
    known_ = host.size();
    padded_ = padded;
    return device;
  }

  /// Makes the next upload send everything.
  void invalidate() { known_ = 0; }

 private:
  /// A thread compares and copies one piece at a time. A piece of boxes has 48 KiB.
  static constexpr std::size_t kPieceMasks = 32, kPiece = kPieceMasks * kMaskBits;
  static constexpr int kPadding = std::is_same_v<T, Aabb> ? 0xFF : 0;  // a box of NaNs, or zeros

  struct Source {
    View<const T> host;
    View<const std::uint64_t> changed;
    std::size_t known;  ///< elements from this index on are always sent
    SparseBits* sent;   ///< may be null
  };

  /// Rounds n up. Adds up to a sixteenth of n, or up to 255 if n is small.
  static std::size_t paddedSize(std::size_t n) {
    const std::size_t step = std::max<std::size_t>(256, std::bit_floor(n) / 16);
    return (n + step - 1) / step * step;
  }

  struct Piece {
    std::atomic<bool> isRead{false};
    std::size_t begin = 0, end = 0, count = 0;  ///< `count`: number of changed elements
    std::uint64_t masks[kPieceMasks];
    /// Whether the whole piece is sent, because records would take more than a quarter of its
    /// bytes.
    bool isWhole() const { return count > mostRecords(end - begin); }
  };

  /// The threads read the pieces in order. Whenever the calling thread has read a piece, it sends
  /// the pieces that are ready. So some pieces cross the bus while others are read.
  template <class Tasks>
  void readAndSend(const Source& source, Tasks& tasks, cudaStream_t stream) {
    const std::size_t count = (source.host.size() + kPiece - 1) / kPiece;
    if (pieces_.size() < count) pieces_ = std::vector<Piece>(count);
    for (std::size_t k = 0; k < count; ++k) pieces_[k].isRead = false;
    const std::thread::id caller = std::this_thread::get_id();
    // Every send costs microseconds, so several pieces are sent together.
    const std::size_t least = std::max<std::size_t>(count / 8, 4);
    std::size_t sent = 0;
    // One thread reads up to three pieces in less time than another thread needs to wake up.
    const std::size_t grain = count < 4 ? count : 1;
    tasks.forWorkers(count, grain, [&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) readPiece(source, k);
      if (std::this_thread::get_id() == caller) sent = send(source, sent, count, least, stream);
      return true;
    });
    send(source, sent, count, 1, stream);
  }

  /// Sends the pieces from `first` up to the next piece that has not been read yet. Does nothing if
  /// there are fewer than `least` pieces.
  /// @return the first piece that has not been sent
  std::size_t send(const Source& source, std::size_t first, std::size_t count, std::size_t least,
                   cudaStream_t stream) {
    std::size_t end = first;
    while (end < count && pieces_[end].isRead.load(std::memory_order_acquire)) ++end;
    if (end - first < least) return first;
    std::size_t from = first * kPiece;  // [from, piece.begin) are pieces that are sent as a whole
    for (std::size_t k = first; k < end; ++k) {
      const Piece& piece = pieces_[k];
      if (source.sent != nullptr) tell(piece, *source.sent);
      if (piece.isWhole()) continue;
      sendRange(from, piece.begin, stream);
      from = piece.end;
    }
    sendRange(from, pieces_[end - 1].end, stream);
    return end;
  }

  void readPiece(const Source& source, std::size_t k) {
    Piece& piece = pieces_[k];
    piece.begin = k * kPiece;
    piece.end = std::min(piece.begin + kPiece, source.host.size());
    read(source, piece);
    piece.isRead.store(true, std::memory_order_release);
  }

  /// Finds the changes of a piece, and copies them to the shadow. Also copies them to records,
  /// unless the piece is sent as a whole.
  void read(const Source& source, Piece& piece) {
    piece.count = findMasks(source, piece.begin, piece.end, mostRecords(piece.end - piece.begin),
                            piece.masks);
    if (!piece.isWhole()) return record(source.host, piece);
    for (std::size_t first = piece.begin; first < piece.end; first += kMaskBits)
      copyChanged(shadow_.data() + first, source.host.data() + first,
                  std::min(kMaskBits, piece.end - first),
                  piece.masks[(first - piece.begin) / kMaskBits]);
  }

  static void tell(const Piece& piece, SparseBits& sent) {
    if (piece.count == 0) return;
    if (piece.isWhole()) return sent.addRange(piece.begin, piece.end);
    for (std::size_t first = piece.begin; first < piece.end; first += kMaskBits)
      sent.addMask(piece.masks[(first - piece.begin) / kMaskBits], first);
  }

  void sendRange(std::size_t begin, std::size_t end, cudaStream_t stream) {
    if (begin >= end) return;
    cudaCheck(cudaMemcpyAsync(device_.data() + begin, shadow_.data() + begin,
                              (end - begin) * sizeof(T), cudaMemcpyHostToDevice, stream));
  }

  /// @return the number of elements of a piece that have changed. If it exceeds `most`, the whole
  ///   piece is sent, so the remaining elements are not compared
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

  /// Copies the changed elements of a piece to records and to the shadow. The order of the records
  /// may differ from step to step. This does not matter, because each record has the index of its
  /// element.
  void record(View<const T> host, const Piece& piece) {
    if (piece.count == 0) return;
    constexpr std::uint32_t kRecords = RecordBlock<T>::kRecords;
    RecordBlock<T>* const blocks = records_.data();
    T* const shadow = shadow_.data();
    const auto count = static_cast<std::uint32_t>(piece.count);
    std::uint32_t at = recorded_.fetch_add(count, std::memory_order_relaxed);
    const std::uint64_t* mask = piece.masks;
    for (std::size_t first = piece.begin; first < piece.end; first += kMaskBits)
      forBits(*mask++, first, [&](std::uint32_t i) {
        shadow[i] = host[i];
        blocks[at / kRecords].set(at % kRecords, i, host[i]);
        ++at;
      });
  }

  /// First compares all elements at once, because in most scenes most boxes are at rest.
  static std::uint64_t compare(const T* old, const T* now, std::size_t count) {
    return std::memcmp(old, now, count * sizeof(T)) == 0 ? 0 : findChanged(old, now, count);
  }

  DeviceBuffer<T> device_;
  PinnedBuffer<T> shadow_;
  /// Kernels read the records directly from this host memory, so that only used records cross the
  /// bus.
  PinnedBuffer<RecordBlock<T>> records_;
  std::vector<Piece> pieces_;
  std::atomic<std::uint32_t> recorded_{0};  ///< number of records of this upload
  std::size_t known_ = 0;   ///< number of elements of the shadow that the device has
  std::size_t last_ = 0;    ///< size of the last upload
  std::size_t padded_ = 0;  ///< size of the last upload with padding
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// Variants run on an execution space. This file defines the contract of such a space. It also
// defines CatalogueHost, the space of the host's cores. CatalogueCuda (cuda_space.cuh) is the space
// of a GPU. Only this comment states the whole contract. The compiler checks only the members that
// a variant uses.
//
// A stage is a named struct of views. Its call operator, marked GPULBVH_HD, handles element i. A
// space has these members:
//
//   space.forEach(n, body)            body(i) for i in [0, n), in any order, in parallel
//                                     (Body::kGrain: fewest elements that are worth a thread)
//   space.append(n, body, out)        body(i, sink); sink.push(pair) appends to `out` in any order,
//                                     and returns false once more than out.limit pairs were pushed
//   space.reduce(n, body, &sum)       writes the sum of all body(i) by +=, which must be exact and
//                                     associative, so that the order does not matter
//   space.sumBefore(counts)           exclusive scan in place with +=
//   space.sortByKey(keys, values, spareKeys, spareValues, shift, bits)
//                                     stable, by `bits` bits from bit `shift` on; result in keys,
//                                     values
//   space.timed(name, ms)             an object whose lifetime is added to `ms`; profilers show it
//   space.upload(view, buffer)        a copy of the view that the space can read; may be padded
//                                     (boxes with NaN, others with 0) so that its size seldom
//                                     changes
//   space.wait()                      waits until all work is done, so that the host may then read
//                                     HostBuffers
//
//   Space::Memory, space.memory()     the memory policy of its GrowBuffers and Scratch
//   Space::Buffer<T>, HostBuffer<T>   storage that only grows, uninitialised
//   Space::UploadBuffer<T>            what upload() remembers of an array between steps
//   Space::kKnowsCounts               true if its memory is the host's: the host may read what a
//                                     stage wrote as soon as the call returns
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "broadphase/core/atomics.h"
#include "broadphase/host/parallel/space.h"
#include "broadphase/types.h"

namespace lbvh::variants {

/// Where append() writes pairs and their count. If *count exceeds `pairs.size()`, only the first
/// `pairs.size()` pairs were written.
struct PairOutput {
  View<Pair> pairs;
  std::uint64_t limit;  ///< if *count exceeds this, append() may stop early
  std::uint64_t* count;
};

class CatalogueHost : public HostSpace {
 public:
  using HostSpace::HostSpace;

  template <class T>
  using HostBuffer = lbvh::HostBuffer<T>;
  template <class T>
  struct UploadBuffer {};  // stages read the caller's array directly

  static constexpr bool kKnowsCounts = true;

  template <class Body>
  void append(std::size_t n, const Body& body, const PairOutput& out) {
    tasks().forRanges(n, kAppendGrain, [&](std::size_t begin, std::size_t end) {
      Sink sink(out);
      for (std::size_t i = begin; i < end; ++i) body(static_cast<std::uint32_t>(i), sink);
    });
  }

  template <class T>
  void sumBefore(View<T> counts) {
    T sum;
    for (T& count : counts) {
      const T before = sum;
      sum += std::exchange(count, before);
    }
  }

  template <class T>
  View<const T> upload(View<const T> view, UploadBuffer<T>&) {
    return view;
  }

  void wait() {}

 private:
  // Traversals are expensive and their costs differ, so a task has few elements.
  static constexpr std::size_t kAppendGrain = 64;

  /// Collects a range's pairs and appends them in blocks, with one atomic addition for many pairs.
  class Sink {
   public:
    explicit Sink(const PairOutput& out) : out_(out) {}
    ~Sink() { flush(); }
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;

    bool push(Pair pair) {
      block_[size_++] = pair;
      return size_ < kBlock || flush();
    }

   private:
    static constexpr std::size_t kBlock = 256;

    bool flush() {
      const std::uint64_t at = fetchAdd<std::uint64_t>(out_.count, size_);
      if (at < out_.pairs.size()) {
        const std::uint64_t room = std::min<std::uint64_t>(size_, out_.pairs.size() - at);
        std::copy_n(block_, room, out_.pairs.data() + at);
      }
      size_ = 0;
      return at <= out_.limit;
    }

    const PairOutput& out_;
    std::size_t size_ = 0;
    Pair block_[kBlock];
  };
};

}  // namespace lbvh::variants

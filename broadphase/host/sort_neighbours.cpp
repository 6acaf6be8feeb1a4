// SPDX-License-Identifier: Zlib
#include "broadphase/host/sort_neighbours.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace lbvh {
namespace {

constexpr std::size_t kListGrain = 1024;  // lists, also of a chunk
constexpr std::size_t kSumGrain = 8;      // chunks

}  // namespace

void NeighbourSort::writePairs(const NeighbourLists& lists, std::size_t boxes, View<Pair> out) {
  forChunks(lists, boxes, [&](const Chunk& chunk) {
    kernels_.sortLists(lists, chunk.first, chunk.end, indexSet(chunk.worker),
                       {out.data + chunk.start, chunk.size});
  });
}

void NeighbourSort::writeLists(const NeighbourLists& lists, std::size_t boxes,
                               View<std::uint32_t> out, std::uint32_t* offsets) {
  offsets[0] = 0;
  std::vector<HostBuffer<Pair>> pairs(static_cast<std::size_t>(tasks_.threads()));
  forChunks(lists, boxes, [&](const Chunk& chunk) {
    const View<Pair> sorted = pairs[chunk.worker].ensure(chunk.size);
    kernels_.sortLists(lists, chunk.first, chunk.end, indexSet(chunk.worker), sorted);
    for (std::size_t k = 0; k < sorted.size; ++k) out[chunk.start + k] = sorted[k].second;
    auto end = static_cast<std::uint32_t>(chunk.start);
    for (std::uint32_t i = chunk.first; i < chunk.end; ++i)
      offsets[i + 1] = end += lists.byBox[i].size;
  });
}

/// Calls sort(chunk) for all chunks of lists, in parallel.
template <class Sort>
void NeighbourSort::forChunks(const NeighbourLists& lists, std::size_t boxes, const Sort& sort) {
  const std::size_t chunks = (boxes + kListGrain - 1) / kListGrain;
  const View<std::uint64_t> starts = chunkStarts_.ensure(chunks + 1);
  const auto firstOf = [](std::size_t chunk) {
    return static_cast<std::uint32_t>(chunk * kListGrain);
  };
  const auto endOf = [&](std::size_t chunk) {
    return static_cast<std::uint32_t>(std::min(boxes, (chunk + 1) * kListGrain));
  };
  tasks_.forRanges(chunks, kSumGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t chunk = begin; chunk < end; ++chunk) {
      starts[chunk] = 0;
      for (std::uint32_t i = firstOf(chunk); i < endOf(chunk); ++i)
        starts[chunk] += lists.byBox[i].size;
    }
  });
  starts[chunks] = 0;  // becomes the last one's end
  std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), std::uint64_t{0});
  growIndexSets(boxes);
  tasks_.forWorkers(chunks, 1, [&](std::size_t worker, std::size_t begin, std::size_t end) {
    for (std::size_t chunk = begin; chunk < end; ++chunk)
      sort({worker, firstOf(chunk), endOf(chunk), static_cast<std::size_t>(starts[chunk]),
            static_cast<std::size_t>(starts[chunk + 1] - starts[chunk])});
    return true;
  });
}

void NeighbourSort::growIndexSets(std::size_t boxes) {
  const std::size_t words = boxes / (64 * 64) + 1;
  if (65 * words <= indexSetSize_) return;
  indexSetSize_ = 0;
  const auto all = indexSets_.ensure(65 * words * static_cast<std::size_t>(tasks_.threads()));
  std::fill(all.begin(), all.end(), std::uint64_t{0});
  indexSetSize_ = 65 * words;
}

IndexSet NeighbourSort::indexSet(std::size_t worker) const {
  const std::size_t words = indexSetSize_ / 65;
  std::uint64_t* memory = indexSets_.data() + worker * indexSetSize_;
  return {memory + words, memory, words};
}

}  // namespace lbvh

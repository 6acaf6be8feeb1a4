// SPDX-License-Identifier: Zlib
#include "broadphase/host/sort_neighbours.h"

#include <algorithm>
#include <numeric>

namespace lbvh {
namespace {

constexpr std::size_t kListGrain = 1024;  // lists, also of a chunk
constexpr std::size_t kSumGrain = 8;      // chunks

}  // namespace

void NeighbourSort::writePairs(const NeighbourLists& lists, std::size_t boxes, View<Pair> out) {
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
    for (std::size_t chunk = begin; chunk < end; ++chunk) {
      const std::uint64_t pairs = starts[chunk + 1] - starts[chunk];
      kernels_.sortLists(lists, firstOf(chunk), endOf(chunk), indexSet(worker),
                         {out.data + starts[chunk], static_cast<std::size_t>(pairs)});
    }
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

// SPDX-License-Identifier: Zlib
// Tests the search for changed boxes separately: what it writes if a tile can hold its new pairs,
// and that it ends early if not. Skipped if there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "broadphase/cuda/kernels/changed_search.cuh"
#include "broadphase/cuda/runtime/space.cuh"
#include "cuda_fixture.h"
#include "device_boxes.cuh"

namespace lbvh {
namespace {

using test::Boxes;
using test::download;
using test::OnDevice;
using test::Pairs;
using test::writable;

class CudaChanged : public test::OnCuda {};

struct Found {
  std::uint32_t added;  ///< number of new pairs that the search has counted
  bool isOverfull;
  Pairs pairs;  ///< the new pairs that were written, sorted
};

/// Searches for the pairs of all boxes as if all boxes had changed, and as if the last step had no
/// pairs. So all pairs are new, and belong to the same tile.
/// @param parts number of warps for each 1,024 boxes
Found search(const Boxes& boxes, std::uint32_t parts) {
  const std::size_t n = boxes.size();
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  const OnDevice<Aabb> there(boxes);
  const OnDevice<std::uint32_t> ids(order), added({0});
  const OnDevice<NewPair> news(std::vector<NewPair>(ChangeMarks::kMaxNew));
  const OnDevice<StepHeader> header(std::vector<StepHeader>(1));
  LeafBlockBuffers buffers{DeviceMemory{}};
  const LeafBlocks leaves = buffers.ensure(n);
  std::vector<std::uint32_t> bits(leaves.groupCount * kWarp);
  for (std::size_t i = 0; i < n; ++i) bits[i / 32] |= 1u << i % 32;
  const OnDevice<std::uint32_t> slots(bits);

  CudaSpace space;
  space.fill(leaves.closed, 0);
  space.launch<packBlocksKernel>(
      leaves.groupCount, PackBlocks::kGroup,
      PackBlocks{there.view(), ids.view().data(), leaves, writable(header)});
  const ChangeMarks marks{nullptr, writable(slots), nullptr, writable(added), writable(news)};
  const FindChangedPairs find{leaves, {}, marks, writable(header), parts};
  space.launch<findChangedPairsKernel>(find.blocks(), kThreads, find);
  space.wait();

  Found found{download(added.view())[0], download(header.view())[0].overfull != 0, {}};
  for (const NewPair& one : download(news.view()))
    if (found.pairs.size() < found.added) found.pairs.push_back(one.pair);
  std::sort(found.pairs.begin(), found.pairs.end());
  return found;
}

// A tile has room for kMaxNew new pairs. Each warp may add one more full buffer of pairs before it
// sees that the tile is overfull. The warp stops when its next buffer is full. But a buffer that is
// not full at the end of the search is added, too. A search that does not end early adds all
// 2,096,128 pairs.
TEST_F(CudaChanged, CrowdEndsTheSearch) {
  const Boxes boxes(2048, test::boxAt(0, 0, 0, 1));
  for (const std::uint32_t parts : {1u, 8u, 64u}) {
    SCOPED_TRACE(parts);
    const std::uint32_t warps = 2 * parts;
    const Found found = search(boxes, parts);
    EXPECT_TRUE(found.isOverfull);
    EXPECT_GT(found.added, ChangeMarks::kMaxNew);
    EXPECT_LE(found.added, ChangeMarks::kMaxNew + 2 * kStaged * warps);
  }
}

// 23 equal boxes have 253 pairs. A row of further boxes adds just enough pairs to fill the tile, or
// one pair more.
TEST_F(CudaChanged, SearchEndsBeyondTheRoomOfATileAndNotAtIt) {
  Boxes boxes(23, test::boxAt(0, 0, 0, 1));
  for (int k = 0; k < 5; ++k) boxes.push_back(test::boxAt(10 + static_cast<float>(k), 0, 0, 0.5f));
  for (const std::uint32_t pairs : {256u, 257u}) {
    SCOPED_TRACE(pairs);
    const Boxes some(boxes.begin(), boxes.begin() + 24 + (pairs - 253));
    const Pairs expected = test::bruteForce(some);
    ASSERT_EQ(expected.size(), pairs);
    const Found found = search(some, 8);
    EXPECT_EQ(found.isOverfull, pairs > ChangeMarks::kMaxNew);
    EXPECT_EQ(found.added, pairs);
    EXPECT_TRUE(
        std::includes(expected.begin(), expected.end(), found.pairs.begin(), found.pairs.end()));
    EXPECT_EQ(found.pairs.size(), ChangeMarks::kMaxNew);
  }
}

}  // namespace
}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// Tests the scratch memory, which the stages of a step share. Pieces are aligned and do not
// overlap, and uses of returned pieces are detected.
#include "broadphase/core/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "broadphase/host/parallel/buffer.h"
#include "broadphase/types.h"

namespace lbvh {
namespace {

using HostScratch = Scratch<HostMemory>;

TEST(Scratch, PiecesTakeWholeCacheLines) {
  EXPECT_EQ(scratchBytes<std::uint8_t>(0), 0u);
  EXPECT_EQ(scratchBytes<std::uint8_t>(1), kScratchAlignment);
  EXPECT_EQ(scratchBytes<std::uint8_t>(kScratchAlignment), kScratchAlignment);
  EXPECT_EQ(scratchBytes<std::uint8_t>(kScratchAlignment + 1), 2 * kScratchAlignment);
  EXPECT_EQ(scratchBytes<std::uint64_t>(kScratchAlignment), 8 * kScratchAlignment);
}

TEST(Scratch, PiecesAreDisjointAndAligned) {
  HostScratch scratch;
  scratch.reset(scratchBytes<std::uint8_t>(3) + scratchBytes<Node>(5));
  const View<std::uint8_t> bytes = scratch.lend<std::uint8_t>("bytes", 3);
  const View<Node> nodes = scratch.lend<Node>("nodes", 5);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(nodes.data()) % alignof(Node), 0u);
  EXPECT_GE(reinterpret_cast<const std::uint8_t*>(nodes.data()), bytes.end());
  nodes[4].rope = kNullIndex;
  bytes[2] = 7;
  EXPECT_EQ(nodes[4].rope, kNullIndex);
}

TEST(Scratch, FrameReleasesItsPieces) {
  HostScratch scratch;
  scratch.reset(2 * scratchBytes<std::uint64_t>(100));
  const View<std::uint64_t> kept = scratch.lend<std::uint64_t>("kept", 100);
  kept[99] = 12;
  std::uint64_t* first = nullptr;
  {
    const HostScratch::Frame frame(scratch);
    first = scratch.lend<std::uint64_t>("first", 100).data();
  }
  EXPECT_EQ(scratch.lend<std::uint64_t>("second", 100).data(), first);
  EXPECT_EQ(kept[99], 12u);
}

TEST(Scratch, LendsNoMoreThanItHas) {
  HostScratch scratch;
  EXPECT_THROW(scratch.lend<std::uint32_t>("anything", 1), std::logic_error);
  scratch.reset(scratchBytes<std::uint32_t>(1000));
  const std::size_t bytes = scratch.bytes();
  try {
    scratch.lend<std::uint32_t>("neighbours", bytes);
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("neighbours"), std::string::npos);
  }
  const View<std::uint32_t> rest = scratch.lendRest<std::uint32_t>("rest");
  EXPECT_GE(rest.size(), 1000u);
  EXPECT_LE(rest.size() * sizeof(std::uint32_t), bytes);
  EXPECT_EQ(scratch.bytes(), bytes);
}

TEST(Scratch, ReusesMemoryForSmallerSizes) {
  HostScratch scratch;
  scratch.reset(scratchBytes<Pair>(500));
  const Pair* const first = scratch.lend<Pair>("pairs", 500).data();
  scratch.reset(scratchBytes<Pair>(400));
  EXPECT_EQ(scratch.lend<Pair>("pairs", 400).data(), first);
}

/// Writes to a piece, and returns it after reset() has taken it back.
[[maybe_unused]] View<std::uint32_t> givenBack(HostScratch& scratch) {
  scratch.reset(scratchBytes<std::uint32_t>(64));
  const View<std::uint32_t> piece = scratch.lend<std::uint32_t>("piece", 64);
  piece[3] = 5;
  scratch.reset(0);
  return piece;
}

#if defined(__SANITIZE_ADDRESS__) || GPULBVH_HAS_FEATURE(address_sanitizer)
TEST(ScratchDeathTest, AddressSanitizerReportsUsesOfReturnedPieces) {
  HostScratch scratch;
  const View<std::uint32_t> piece = givenBack(scratch);
  EXPECT_DEATH(EXPECT_EQ(piece[3], 5u), "use-after-poison");
  EXPECT_EQ(scratch.lend<std::uint32_t>("again", 64).data(), piece.data());
  piece[3] = 6;
  EXPECT_EQ(piece[3], 6u);
}
#elif defined(GPULBVH_CHECKED)
TEST(Scratch, CheckedBuildsOverwriteReturnedPieces) {
  HostScratch scratch;
  const View<std::uint32_t> piece = givenBack(scratch);
  EXPECT_EQ(piece[3], 0xDBDBDBDBu);
}
#endif

}  // namespace
}  // namespace lbvh

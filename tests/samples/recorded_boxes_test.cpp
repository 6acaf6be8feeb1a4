// SPDX-License-Identifier: Zlib
// Tests recorded boxes: files are read as they were written, broken files are refused, and every
// frame of the recorded scene has the pairs of its reference.
#include "support/recorded_boxes.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "support.h"

namespace {

namespace fs = std::filesystem;
using lbvh::test::Boxes;
using lbvh::test::Random;
using lbvh::test::view;

class RecordedBoxes : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    path = fs::temp_directory_path() / (std::string("gpulbvh_") + info->name() + ".aabb");
  }
  void TearDown() override { fs::remove(path); }

  void write(int frames, std::size_t objects) {
    Random random(71);
    BoxWriter writer(path.string(), static_cast<std::uint32_t>(frames));
    for (int frame = 0; frame < frames; ++frame) {
      written.push_back(lbvh::test::boxSets()[0].make(objects, random));
      writer.write(written.back());
    }
  }

  void overwrite(long at, const char* bytes, std::size_t size) {
    std::FILE* file = std::fopen(path.string().c_str(), "r+b");
    ASSERT_NE(file, nullptr);
    std::fseek(file, at, SEEK_SET);
    std::fwrite(bytes, 1, size, file);
    std::fclose(file);
  }

  fs::path path;
  std::vector<Boxes> written;
};

TEST_F(RecordedBoxes, RoundTrip) {
  write(3, 50);
  BoxReader reader(path.string());
  EXPECT_EQ(reader.objects(), 50u);
  EXPECT_EQ(reader.frames(), 3u);
  EXPECT_EQ(fs::file_size(path), 16 + 3 * 50 * 24u);
  Boxes boxes;
  for (const Boxes& frame : written) {
    reader.read(boxes);
    ASSERT_EQ(boxes.size(), frame.size());
    EXPECT_EQ(std::memcmp(boxes.data(), frame.data(), frame.size() * sizeof(lbvh::Aabb)), 0);
  }
}

TEST_F(RecordedBoxes, RefusesIncompleteFiles) {
  EXPECT_THROW(BoxReader(path.string()), FileError) << "missing";
  write(1, 10);
  fs::resize_file(path, fs::file_size(path) + 1);
  EXPECT_THROW(BoxReader(path.string()), FileError) << "longer than its header says";
  fs::resize_file(path, fs::file_size(path) - 2);
  EXPECT_THROW(BoxReader(path.string()), FileError) << "no whole frame";
  fs::resize_file(path, 7);
  EXPECT_THROW(BoxReader(path.string()), FileError) << "shorter than a header";
}

TEST_F(RecordedBoxes, ReadsTheWholeFramesOfATruncatedFile) {
  write(3, 10);
  fs::resize_file(path, fs::file_size(path) - 1);
  BoxReader reader(path.string());
  EXPECT_EQ(reader.frames(), 2u);
  EXPECT_EQ(reader.promised(), 3u);
  Boxes boxes;
  for (int frame = 0; frame < 2; ++frame) {
    reader.read(boxes);
    EXPECT_EQ(std::memcmp(boxes.data(), written[std::size_t(frame)].data(), 10 * 24), 0);
  }
}

TEST_F(RecordedBoxes, HeaderIsCorrectedIfFewerFramesWereWritten) {
  {
    BoxWriter writer(path.string(), 1000);
    writer.write(Boxes(10));
    writer.write(Boxes(10));
  }
  const BoxReader reader(path.string());
  EXPECT_EQ(reader.promised(), 2u);
  EXPECT_EQ(reader.frames(), 2u);
  EXPECT_EQ(fs::file_size(path), 16 + 2 * 10 * 24u);
}

TEST_F(RecordedBoxes, FramesWithoutObjectsAreAcceptedOnlyInSmallNumbers) {
  write(1, 10);
  fs::resize_file(path, 16);
  overwrite(8, "\0\0\0\0\2\0\0\0", 8);
  BoxReader reader(path.string());
  EXPECT_EQ(reader.frames(), 2u);
  overwrite(8, "\0\0\0\0\xff\xff\xff\xff", 8);
  EXPECT_THROW(BoxReader(path.string()), FileError);
  overwrite(8, "\0\0\0\0\0\0\0\0", 8);
  EXPECT_THROW(BoxReader(path.string()), FileError) << "no frame at all";
}

TEST_F(RecordedBoxes, RefusesWrongHeaders) {
  write(2, 10);
  overwrite(8, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);  // almost 2^64 boxes
  EXPECT_THROW(BoxReader(path.string()), FileError);
  written.clear();
  write(2, 10);
  overwrite(0, "AABBFRM2", 8);
  EXPECT_THROW(BoxReader(path.string()), FileError);
}

TEST(PairHash, EqualsThatOfTheFormat) {
  PairHash hash;
  hash.add({0, 1});
  // The published first output of splitmix64 for the seed 1: its finaliser applied to
  // 1 + 0x9E3779B97F4A7C15.
  EXPECT_EQ(hash.hash(), 0x910a2dec89025cc1u);
  PairHash forward, backward;
  for (std::uint32_t i = 0; i < 10; ++i) forward.add({i, i + 1});
  for (std::uint32_t i = 10; i-- > 0;) backward.add({i, i + 1});
  EXPECT_EQ(forward, backward);
}

TEST(RecordedScene, EveryFrameEqualsItsReference) {
  const std::string path = GPULBVH_TEST_DATA "/brownian1k.aabb";
  const Reference reference = readReference(referencePath(path)).value();
  BoxReader reader(path);
  ASSERT_EQ(reference.size(), reader.frames());
  lbvh::PairFinder finder;
  Boxes boxes;
  for (std::uint32_t frame = 0; frame < reader.frames(); ++frame) {
    reader.read(boxes);
    finder.update(view(boxes));
    PairHash hash;
    for (const lbvh::Pair pair : finder.pairs()) hash.add(pair);
    ASSERT_EQ(hash, reference.at(frame)) << "frame " << frame;
  }
}

}  // namespace

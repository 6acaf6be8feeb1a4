// SPDX-License-Identifier: Zlib
// Reads and writes recorded boxes (.aabb files) frame by frame, and reads their references (.ref
// files). Holds at most one frame. Does not check the boxes: NaN and inverted boxes are valid data.
//
// .aabb, little-endian: char magic[8] = "AABBFRM1", uint32 objects, uint32 frames, then per frame
// and object float min[3], max[3]. .ref, text: `frame pairs hash`, and comments that begin with #.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "broadphase/types.h"

/// Thrown if a file cannot be used. what() is one line with the file's name and the reason.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class BoxReader {
 public:
  /// Checks the header against the real size of the file before anything is allocated.
  /// @throws FileError, also if there is no complete frame
  explicit BoxReader(const std::string& path);

  std::uint32_t objects() const { return objects_; }
  /// The number of complete frames in the file; smaller than promised() if the file was cut off.
  std::uint32_t frames() const { return frames_; }
  /// The number of frames in the header.
  std::uint32_t promised() const { return promised_; }

  /// Reads the next frame. May be called at most frames() times.
  /// @throws FileError
  void read(std::vector<lbvh::Aabb>& boxes);

 private:
  std::string path_;
  std::ifstream file_;
  std::uint32_t objects_ = 0;
  std::uint32_t frames_ = 0;
  std::uint32_t promised_ = 0;
};

class BoxWriter {
 public:
  /// Needs the number of frames in advance, so that the file can be a pipe.
  /// @throws FileError
  BoxWriter(const std::string& path, std::uint32_t frames);

  /// Corrects the header's count if fewer frames were written.
  ~BoxWriter();
  BoxWriter(const BoxWriter&) = delete;
  BoxWriter& operator=(const BoxWriter&) = delete;

  /// The first call writes the header. Each frame must have as many boxes as the first.
  /// @throws FileError if the disk is full
  void write(const std::vector<lbvh::Aabb>& boxes);

 private:
  std::string path_;
  std::ofstream file_;
  std::uint32_t frames_;
  std::uint32_t written_ = 0;
  std::size_t objects_ = 0;
};

/// A hash of a set of pairs. It is a sum, so the order of the pairs does not matter.
class PairHash {
 public:
  void add(lbvh::Pair pair) {
    ++pairs_;
    hash_ += mix64(std::uint64_t{pair.first} << 32 | pair.second);
  }

  std::uint64_t pairs() const { return pairs_; }
  std::uint64_t hash() const { return hash_; }
  friend bool operator==(const PairHash&, const PairHash&) = default;
  PairHash() = default;
  PairHash(std::uint64_t pairs, std::uint64_t hash) : pairs_(pairs), hash_(hash) {}

 private:
  /// The finaliser of splitmix64.
  static constexpr std::uint64_t mix64(std::uint64_t z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  std::uint64_t pairs_ = 0;
  std::uint64_t hash_ = 0;
};

using Reference = std::map<std::uint32_t, PairHash>;  ///< count and hash of the pairs, by frame

/// Returns NAME.ref for NAME.aabb.
std::string referencePath(const std::string& boxesPath);

/// Returns nothing if the file does not exist.
/// @throws FileError if it exists, but cannot be parsed
std::optional<Reference> readReference(const std::string& path);

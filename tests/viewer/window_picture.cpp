// SPDX-License-Identifier: Zlib
// Reads a picture of a screen for viewer_window.sh: an .xwd file as Xvfb -fbdir writes it at a
// depth of 24. Reads no other .xwd files. Usage: window_picture FILE LEFT TOP RIGHT BOTTOM [COLOUR]
// Prints a hash of the pixels. With a colour, prints instead the number of pixels near this colour,
// and their mean x and y.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "drawing.h"

namespace {

using Colours = std::vector<Colour>;

const std::map<std::string, Colours> kColours = {
    {"active", {colours::active}},
    {"picked", {colours::picked}},
    {"box", {colours::box}},
    {"tree", {std::begin(colours::treeNodes), std::end(colours::treeNodes)}},
    {"near", {colours::nearPair}},
    {"added", {colours::addedPair}},
    {"oversized", {colours::oversizedBox}},
};

/// A number of the header, which is big-endian, unlike the pixels.
std::uint32_t number(const std::string& bytes, std::size_t index) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::uint8_t(bytes.at(index * 4 + i));
  return value;
}

class Picture {
 public:
  explicit Picture(const char* path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    constexpr std::size_t kColourBytes = 12;
    first_ = number(bytes_, 0) + number(bytes_, 19) * kColourBytes;
    stride_ = number(bytes_, 12);
    const std::uint32_t version = number(bytes_, 1), bits = number(bytes_, 11);
    if (version != 7 || bits != 32 || bytes_.size() < first_ + number(bytes_, 5) * stride_)
      throw std::runtime_error("wanted a whole .xwd file of version 7 with 32 bits a pixel, not " +
                               std::to_string(bytes_.size()) + " bytes of version " +
                               std::to_string(version) + " with " + std::to_string(bits));
  }

  Colour at(int x, int y) const {
    std::uint8_t part[3];
    std::memcpy(part, &bytes_.at(first_ + std::size_t(y) * stride_ + std::size_t(x) * 4), 3);
    return {part[2], part[1], part[0]};
  }

 private:
  std::string bytes_;
  std::size_t first_ = 0, stride_ = 0;
};

bool isNear(Colour a, const Colours& several) {
  return std::any_of(several.begin(), several.end(), [a](Colour b) {
    return std::max({std::abs(a.red - b.red), std::abs(a.green - b.green),
                     std::abs(a.blue - b.blue)}) < 40;
  });
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 6) return 2;
  const Picture picture(argv[1]);
  std::uint64_t hash = 0;
  long count = 0, sumX = 0, sumY = 0;
  const int left = std::stoi(argv[2]), top = std::stoi(argv[3]);
  const int right = std::stoi(argv[4]), bottom = std::stoi(argv[5]);
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      const Colour colour = picture.at(x, y);
      for (const std::uint8_t part : {colour.red, colour.green, colour.blue})
        hash = (hash ^ part) * 0x100000001B3u;  // FNV-1a's step
      if (argc > 6 && isNear(colour, kColours.at(argv[6]))) {
        ++count;
        sumX += x;
        sumY += y;
      }
    }
  }
  if (argc > 6)
    std::printf("%ld %ld %ld\n", count, sumX / std::max(count, 1l), sumY / std::max(count, 1l));
  else
    std::printf("%016llx\n", static_cast<unsigned long long>(hash));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "window_picture: %s\n", error.what());
  return 1;
}

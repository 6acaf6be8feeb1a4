// SPDX-License-Identifier: Zlib
// Reads and writes recorded boxes; see the header for the formats.
#include "support/recorded_boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sstream>

static_assert(std::endian::native == std::endian::little, "files are little-endian");
static_assert(sizeof(lbvh::Aabb) == 24);

namespace {

constexpr std::array<char, 8> kMagic = {'A', 'A', 'B', 'B', 'F', 'R', 'M', '1'};

struct Header {
  std::array<char, 8> magic;
  std::uint32_t objects;
  std::uint32_t frames;
};
static_assert(sizeof(Header) == 16);

std::uint64_t sizeOf(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (!error && kind != std::filesystem::file_type::regular) {
    throw FileError(fmt::format("{}: not a regular file", path));
  }
  const std::uint64_t size = error ? 0 : std::filesystem::file_size(path, error);
  if (error) throw FileError(fmt::format("{}: {}", path, error.message()));
  return size;
}

/// Limits the frames of a file without objects. Such frames have no bytes, so the file's size does
/// not limit them.
constexpr std::uint32_t kMaxEmptyFrames = 1000;

/// The number of complete frames in the file. Divides instead of multiplying, because the product
/// of the header's numbers may overflow.
std::uint32_t countFrames(const std::string& path, const Header& header, std::uint64_t payload) {
  const auto refuse = [&](const char* what) {
    throw FileError(
        fmt::format("{}: {} ({} objects, {} frames)", path, what, header.objects, header.frames));
  };
  if (header.frames == 0) refuse("its header says that there is no frame");
  const std::uint64_t frameBytes = std::uint64_t{header.objects} * sizeof(lbvh::Aabb);
  if (frameBytes == 0 && header.frames > kMaxEmptyFrames)
    refuse("too many frames for a file without objects");
  const std::uint64_t whole = frameBytes == 0 ? header.frames : payload / frameBytes;
  const std::uint64_t rest = frameBytes == 0 ? payload : payload % frameBytes;
  if (whole > header.frames || (whole == header.frames && rest > 0))
    refuse("longer than its header says");
  if (whole == 0) refuse("shorter than its header says, and without a complete frame");
  return static_cast<std::uint32_t>(whole);
}

}  // namespace

BoxReader::BoxReader(const std::string& path) : path_(path) {
  const std::uint64_t size = sizeOf(path);
  file_.open(path, std::ios::binary);
  if (!file_) throw FileError(fmt::format("{}: {}", path, std::strerror(errno)));
  Header header{};
  if (size < sizeof header || !file_.read(reinterpret_cast<char*>(&header), sizeof header)) {
    throw FileError(fmt::format("{}: too short for a header", path));
  }
  if (header.magic != kMagic) throw FileError(fmt::format("{}: not an .aabb file", path));
  frames_ = countFrames(path, header, size - sizeof header);
  objects_ = header.objects;
  promised_ = header.frames;
}

void BoxReader::read(std::vector<lbvh::Aabb>& boxes) {
  boxes.resize(objects_);
  const auto bytes = static_cast<std::streamsize>(boxes.size() * sizeof(lbvh::Aabb));
  if (bytes > 0 && !file_.read(reinterpret_cast<char*>(boxes.data()), bytes)) {
    throw FileError(fmt::format("{}: cannot be read to its end", path_));
  }
}

BoxWriter::BoxWriter(const std::string& path, std::uint32_t frames) : path_(path), frames_(frames) {
  file_.open(path, std::ios::binary | std::ios::trunc);
  if (!file_) throw FileError(fmt::format("{}: {}", path, std::strerror(errno)));
}

BoxWriter::~BoxWriter() {
  // After a failure the last frame may be cut off. The header's count must then stay, because a
  // reader refuses more bytes than the header says. In a pipe it stays, too, because a pipe is not
  // seekable.
  if (!file_ || written_ == 0 || written_ >= frames_) return;
  file_.seekp(offsetof(Header, frames));
  file_.write(reinterpret_cast<const char*>(&written_), sizeof written_);
}

void BoxWriter::write(const std::vector<lbvh::Aabb>& boxes) {
  if (written_ == 0) {
    objects_ = boxes.size();
    const Header header{kMagic, static_cast<std::uint32_t>(objects_), frames_};
    file_.write(reinterpret_cast<const char*>(&header), sizeof header);
  }
  if (boxes.size() != objects_) {
    throw FileError(fmt::format("{}: the number of objects changed from {} to {}", path_, objects_,
                                boxes.size()));
  }
  file_.write(reinterpret_cast<const char*>(boxes.data()),
              static_cast<std::streamsize>(boxes.size() * sizeof(lbvh::Aabb)));
  // A stream reports a full disk only when it is flushed.
  if (!file_.flush()) throw FileError(fmt::format("{}: cannot be written", path_));
  ++written_;
}

std::string referencePath(const std::string& boxesPath) {
  return std::filesystem::path(boxesPath).replace_extension(".ref").string();
}

std::optional<Reference> readReference(const std::string& path) {
  std::error_code missing;
  if (!std::filesystem::exists(path, missing)) return std::nullopt;
  sizeOf(path);  // throws if it is not a regular file
  Reference reference;
  std::ifstream file(path);
  if (!file) throw FileError(fmt::format("{}: {}", path, std::strerror(errno)));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::uint32_t frame = 0;
    std::uint64_t pairs = 0;
    std::uint64_t hash = 0;
    if (!(words >> frame >> pairs >> std::hex >> hash)) {
      throw FileError(fmt::format("{}: line {} is not `frame pairs hash`", path, number));
    }
    if (!reference.emplace(frame, PairHash(pairs, hash)).second) {
      throw FileError(fmt::format("{}: line {} has frame {} a second time", path, number, frame));
    }
  }
  return reference;
}

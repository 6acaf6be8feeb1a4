// Reading and writing of recorded boxes; see the header for the formats.
#include "recorded_boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sstream>

static_assert(std::endian::native == std::endian::little, "boxes are read as they lie in the file");
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

/// Divides instead of multiplying, because the header's product may overflow.
void checkSize(const std::string& path, const Header& header, std::uint64_t payload) {
  const std::uint64_t frameBytes = std::uint64_t{header.objects} * sizeof(lbvh::Aabb);
  const std::uint64_t whole = frameBytes == 0 ? 0 : payload / frameBytes;
  const std::uint64_t rest = frameBytes == 0 ? payload : payload % frameBytes;
  const std::uint64_t wanted = frameBytes == 0 ? 0 : header.frames;
  if (whole == wanted && rest == 0) return;
  throw FileError(fmt::format("{}: {} than its header says ({} objects, {} frames)", path,
                              whole < wanted ? "shorter" : "longer", header.objects,
                              header.frames));
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
  checkSize(path, header, size - sizeof header);
  objects_ = header.objects;
  frames_ = header.frames;
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

void BoxWriter::write(const std::vector<lbvh::Aabb>& boxes) {
  if (!headerWritten_) {
    objects_ = boxes.size();
    const Header header{kMagic, static_cast<std::uint32_t>(objects_), frames_};
    file_.write(reinterpret_cast<const char*>(&header), sizeof header);
    headerWritten_ = true;
  }
  if (boxes.size() != objects_) {
    throw FileError(fmt::format("{}: the number of objects changed from {} to {}", path_, objects_,
                                boxes.size()));
  }
  file_.write(reinterpret_cast<const char*>(boxes.data()),
              static_cast<std::streamsize>(boxes.size() * sizeof(lbvh::Aabb)));
  // A stream tells of a full disk only when it is flushed.
  if (!file_.flush()) throw FileError(fmt::format("{}: cannot be written", path_));
}

std::string referencePath(const std::string& boxesPath) {
  return std::filesystem::path(boxesPath).replace_extension(".ref").string();
}

Reference readReference(const std::string& path) {
  Reference reference;
  if (!std::filesystem::exists(path)) return reference;
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
    reference[frame] = PairHash(pairs, hash);
  }
  return reference;
}

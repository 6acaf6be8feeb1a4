// SPDX-License-Identifier: Zlib
// Fuzz target: the readers of the user's files and command lines. They read recorded boxes and
// their references, the viewer's swaps, and the programs' options. They must refuse unusable input
// with the documented exception and a one-line message.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "bytes.h"
#include "programs.h"
#include "support/recorded_boxes.h"
#include "target.h"

#if defined(HAS_VIEWER)
#include "script.h"
#include "support/broadphases.h"
#endif

namespace fuzz {
namespace {

bool isOneLine(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos;
}

/// A temporary file with the given content. The destructor deletes it.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& content)
      : path_(std::filesystem::temp_directory_path() /
              ("gpulbvh_fuzz_" + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~ScratchFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string rest(Bytes& bytes) {
  std::string text;
  while (!bytes.atEnd()) text += static_cast<char>(bytes.byte());
  return text;
}

void checkRefusal(const FileError& error, const std::string& path) {
  require(isOneLine(error.what()) && std::strstr(error.what(), path.c_str()) != nullptr,
          "a refusal does not name the file on one line");
}

/// Half of the files begin with a valid magic number. All frames that the reader reports must be
/// in the file.
void readBoxes(Bytes& bytes) {
  std::string content;
  if (bytes.below(2) == 0) {
    content = "AABBFRM1";
    for (int i = 0; i < 2; ++i) content += {static_cast<char>(bytes.below(4)), '\0', '\0', '\0'};
  }
  content += rest(bytes);
  const ScratchFile file(content);
  try {
    BoxReader reader(file.path());
    std::size_t at = 16;
    std::vector<lbvh::Aabb> boxes;
    for (std::uint32_t frame = 0; frame < reader.frames(); ++frame) {
      reader.read(boxes);
      const std::size_t size = boxes.size() * sizeof(lbvh::Aabb);
      require(boxes.size() == reader.objects() && at + size <= content.size(),
              "more boxes than the file has");
      require(size == 0 || std::memcmp(boxes.data(), content.data() + at, size) == 0,
              "not the boxes that are in the file");
      at += size;
    }
  } catch (const FileError& error) {
    checkRefusal(error, file.path());
  }
}

void readReferences(Bytes& bytes) {
  const ScratchFile file(rest(bytes));
  try {
    (void)readReference(file.path());
  } catch (const FileError& error) {
    checkRefusal(error, file.path());
  }
}

#if defined(HAS_VIEWER)
void readSwaps(Bytes& bytes) {
  std::string text;
  while (!bytes.atEnd()) {
    const std::uint8_t kind = bytes.byte();
    const std::vector<std::string>& names = broadphaseNames();
    if (kind < 128)
      text += static_cast<char>(kind);
    else
      text += kind % 2 == 0 ? std::string(":") + names[kind / 2 % names.size()] : "12,";
  }
  try {
    const auto commas = std::count(text.begin(), text.end(), ',');
    const std::vector<Swap> swaps = parseSwaps(text);
    require(swaps.size() <= static_cast<std::size_t>(commas) + 1, "more swaps than words");
    for (const Swap& swap : swaps)
      require(swap.step >= 0 && text.find(swap.broadphase) != std::string::npos,
              "a swap that is not in the text");
  } catch (const std::invalid_argument& error) {
    require(*error.what() != '\0', "a refusal does not say why");
  }
}
#else
void readSwaps(Bytes&) {}
#endif

/// A command line of words that the programs know, and of other words. Some words are joined.
void readCommandLine(Bytes& bytes) {
  static const std::vector<std::string> words = {"--scene",   "--objects",
                                                 "--seed",    "--broadphase",
                                                 "--backend", "--threads",
                                                 "--overlay", "--tree-level",
                                                 "--camera",  "--size",
                                                 "--hide-ui", "--screenshot",
                                                 "--video",   "--steps",
                                                 "--pick",    "--swap",
                                                 "--verify",  "--compare",
                                                 "--csv",     "--record",
                                                 "--report",  "--sizes",
                                                 "--list",    "--frames",
                                                 "--stages",  "--help",
                                                 "-h",        "--",
                                                 "-",         "--none",
                                                 "pile",      "stack",
                                                 "gpu-lbvh",  "dbvt",
                                                 "core",      "all",
                                                 "auto",      "host",
                                                 "cuda",      "tree",
                                                 "0",         "1",
                                                 "-1",        "64",
                                                 "1e9",       "99999999999999999999",
                                                 "nan",       "",
                                                 ",",         "1,2",
                                                 "640,480",   "0.5,-0.5",
                                                 "x",         "=",
                                                 "boxes.aabb"};
  const std::uint32_t program = bytes.byte();
  std::vector<std::string> line = {"program"};
  while (!bytes.atEnd()) {
    const std::uint8_t kind = bytes.byte();
    std::string word = kind < 224 ? words[kind % words.size()] : std::string(1, char(bytes.byte()));
    std::replace(word.begin(), word.end(), '\n', '_');
    std::replace(word.begin(), word.end(), '\0', '_');
    const bool isGlued = kind >= 2 * words.size() && line.size() > 1;
    if (isGlued)
      line.back() += word;
    else
      line.push_back(word);
  }
  const std::string why = parseCommandLine(program, line);
  require(why.find('\n') == std::string::npos, "a refusal is not one line");
}

}  // namespace

void runTarget(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  switch (bytes.below(4)) {
    case 0:
      return readBoxes(bytes);
    case 1:
      return readReferences(bytes);
    case 2:
      return readSwaps(bytes);
    default:
      return readCommandLine(bytes);
  }
}

}  // namespace fuzz

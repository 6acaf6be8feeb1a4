// SPDX-License-Identifier: Zlib
// Checks of output files; see the header. Opens a file to test whether it can be written. The
// file's mode is not enough: the file system may be read-only, and root may ignore the mode.
#include "support/output_files.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "support/command_line.h"
#include "support/system.h"

namespace {

/// Opens a file for writing, and creates it if it is missing. The destructor removes a created
/// file.
class Probe {
 public:
  explicit Probe(const OutputFile& output) : output_(output) {
    // Does not open pipes and devices: opening a pipe could wait for its reader.
    std::error_code ignored;
    const auto before = std::filesystem::status(output.path, ignored);
    const bool exists = std::filesystem::exists(before);
    if (exists && before.type() != std::filesystem::file_type::regular &&
        before.type() != std::filesystem::file_type::directory) {
      if (!mayBeWritten(output.path)) fail();
      return;
    }
    std::FILE* const file = std::fopen(output.path.c_str(), "ab");
    if (file == nullptr) fail();
    std::fclose(file);
    wasCreated_ = !exists;
    isRegular_ = true;
  }
  Probe(Probe&& other) noexcept : output_(other.output_), isRegular_(other.isRegular_) {
    std::swap(wasCreated_, other.wasCreated_);
  }
  ~Probe() {
    std::error_code ignored;  // a link stays; only its target is removed
    if (wasCreated_)
      std::filesystem::remove(std::filesystem::canonical(output_.path, ignored), ignored);
  }

  const char* option() const { return output_.option; }
  bool isSameFileAs(const Probe& other) const {
    std::error_code ignored;
    return isRegular_ && other.isRegular_ &&
           std::filesystem::equivalent(output_.path, other.output_.path, ignored);
  }

 private:
  [[noreturn]] void fail() const {
    throw FileError(fmt::format("{} {}: {}", output_.option, output_.path, std::strerror(errno)));
  }

  const OutputFile& output_;
  bool isRegular_ = false;
  bool wasCreated_ = false;
};

}  // namespace

void requireWritable(const std::vector<OutputFile>& files) {
  std::vector<Probe> probes;
  for (const OutputFile& file : files) {
    if (file.path.empty()) continue;
    probes.emplace_back(file);
    for (const Probe& earlier : probes)
      if (&earlier != &probes.back() && earlier.isSameFileAs(probes.back()))
        throw UsageError(fmt::format("{} and {} name the same file, {}", earlier.option(),
                                     file.option, file.path));
  }
}

// POSIX; see the header. A file is opened to learn whether it can be written: permissions alone do
// not tell of read-only file systems, and say nothing to root.
#include "support/output_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "support/command_line.h"

namespace {

/// Opens a file for writing, and creates it if it is missing; then removes it again in the end.
class Probe {
 public:
  explicit Probe(const OutputFile& output) : output_(output) {
    // Opening a pipe could wait for its reader, and pipes and devices have nothing to truncate.
    struct stat before {};
    const bool exists = stat(output.path.c_str(), &before) == 0;
    if (exists && !S_ISREG(before.st_mode) && !S_ISDIR(before.st_mode)) {
      if (access(output.path.c_str(), W_OK) != 0) fail();
      return;
    }
    const int file = open(output.path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) fail();
    wasCreated_ = !exists;
    isRegular_ = fstat(file, &status_) == 0;
    close(file);
  }
  Probe(Probe&& other) noexcept
      : output_(other.output_), status_(other.status_), isRegular_(other.isRegular_) {
    std::swap(wasCreated_, other.wasCreated_);
  }
  ~Probe() {
    std::error_code ignored;  // a link to a file that was missing stays
    if (wasCreated_)
      std::filesystem::remove(std::filesystem::canonical(output_.path, ignored), ignored);
  }

  const char* option() const { return output_.option; }
  bool isSameFileAs(const Probe& other) const {
    return isRegular_ && other.isRegular_ && status_.st_dev == other.status_.st_dev &&
           status_.st_ino == other.status_.st_ino;
  }

 private:
  [[noreturn]] void fail() const {
    throw FileError(fmt::format("{} {}: {}", output_.option, output_.path, std::strerror(errno)));
  }

  const OutputFile& output_;
  struct stat status_ {};
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

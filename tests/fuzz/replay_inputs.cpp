// SPDX-License-Identifier: Zlib
// Runs a fuzz target on files, and on random bytes: what fuzzers found, with any compiler.
// Usage: replay_NAME [--cuda] [--random SECONDS] [--inputs N] [--seed N] [FILE or FOLDER]...
// SECONDS of random inputs, and N of them, from a seed on; those of one seed are always the same.
// Status 77: --cuda, and no device. A failure ends the process in the target; the input is named.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "bytes.h"
#include "target.h"

namespace {

namespace fs = std::filesystem;

/// On stderr and at once: the process may not outlive the input.
void run(const std::string& name, const std::vector<std::uint8_t>& bytes) {
  std::fprintf(stderr, "%s\n", name.c_str());
  fuzz::runTarget(bytes.data(), bytes.size());
}

std::vector<fs::path> filesOf(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(path))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void runFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  run(path.string(), {text.begin(), text.end()});
}

long runRandom(double seconds, long count, std::uint32_t seed) {
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  long inputs = 0;
  for (; inputs < count || passed() < seconds; ++inputs, ++seed)
    run("--seed " + std::to_string(seed), fuzz::randomBytes(seed, 64 + seed % 8 * 512));
  return inputs;
}

int replay(int argc, char** argv) {
  double seconds = 0;
  long count = 0;
  std::uint32_t seed = std::random_device{}();
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const bool hasValue = i + 1 < argc;
    if (std::strcmp(argv[i], "--cuda") == 0)
      fuzz::otherBackend = lbvh::Backend::cuda;
    else if (std::strcmp(argv[i], "--random") == 0 && hasValue)
      seconds = std::stod(argv[++i]);
    else if (std::strcmp(argv[i], "--inputs") == 0 && hasValue)
      count = std::stol(argv[++i]);
    else if (std::strcmp(argv[i], "--seed") == 0 && hasValue)
      seed = static_cast<std::uint32_t>(std::stoul(argv[++i]));
    else
      paths.emplace_back(argv[i]);
  }
  const std::string why = lbvh::whyUnavailable(fuzz::otherBackend);
  if (!why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  const std::vector<fs::path> files = filesOf(paths);
  for (const fs::path& path : files) runFile(path);
  const long inputs = static_cast<long>(files.size()) + runRandom(seconds, count, seed);
  std::printf("%ld inputs, all answers right\n", inputs);
  return inputs > 0 ? 0 : 2;  // a run of nothing shows nothing
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return replay(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
}

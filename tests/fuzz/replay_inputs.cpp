// SPDX-License-Identifier: Zlib
// Runs a fuzz target on files and on random bytes. Needs no fuzzer, so any compiler can build it.
// Usage: replay_NAME [OPTION]... [FILE or FOLDER]...
//   --cuda            also run on the GPU; the exit status is 77 if there is no device
//   --skin NAME       in which steps boxes are grown (core/test_hooks.h)
//   --random SECONDS  run random inputs for this time
//   --inputs N        run this many random inputs
//   --seed N          seed of the first random input, which makes the inputs reproducible
// A file NAME.inputs has one input per line, in hex. Any other file is one input, and so is each
// file of a folder. A failure aborts the process. The last name that was printed is the name of the
// failing input.
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
#include "skin_hook.h"
#include "target.h"

namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<std::uint8_t>;

/// Runs the target on one input. Prints its name first, and to stderr, because the target may abort
/// the process.
void run(const std::string& name, const Bytes& bytes) {
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

Bytes fromHex(const std::string& digits) {
  if (digits.size() % 2 != 0 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw std::runtime_error("not an even number of digits 0 to 9 and a to f: " + digits);
  Bytes bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// Runs the inputs of a file: one per line, in hex, with an optional comment after `#`. Returns the
/// number of inputs.
long runLines(std::istream& file, const std::string& path) {
  long inputs = 0, number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::size_t comment = std::min(line.find('#'), line.size());
    std::string digits = line.substr(0, comment);
    digits.erase(digits.find_last_not_of(" \r") + 1);
    if (digits.empty()) continue;
    run(path + ":" + std::to_string(number) + "  " + line.substr(comment), fromHex(digits));
    ++inputs;
  }
  return inputs;
}

long runFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  if (path.extension() == ".inputs") return runLines(file, path.string());
  run(path.string(), {std::istreambuf_iterator<char>(file), {}});
  return 1;
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
    else if (std::strcmp(argv[i], "--skin") == 0 && hasValue)
      lbvh::test::forceSkin(argv[++i]);
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
  long inputs = 0;
  for (const fs::path& path : filesOf(paths)) inputs += runFile(path);
  inputs += runRandom(seconds, count, seed);
  std::printf("%ld inputs, all answers right\n", inputs);
  return inputs > 0 ? 0 : 2;  // a run without inputs tests nothing
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

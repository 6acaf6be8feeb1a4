// SPDX-License-Identifier: Zlib
// cuda_stress: updates large box sets many times on the GPU, while other work disturbs it. Each
// result is compared with the host's, bit by bit or by hash. This finds what tests of one small
// step cannot find: missing fences, and calls that fail because of other threads. Prints a line for
// each part. The exit status is 1 if any result was wrong, and 77 if there is no GPU.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>

#include "broadphase/pair_finder.h"
#include "cuda_stress.h"

namespace {

using lbvh::stress::Load;
using lbvh::stress::Outcome;

struct Part {
  const char* name;
  const char* what;
  Outcome (*run)(const Load& load);
  bool mayEndOnHost;  ///< the host may finish work that the GPU refuses
};

constexpr Part kParts[] = {
    {"device", "searches of DevicePairFinder, pair for pair", lbvh::stress::stressDeviceFinders,
     false},
    {"updates", "updates of PairFinder, with deltas, by hash", lbvh::stress::stressFinders, false},
    {"threads", "updates on two threads, by hash", lbvh::stress::stressThreads, true},
};

constexpr const char* kUsage =
    "usage: cuda_stress [--boxes N,N,...] [--rounds N] [--seconds S] [--part NAME] [--spoil]\n"
    "  --boxes    sizes of the box sets, ascending (1000000,4000000)\n"
    "  --rounds   maximum number of rounds of each part (1000)\n"
    "  --seconds  maximum time of each part, without its preparation (60)\n"
    "  --part     run only this part: device, updates or threads\n"
    "  --spoil    flip a bit in the third result of each part, so that all parts must fail\n";

/// @return false if `text` is not a number above 0
template <class T>
bool parse(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number > 0;
}

bool parseSizes(std::string_view text, std::vector<std::size_t>& sizes) {
  sizes.clear();
  while (true) {
    const std::size_t comma = text.find(',');
    std::uint32_t size = 0;
    if (!parse(text.substr(0, comma), size) || size < 16 || size > 1u << 30) return false;
    if (!sizes.empty() && size < sizes.back()) return false;
    sizes.push_back(size);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

bool parseArguments(int argc, char** argv, Load& load, std::string& part) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--spoil") {
      load.spoils = true;
      continue;
    }
    if (++i == argc) return false;
    const char* value = argv[i];
    bool isKnown = false;
    if (name == "--boxes") isKnown = parseSizes(value, load.sizes);
    if (name == "--rounds") isKnown = parse(value, load.rounds);
    if (name == "--seconds") isKnown = parse(value, load.seconds);
    if (name == "--part") {
      part = value;
      for (const Part& one : kParts) isKnown = isKnown || part == one.name;
    }
    if (!isKnown) return false;
  }
  return true;
}

/// Why a part has failed. Empty if it succeeded.
std::string verdict(const Part& part, const Outcome& outcome) {
  if (outcome.rounds == 0) return "no time for a single round";
  if (outcome.different > 0) return outcome.complaint;
  if (outcome.onHost == outcome.rounds) return "nothing ran on the GPU: " + outcome.complaint;
  if (outcome.onHost > 0 && !part.mayEndOnHost) return "the GPU failed: " + outcome.complaint;
  return {};
}

bool runPart(const Part& part, const Load& load) {
  std::string wrong;
  try {
    const Outcome outcome = part.run(load);
    wrong = verdict(part, outcome);
    std::printf("%s: %ld %s; %ld differ; the host finished %ld; %s\n", part.name, outcome.rounds,
                part.what, outcome.different, outcome.onHost, outcome.disturbance.c_str());
    if (outcome.onHost > 0 && wrong.empty())
      std::printf("%s: the host finished the first of them because: %s\n", part.name,
                  outcome.complaint.c_str());
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  if (!wrong.empty()) std::printf("FAILED: %s: %s\n", part.name, wrong.c_str());
  std::fflush(stdout);
  return wrong.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Load load{{1000000, 4000000}, 1000, 60, false};
  std::string only;
  if (!parseArguments(argc, argv, load, only)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (const std::string why = lbvh::whyUnavailable(lbvh::Backend::cuda); !why.empty()) {
    std::printf("cuda_stress: skipped: %s\n", why.c_str());
    return 77;
  }
  bool isRight = true;
  for (const Part& part : kParts)
    if (only.empty() || only == part.name) isRight = runPart(part, load) && isRight;
  if (std::ferror(stdout) != 0) return 1;
  return isRight ? 0 : 1;
}

// SPDX-License-Identifier: Zlib
// The programs' own main functions, built in under other names. They end in runProgram, which the
// linker is told to replace by the one here (--wrap).
#include "programs.h"

#include <CLI/CLI.hpp>

int replay_main(int argc, char** argv);
int rigid_bodies_main(int argc, char** argv);
int viewer_main(int argc, char** argv);

namespace {

std::string refusal;

}  // namespace

/// int runProgram(CLI::App&, int, char**, int (*)(void*), void*)
extern "C" int __wrap__Z10runProgramRN3CLI3AppEiPPcPFiPvES4_(CLI::App& app, int argc, char** argv,
                                                             int (*)(void*), void*) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) refusal = error.what();
  }
  return 0;
}

std::string fuzz::parseCommandLine(std::uint32_t program, const std::vector<std::string>& line) {
  std::vector<std::string> copy = line;
  std::vector<char*> arguments;
  for (std::string& word : copy) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  refusal.clear();
  constexpr int (*kMains[])(int, char**) = {replay_main, rigid_bodies_main, viewer_main};
  kMains[program % 3](static_cast<int>(line.size()), arguments.data());
  return refusal;
}

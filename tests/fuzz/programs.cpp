// SPDX-License-Identifier: Zlib
// Calls the programs' own main functions, which have other names here. These main functions call
// runProgram last. The linker replaces runProgram by the function in this file (--wrap).
#include "programs.h"

#include "support/command_line.h"

int replay_main(int argc, char** argv);
int rigid_bodies_main(int argc, char** argv);
int viewer_main(int argc, char** argv);

namespace {

std::string refusal;

}  // namespace

/// int runProgram(CommandLine&, int, char**, const std::function<int()>&)
extern "C" int __wrap__Z10runProgramR11CommandLineiPPcRKSt8functionIFivEE(
    CommandLine& line, int argc, char** argv, const std::function<int()>&) {
  try {
    line.parse(argc, argv);
  } catch (const UsageError& error) {
    refusal = error.what();
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

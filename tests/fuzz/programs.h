// SPDX-License-Identifier: Zlib
// Parses the command lines of the programs, but does not run the programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuzz {

/// Parses the command line of a program, whose index is taken modulo the number of programs.
/// Returns why the program would not run. The text is empty if the program would run, or if this
/// build has no programs.
std::string parseCommandLine(std::uint32_t program, const std::vector<std::string>& line);

}  // namespace fuzz

// SPDX-License-Identifier: Zlib
// The command lines of the programs, parsed but not run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuzz {

/// Parses the command line of the program with that index, modulo their number. Empty if it would
/// run, or if this build has no programs; otherwise the reason why it would not.
std::string parseCommandLine(std::uint32_t program, const std::vector<std::string>& line);

}  // namespace fuzz

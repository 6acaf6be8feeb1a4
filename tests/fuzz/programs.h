// The command lines of the programs, parsed but not obeyed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuzz {

/// Of the program of that number, counted around. Empty if it would run, or if this build has no
/// programs; else why it would not.
std::string parseCommandLine(std::uint32_t program, const std::vector<std::string>& line);

}  // namespace fuzz

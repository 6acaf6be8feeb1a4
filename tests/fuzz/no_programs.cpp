// SPDX-License-Identifier: Zlib
// For builds without the programs, which are slow to compile: their command lines are accepted.
#include "programs.h"

std::string fuzz::parseCommandLine(std::uint32_t, const std::vector<std::string>&) { return {}; }

// SPDX-License-Identifier: Zlib
// What a figure depends on: machine, compiler, Bullet, and the commit that was built. POSIX.
#pragma once

#include <string>
#include <utility>
#include <vector>

/// Names and values, for people.
std::vector<std::pair<std::string, std::string>> machineFacts();

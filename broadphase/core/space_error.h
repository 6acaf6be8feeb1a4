// SPDX-License-Identifier: Zlib
// Defines the exception that an execution space throws if it fails.
#pragma once

#include <stdexcept>
#include <string>

namespace lbvh {

/// Thrown if a space fails during a step. Another space can run the same step.
struct SpaceError : std::runtime_error {
  SpaceError(const std::string& what, bool sticky) : std::runtime_error(what), isSticky(sticky) {}
  bool isSticky;  ///< whether the space stays unusable in this process
};

}  // namespace lbvh

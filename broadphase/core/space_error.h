// SPDX-License-Identifier: Zlib
// How an execution space fails.
#pragma once

#include <stdexcept>
#include <string>

namespace lbvh {

/// A space failed in the middle of a step. Another space can finish the step.
struct SpaceError : std::runtime_error {
  SpaceError(const std::string& what, bool sticky) : std::runtime_error(what), isSticky(sticky) {}
  bool isSticky;  ///< this space will not work again in this process
};

}  // namespace lbvh

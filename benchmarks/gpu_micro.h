// SPDX-License-Identifier: Zlib
// The rows of gpu_micro, and the groups that measure them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace micro {

struct Row {
  std::string what;
  std::uint64_t size;  ///< 0: it has none
  std::string unit;
  double measured;
  double assumed;  ///< by the interpreter's model; 0: it assumes nothing
};
using Rows = std::vector<Row>;

// `isTiny`: sizes for an interpreter, where times mean nothing.
void measureAtomics(bool isTiny, Rows& rows);
void measureLaunches(bool isTiny, Rows& rows);
void measureMemory(bool isTiny, Rows& rows);

}  // namespace micro

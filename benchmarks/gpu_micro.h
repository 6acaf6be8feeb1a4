// SPDX-License-Identifier: Zlib
// Declares the rows of gpu_micro, and the functions that measure them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace micro {

struct Row {
  std::string what;
  std::uint64_t size;  ///< 0: no size
  std::string unit;
  double measured;
  double assumed;  ///< the value that the interpreter's model assumes; 0: none
};
using Rows = std::vector<Row>;

// With `isTiny` the sizes are for an interpreter, on which times mean nothing.
void measureAtomics(bool isTiny, Rows& rows);
void measureLaunches(bool isTiny, Rows& rows);
void measureMemory(bool isTiny, Rows& rows);

}  // namespace micro

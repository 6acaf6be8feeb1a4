// SPDX-License-Identifier: Zlib
// The function that libFuzzer calls with its inputs.
#include "target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::runTarget(data, size);
  return 0;
}

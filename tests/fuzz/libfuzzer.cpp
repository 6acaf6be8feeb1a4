// SPDX-License-Identifier: Zlib
// What libFuzzer calls with the inputs that it makes up.
#include "target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::runTarget(data, size);
  return 0;
}

// SPDX-License-Identifier: Zlib
// Declares what the interpreter's model of a GPU (tests/ptxvm/prof_model.h) assumes for the figures
// that gpu_micro measures. The assumptions follow from the model's constants. None was measured.
#pragma once

#include <cstdint>

namespace assumed {

double atomicsOnOneAddress();     ///< lanes per microsecond
double atomicsOnManyAddresses();  ///< lanes per microsecond
double kernelAlone();             ///< microseconds of an empty kernel
double nodeOfGraph();             ///< microseconds of an empty kernel or a fill
double deviceMemory();            ///< GB/s, reads and writes together
/// GB/s of wanted bytes, if each request transfers `moved` bytes to get `wanted` bytes.
double mappedMemory(double wanted, double moved);
double copy(std::uint64_t bytes);  ///< GB/s of copies over the bus, in one stream

}  // namespace assumed

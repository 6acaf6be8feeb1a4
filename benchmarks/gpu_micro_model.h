// SPDX-License-Identifier: Zlib
// What the interpreter's model of a GPU (tests/ptxvm/prof_model.h) assumes for each figure that
// gpu_micro measures. Assumptions, from its constants; nothing here was measured.
#pragma once

#include <cstdint>

namespace assumed {

double atomicsOnOneAddress();     ///< a microsecond, by lane
double atomicsOnManyAddresses();  ///< likewise
double kernelAlone();             ///< microseconds, of one that does nothing
double nodeOfGraph();             ///< likewise; of a kernel or a fill
double deviceMemory();            ///< GB/s, reads and writes together
/// GB/s of what the kernel wants, where each request moves `moved` bytes for `wanted` ones.
double mappedMemory(double wanted, double moved);
double copy(std::uint64_t bytes);  ///< GB/s over the bus, one after the other in a stream

}  // namespace assumed

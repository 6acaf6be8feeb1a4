// SPDX-License-Identifier: Zlib
#include "gpu_micro_model.h"

#include <algorithm>

#include "tests/ptxvm/prof_model.h"

namespace assumed {

double atomicsOnOneAddress() { return model::kSameAddressAtomics * model::kGhz * 1e3; }
double atomicsOnManyAddresses() { return model::kL2Atomics * model::kGhz * 1e3; }
double kernelAlone() { return model::kLaunchAlone + model::kShortestKernel; }
double nodeOfGraph() { return model::kLaunchInGraph + model::kShortestKernel; }
double deviceMemory() { return model::kDramGbs; }
double mappedMemory(double wanted, double moved) { return model::kBusGbs * wanted / moved; }

double copy(std::uint64_t bytes) {
  const double us = static_cast<double>(bytes) / (model::kBusGbs * 1e3);
  return static_cast<double>(bytes) / 1e3 /
         (model::kLaunchAlone + std::max(model::kShortestKernel, us));
}

}  // namespace assumed

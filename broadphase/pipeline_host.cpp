// The pipeline on the host's cores.
#include "broadphase/exec/host_space.h"
#include "broadphase/pipeline.h"

namespace lbvh {

std::unique_ptr<AnyPipeline> makeHostPipeline(int threads) {
  return std::make_unique<Pipeline<HostSpace>>(threads);
}

}  // namespace lbvh

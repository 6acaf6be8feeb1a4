#include "broadphase/device_pair_finder.h"

#include <stdexcept>
#include <string>

#include "broadphase/options.h"
#include "broadphase/pipelines/cuda.h"
#include "broadphase/pipelines/limits.h"

namespace lbvh {

struct DevicePairFinder::Impl {
  std::unique_ptr<DevicePipeline> pipeline;
};

DevicePairFinder::DevicePairFinder(std::size_t leastCapacity) : impl_(std::make_unique<Impl>()) {
  const std::string why = whyUnavailable(Backend::cuda);
  if (!why.empty()) throw std::runtime_error(why);
#if defined(GPULBVH_CUDA)
  impl_->pipeline = makeDevicePipeline(leastCapacity);
#else
  static_cast<void>(leastCapacity);
#endif
}

DevicePairFinder::~DevicePairFinder() = default;
DevicePairFinder::DevicePairFinder(DevicePairFinder&&) noexcept = default;
DevicePairFinder& DevicePairFinder::operator=(DevicePairFinder&&) noexcept = default;

DevicePairs DevicePairFinder::find(View<const Aabb> boxes, View<const Filter> filters,
                                   CUstream_st* stream) {
  requireFitting(boxes, filters);
  return impl_->pipeline->find(boxes, filters, stream);
}

}  // namespace lbvh

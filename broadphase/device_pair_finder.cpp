// SPDX-License-Identifier: Zlib
#include "broadphase/device_pair_finder.h"

#include <stdexcept>
#include <string>

#include "broadphase/options.h"
#include "broadphase/pipelines/limits.h"

#if defined(GPULBVH_CUDA)
#include "broadphase/pipelines/cuda.h"
#endif

namespace lbvh {

#if defined(GPULBVH_CUDA)

struct DevicePairFinder::Impl {
  std::unique_ptr<DevicePipeline> pipeline;
};

DevicePairFinder::DevicePairFinder(const DeviceOptions& asked) : impl_(std::make_unique<Impl>()) {
  Options options;
  options.device = asked.device;
  options.maxPairs = asked.maxPairs;
  impl_->pipeline = makeDevicePipeline(asked.leastCapacity, options);
}

void DevicePairFinder::reserve(std::size_t boxes, std::size_t pairs) {
  requireFitting({nullptr, boxes}, {});
  impl_->pipeline->reserve(boxes, pairs);
}

DevicePairs DevicePairFinder::find(View<const Aabb> boxes, View<const Filter> filters,
                                   CUstream_st* stream) {
  requireFitting(boxes, filters);
  return impl_->pipeline->find(boxes, filters, stream);
}

#else

struct DevicePairFinder::Impl {};

DevicePairFinder::DevicePairFinder(const DeviceOptions&) {
  throw std::runtime_error(whyUnavailable(Backend::cuda));
}
void DevicePairFinder::reserve(std::size_t, std::size_t) {}
DevicePairs DevicePairFinder::find(View<const Aabb>, View<const Filter>, CUstream_st*) {
  return {};
}

#endif

DevicePairFinder::DevicePairFinder(std::size_t leastCapacity)
    : DevicePairFinder(DeviceOptions{leastCapacity}) {}

DevicePairFinder::~DevicePairFinder() = default;
DevicePairFinder::DevicePairFinder(DevicePairFinder&&) noexcept = default;
DevicePairFinder& DevicePairFinder::operator=(DevicePairFinder&&) noexcept = default;

}  // namespace lbvh

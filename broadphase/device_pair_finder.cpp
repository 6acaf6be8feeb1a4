// SPDX-License-Identifier: Zlib
#include "broadphase/device_pair_finder.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "broadphase/pair_finder.h"
#include "broadphase/pipelines/device.h"
#include "broadphase/pipelines/limits.h"

#if defined(GPULBVH_CUDA)
#include "broadphase/pipelines/cuda.h"
#endif

namespace lbvh {

namespace {

/// The host's: what PairFinder finds, handed out as a GPU would.
class HostSearch final : public DevicePipeline {
 public:
  HostSearch(const Options& options, std::size_t leastCapacity)
      : finder_(options), maxPairs_(options.maxPairs), room_(requireCountable(leastCapacity)) {}

  DevicePairs find(View<const Aabb> boxes, View<const Filter> filters,
                   CUstream_st* stream) override {
    if (stream != nullptr)
      throw std::invalid_argument("DevicePairFinder: a stream, but it searches on the host");
    try {
      finder_.update(boxes, filters);
    } catch (const std::length_error&) {  // too many pairs: the boxes fit
      count_ = maxPairs_ + 1;
      return {nullptr, &count_, 0};
    }
    const View<const Pair> pairs = finder_.pairs();
    count_ = pairs.size;
    return {pairs.data, &count_, std::max(pairs.size, room_)};
  }

  void reserve(std::size_t boxes, std::size_t pairs) override {
    room_ = std::max(room_, requireCountable(pairs > 0 ? pairs : std::uint64_t{8} * boxes));
  }

 private:
  PairFinder finder_;
  const std::uint64_t maxPairs_;
  std::size_t room_;
  std::uint64_t count_ = 0;
};

Options optionsOf(const DeviceOptions& asked) {
  Options options;
  options.backend = asked.backend;
  options.device = asked.device;
  options.threads = asked.threads;
  options.maxPairs = std::min<std::uint64_t>(asked.maxPairs, kMostCountable);
  return options;
}

std::unique_ptr<DevicePipeline> makePipeline(const DeviceOptions& asked) {
  if (asked.threads < 0) throw std::invalid_argument("DeviceOptions::threads is negative");
  if (asked.backend == Backend::automatic)
    throw std::invalid_argument("DeviceOptions::backend is automatic: name where the boxes lie");
  const Options options = optionsOf(asked);
  if (asked.backend == Backend::host)
    return std::make_unique<HostSearch>(options, asked.leastCapacity);
#if defined(GPULBVH_CUDA)
  return makeDevicePipeline(asked.leastCapacity, options);
#else
  throw std::runtime_error(whyUnavailable(Backend::cuda));
#endif
}

}  // namespace

struct DevicePairFinder::Impl {
  std::unique_ptr<DevicePipeline> pipeline;
};

DevicePairFinder::DevicePairFinder(const DeviceOptions& options)
    : impl_(std::make_unique<Impl>(Impl{makePipeline(options)})) {}

void DevicePairFinder::reserve(std::size_t boxes, std::size_t pairs) {
  requireFitting({nullptr, boxes}, {});
  impl_->pipeline->reserve(boxes, pairs);
}

DevicePairs DevicePairFinder::find(View<const Aabb> boxes, View<const Filter> filters,
                                   CUstream_st* stream) {
  requireFitting(boxes, filters);
  return impl_->pipeline->find(boxes, filters, stream);
}

DevicePairFinder::DevicePairFinder(std::size_t leastCapacity)
    : DevicePairFinder(DeviceOptions{leastCapacity}) {}

DevicePairFinder::~DevicePairFinder() = default;
DevicePairFinder::DevicePairFinder(DevicePairFinder&&) noexcept = default;
DevicePairFinder& DevicePairFinder::operator=(DevicePairFinder&&) noexcept = default;

}  // namespace lbvh

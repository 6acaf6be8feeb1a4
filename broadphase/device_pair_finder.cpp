// SPDX-License-Identifier: Zlib
#include "broadphase/device_pair_finder.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "broadphase/core/compiler.h"
#include "broadphase/core/device_pipeline.h"
#include "broadphase/core/device_request.h"
#include "broadphase/core/limits.h"
#include "broadphase/core/old_names.h"
#include "broadphase/host/step.h"

#if defined(GPULBVH_CUDA)
#include "broadphase/choose/adaptive.h"
#include "broadphase/cuda/step.h"
#endif

namespace lbvh {

namespace {

std::unique_ptr<DevicePipeline> makePipeline(const DeviceOptions& given) {
  DeviceOptions options = withoutOldNames(given);
  if (options.threads < 0)
    throw std::invalid_argument("DeviceOptions::threads is " + std::to_string(options.threads) +
                                ", but must be 0 or more");
  if ((options.allocator.allocate == nullptr) != (options.allocator.release == nullptr))
    throw std::invalid_argument(std::string("DeviceOptions::allocator has a null ") +
                                (options.allocator.release == nullptr ? "release" : "allocate") +
                                ": set both functions or neither");
  requireCountable(options.initialPairCapacity);
  options.maxPairs = std::min<std::uint64_t>(options.maxPairs, kMaxCountable);
  if (options.memory == MemorySpace::host) return makeHostDevicePipeline(options);
#if defined(GPULBVH_CUDA)
  if (gpuWasWrong) throw std::runtime_error(whyUnavailable(Backend::cuda, options.device));
  return makeCudaDevicePipeline(options);
#else
  throw std::runtime_error(whyUnavailable(Backend::cuda));
#endif
}

}  // namespace

struct GPULBVH_HIDDEN DevicePairFinder::Impl {
  std::unique_ptr<DevicePipeline> pipeline;
};

DevicePairFinder::DevicePairFinder(const DeviceOptions& options)
    : impl_(std::make_unique<Impl>(Impl{makePipeline(options)})) {}

DeviceLists DevicePairFinder::find(const DeviceScene& scene, const DeviceRequest& request,
                                   CUstream_st* stream) {
  requireUsable(scene, request);
  return impl_->pipeline->find(scene, request, stream);
}

void DevicePairFinder::reserve(const DeviceScene& scene, const DeviceRequest& request,
                               std::size_t pairs) {
  requireUsable(scene, request);
  impl_->pipeline->reserve(
      scene, request, requireCountable(pairs > 0 ? pairs : std::uint64_t{8} * scene.boxCapacity));
}

DevicePairs DevicePairFinder::find(View<const Aabb> boxes, View<const Filter> filters,
                                   CUstream_st* stream) {
  requireFitting(boxes, filters);
  const DeviceLists found =
      find(DeviceScene::of(boxes, filters.empty() ? nullptr : filters.data()), {}, stream);
  return {found.pairs.data(), &found.report->pairs, found.pairs.size()};
}

void DevicePairFinder::reserve(std::size_t boxes, std::size_t pairs) {
  alignas(Aabb) static constexpr Aabb nowhere{};  // reserve() reads no array
  reserve(DeviceScene::of({&nowhere, boxes}), {}, pairs);
}

void DevicePairFinder::closestHits(const RayBatch& rays, RayHit* hits, CUstream_st* stream) {
  requireUsable(rays, hits);
  impl_->pipeline->closestHits(rays, hits, stream);
}

void DevicePairFinder::anyHits(const RayBatch& rays, std::uint8_t* hits, CUstream_st* stream) {
  requireUsable(rays, hits);
  impl_->pipeline->anyHits(rays, hits, stream);
}

DeviceHits DevicePairFinder::allHits(const RayBatch& rays, View<std::uint32_t> list,
                                     CUstream_st* stream) {
  requireUsable(rays, list);
  return impl_->pipeline->allHits(rays, list, stream);
}

DeviceHits DevicePairFinder::allHits(const BoxBatch& boxes, View<std::uint32_t> list,
                                     CUstream_st* stream) {
  requireUsable(boxes, list);
  return impl_->pipeline->allHits(boxes, list, stream);
}

void DevicePairFinder::reserveQueries(std::size_t queries, std::size_t hits) {
  requireFitting({nullptr, queries}, {});
  impl_->pipeline->reserveQueries(queries,
                                  requireCountable(hits > 0 ? hits : std::uint64_t{8} * queries));
}

DevicePairFinder::DevicePairFinder(std::size_t initialPairCapacity)
    : DevicePairFinder([initialPairCapacity] {
        DeviceOptions options;
        options.initialPairCapacity = initialPairCapacity;
        return options;
      }()) {}

DevicePairFinder::~DevicePairFinder() = default;
DevicePairFinder::DevicePairFinder(DevicePairFinder&&) noexcept = default;
DevicePairFinder& DevicePairFinder::operator=(DevicePairFinder&&) noexcept = default;

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
#include "broadphase/host/step.h"

#include <algorithm>
#include <stdexcept>

#include "broadphase/core/device_input.h"
#include "broadphase/core/device_request.h"
#include "broadphase/host/parallel/space.h"
#include "broadphase/host/world_blocks.h"
#include "broadphase/host/world_lists.h"
#include "broadphase/host/world_queries.h"
#include "broadphase/host/world_search.h"

namespace lbvh {
namespace {

class HostDevicePipeline final : public DevicePipeline {
 public:
  HostDevicePipeline(const DeviceOptions& options, const SimdKernels& kernels)
      : maxPairs_(options.maxPairs),
        space_(HostTasks::threadsFor(options.threads)),
        worlds_(space_, kernels),
        search_(space_.tasks(), kernels),
        lists_(space_.tasks(), kernels),
        queries_(space_.tasks(), worlds_, options.maxPairs) {
    space_.setTimesStages(false);
    lists_.reserve(options.initialPairCapacity);
  }

  DeviceLists find(const DeviceScene& scene, const DeviceRequest& request,
                   CUstream_st* stream) override {
    requireNone(stream);
    lists_.begin(request);
    worlds_.clear();  // because gather() overwrites the boxes of the worlds
    worlds_.build(gather(scene));
    PairRule rule(scene);
    rule.filters = nullptr;  // the search reads the filters in the blocks
    const View<std::uint32_t> byWorld = lists_.byWorld(scene, request);
    NeighbourLists found;
    const ListKind kind =
        request.layout == PairLayout::neighbours ? ListKind::full : ListKind::half;
    const std::uint64_t limit = mostPairs(maxPairs_, request);
    report_.pairs = search_.find(worlds_, scene.boxCapacity, {rule, kind, limit, byWorld}, found);
    DeviceLists lists;
    if (report_.pairs > limit) {
      report_.pairs = limit + 1;
      report_.errors |= bitOf(DeviceError::searchStopped);
      std::fill(byWorld.begin(), byWorld.end(), 0u);
      lists = lists_.writeNone(scene.boxCapacity, request);
    } else {
      lists = lists_.write(found, scene.boxCapacity, request, report_);
    }
    lists.byWorld = byWorld;
    lists.report = &report_;
    return lists;
  }

  /// After this call, queries find no boxes until the next search, as on a GPU.
  void reserve(const DeviceScene&, const DeviceRequest& request, std::size_t pairs) override {
    worlds_.clear();
    if (request.changes) lists_.forgetLast();
    lists_.reserve(pairs);
  }

  void closestHits(const RayBatch& rays, RayHit* hits, CUstream_st* stream) override {
    requireNone(stream);
    queries_.closestHits(rays, hits);
  }
  void anyHits(const RayBatch& rays, std::uint8_t* hits, CUstream_st* stream) override {
    requireNone(stream);
    queries_.anyHits(rays, hits);
  }
  DeviceHits allHits(const RayBatch& rays, View<std::uint32_t> list, CUstream_st* stream) override {
    requireNone(stream);
    return queries_.allHits(rays, list);
  }
  DeviceHits allHits(const BoxBatch& boxes, View<std::uint32_t> list,
                     CUstream_st* stream) override {
    requireNone(stream);
    return queries_.allHits(boxes, list);
  }
  void reserveQueries(std::size_t, std::size_t hits) override { queries_.reserve(hits); }

 private:
  static void requireNone(CUstream_st* stream) {
    if (stream != nullptr)
      throw std::invalid_argument(
          "DevicePairFinder: with MemorySpace::host the stream must be null");
  }

  /// Copies the boxes and their ranks into arrays, and resets the report.
  RankedBoxes gather(const DeviceScene& scene) {
    report_ = {};
    const std::size_t n = scene.boxCapacity;
    const GatherBoxes body{scene, boxes_.ensure(n).data(), ranks_.ensure(n).data(),
                           &report_.errors};
    space_.forEach(GatherBoxes::elements(scene), body);
    report_.boxes = static_cast<std::uint32_t>(
        scene.boxCount != nullptr ? std::min<std::size_t>(*scene.boxCount, n) : n);
    const std::size_t filters = scene.filters != nullptr ? n : 0;
    return {{boxes_.data(), n},
            {scene.filters, filters},
            scene.worlds != nullptr ? ranks_.data() : nullptr,
            worldsOf(scene)};
  }

  const std::uint64_t maxPairs_;
  HostSpace space_;
  HostBuffer<Aabb> boxes_;
  HostBuffer<std::uint32_t> ranks_;
  WorldBlocks worlds_;
  WorldSearch search_;
  HostLists lists_;
  HostQueries queries_;
  DeviceReport report_{};
};

}  // namespace

std::unique_ptr<DevicePipeline> makeHostDevicePipeline(const DeviceOptions& options) {
  return std::make_unique<HostDevicePipeline>(options, simdKernels());
}

}  // namespace lbvh

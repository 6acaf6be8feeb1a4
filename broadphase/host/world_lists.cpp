// SPDX-License-Identifier: Zlib
#include "broadphase/host/world_lists.h"

#include <algorithm>
#include <utility>

namespace lbvh {

void HostLists::begin(const DeviceRequest& request) {
  comparedSize_ = request.changes ? std::exchange(lastSize_, 0) : 0;
}

View<std::uint32_t> HostLists::byWorld(const DeviceScene& scene, const DeviceRequest& request) {
  if (!request.countsByWorld) return {};
  const std::size_t size = std::size_t{scene.worldCount} + 1;
  return {memoryFor(size, request.byWorld, byWorld_, size).data(), size};
}

DeviceLists HostLists::write(NeighbourLists found, std::size_t boxes, const DeviceRequest& request,
                             DeviceReport& report) {
  DeviceLists lists;
  if (request.layout == PairLayout::neighbours)
    writeNeighbours(found, boxes, request, report, lists);
  else if (request.changes)
    writeChanges(found, boxes, request, report, lists);
  else
    writePairs(found, boxes, request, report, lists);
  return lists;
}

void HostLists::writePairs(NeighbourLists found, std::size_t boxes, const DeviceRequest& request,
                           DeviceReport& report, DeviceLists& lists) {
  const std::size_t size = found.indices.size();
  const View<Pair> sorted = memoryFor(size, request.pairs, pairs_, capacity_);
  neighbourSort_.writePairs(found, boxes, {sorted.data(), size});
  lists.pairs = handOut(sorted, size, request.pairs, DeviceError::pairsTruncated, report.errors);
}

void HostLists::writeNeighbours(NeighbourLists found, std::size_t boxes,
                                const DeviceRequest& request, DeviceReport& report,
                                DeviceLists& lists) {
  const std::size_t size = found.indices.size();
  const View<std::uint32_t> starts = offsets(boxes, request);
  const View<std::uint32_t> sorted =
      memoryFor(size, request.neighbours, neighbours_, 2 * capacity_);
  neighbourSort_.writeLists(found, boxes, {sorted.data(), size}, starts.data());
  lists.offsets = starts;
  lists.neighbours =
      handOut(sorted, size, request.neighbours, DeviceError::pairsTruncated, report.errors);
  endWithin(lists.neighbours.size(), starts);
}

/// Writes the pairs and their changes. Also keeps the pairs, so that the next search with `changes`
/// can be compared with them.
void HostLists::writeChanges(NeighbourLists found, std::size_t boxes, const DeviceRequest& request,
                             DeviceReport& report, DeviceLists& lists) {
  const std::size_t size = found.indices.size();
  const View<Pair> sorted = lastButOne_.ensure(std::max(size, capacity_));
  neighbourSort_.writePairs(found, boxes, {sorted.data(), size});
  const View<Pair> added = added_.ensure(std::max(size, capacity_));
  const View<Pair> removed = removed_.ensure(std::max(comparedSize_, capacity_));
  const auto changes =
      delta_.compare(tasks_, {last_.data(), comparedSize_}, View<const Pair>{sorted.data(), size},
                     {}, added.data(), removed.data());
  std::swap(last_, lastButOne_);
  lastSize_ = size;
  report.added = changes.added.size();
  report.removed = changes.removed.size();
  lists.pairs = handOut(sorted, size, request.pairs, DeviceError::pairsTruncated, report.errors);
  lists.added = handOut(added, changes.added.size(), request.added, DeviceError::addedTruncated,
                        report.errors);
  lists.removed = handOut(removed, changes.removed.size(), request.removed,
                          DeviceError::removedTruncated, report.errors);
  if (report.has(DeviceError::pairsTruncated)) forgetLast();
}

DeviceLists HostLists::writeNone(std::size_t boxes, const DeviceRequest& request) {
  DeviceLists lists;
  if (request.changes) forgetLast();
  lists.pairs = request.pairs;
  lists.added = request.added;
  lists.removed = request.removed;
  lists.neighbours = request.neighbours;
  if (request.layout != PairLayout::neighbours) return lists;
  const View<std::uint32_t> starts = offsets(boxes, request);
  std::fill(starts.begin(), starts.end(), 0u);
  lists.offsets = starts;
  return lists;
}

View<std::uint32_t> HostLists::offsets(std::size_t boxes, const DeviceRequest& request) {
  return {memoryFor(boxes + 1, request.offsets, offsets_, 0).data(), boxes + 1};
}

}  // namespace lbvh

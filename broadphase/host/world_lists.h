// SPDX-License-Identifier: Zlib
// Hands out the pairs of a search on the host in the form that was asked for, in the finder's
// memory or in the caller's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "broadphase/device_scene.h"
#include "broadphase/host/pair_delta.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/sort_neighbours.h"

namespace lbvh {

/// Where a list with `found` elements goes that is written as a whole: to the caller's room if that
/// is large enough, else to the finder's.
/// @param least so much room the finder's has
template <class T>
View<T> roomFor(std::size_t found, View<T> callers, HostBuffer<T>& finders, std::size_t least) {
  if (callers.data != nullptr && found <= callers.size) return callers;
  return finders.ensure(callers.data != nullptr ? found : std::max(found, least));
}

/// The list as it is handed out: what the caller's room has not yet is copied there.
/// @param error set in `errors` if that cuts the list
template <class T>
View<const T> handOut(View<T> list, std::size_t found, View<T> callers, DeviceError error,
                      std::uint32_t& errors) {
  if (callers.data == nullptr) return list;
  if (list.data != callers.data)
    std::copy_n(list.data, std::min(found, callers.size), callers.data);
  if (found > callers.size) errors |= error;
  return callers;
}

/// Lists that are cut end where the room does.
inline void endWithin(std::size_t room, View<std::uint32_t> offsets) {
  for (std::uint32_t& offset : offsets)
    offset = static_cast<std::uint32_t>(std::min<std::size_t>(offset, room));
}

class HostLists {
 public:
  HostLists(HostTasks& tasks, const SimdKernels& kernels)
      : tasks_(tasks), neighbourSort_(tasks, kernels), delta_(kernels) {}

  /// From now on a list in the finder's memory has room for so many pairs.
  void reserve(std::size_t pairs) { room_ = std::max(room_, pairs); }

  /// Comes first in each search: one with `changes` that throws has forgotten the last pairs.
  void begin(const DeviceRequest& request);

  /// Where the pairs of each world are to be counted. Empty if nobody asks.
  View<std::uint32_t> byWorld(const DeviceScene& scene, const DeviceRequest& request);

  /// Writes what was asked for, and its counts.
  /// @param lists as the form wants them: with each pair in both, or in the lesser box's
  /// @param report with the pairs
  DeviceLists write(const NeighbourLists& lists, std::size_t boxes, const DeviceRequest& request,
                    DeviceReport& report);
  /// Of a search that was stopped.
  DeviceLists writeNone(std::size_t boxes, const DeviceRequest& request);
  /// Nothing is kept for a search with `changes`: all its pairs are added.
  void forgetLast() { lastSize_ = 0; }

 private:
  void writePairs(const NeighbourLists& found, std::size_t boxes, const DeviceRequest& request,
                  DeviceReport& report, DeviceLists& lists);
  void writeNeighbours(const NeighbourLists& found, std::size_t boxes, const DeviceRequest& request,
                       DeviceReport& report, DeviceLists& lists);
  void writeChanges(const NeighbourLists& found, std::size_t boxes, const DeviceRequest& request,
                    DeviceReport& report, DeviceLists& lists);
  View<std::uint32_t> offsets(std::size_t boxes, const DeviceRequest& request);

  HostTasks& tasks_;
  NeighbourSort neighbourSort_;
  HostPairDelta delta_;
  std::size_t room_ = 0;
  HostBuffer<Pair> pairs_, added_, removed_;
  HostBuffer<Pair> last_, lastButOne_;  ///< pairs of the last search with changes, and before
  std::size_t lastSize_ = 0;
  std::size_t comparedSize_ = 0;  ///< so many pairs of `last_` this search is compared with
  HostBuffer<std::uint32_t> offsets_, neighbours_, byWorld_;
};

}  // namespace lbvh

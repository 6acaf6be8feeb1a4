// SPDX-License-Identifier: Zlib
// Writes the pairs of a search on the host in the requested layout, to the finder's memory or to
// the caller's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "broadphase/device_scene.h"
#include "broadphase/host/pair_lists.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"

namespace lbvh {

/// Returns the memory for a list of `found` elements: the caller's if it is large enough, else the
/// finder's.
/// @param least minimum capacity of the finder's memory, if the caller passes no memory
template <class T>
View<T> memoryFor(std::size_t found, View<T> callers, HostBuffer<T>& finders, std::size_t least) {
  if (callers.data() != nullptr && found <= callers.size()) return callers;
  return finders.ensure(callers.data() != nullptr ? found : std::max(found, least));
}

/// Returns the list that the caller receives. If the caller has passed memory, and the list is not
/// there yet, copies it there.
/// @param error set in `errors` if the caller's memory is too small for the list
template <class T>
View<const T> handOut(View<T> list, std::size_t found, View<T> callers, DeviceError error,
                      std::uint32_t& errors) {
  if (callers.data() == nullptr) return list;
  if (list.data() != callers.data())
    std::copy_n(list.data(), std::min(found, callers.size()), callers.data());
  if (found > callers.size()) errors |= bitOf(error);
  return callers;
}

/// Limits offsets to the capacity of a truncated list.
inline void endWithin(std::size_t capacity, View<std::uint32_t> offsets) {
  for (std::uint32_t& offset : offsets)
    offset = static_cast<std::uint32_t>(std::min<std::size_t>(offset, capacity));
}

class HostLists {
 public:
  HostLists(HostTasks& tasks, const SimdKernels& kernels)
      : tasks_(tasks), neighbourSort_(tasks, kernels), delta_(kernels) {}

  /// Raises the minimum capacity of lists in the finder's memory to this many pairs.
  void reserve(std::size_t pairs) { capacity_ = std::max(capacity_, pairs); }

  /// Must be called first in each search. If a search with `changes` throws, the next such
  /// search reports all pairs as added.
  void begin(const DeviceRequest& request);

  /// Returns the memory for the counts by world. Empty if they were not requested.
  View<std::uint32_t> byWorld(const DeviceScene& scene, const DeviceRequest& request);

  /// Writes the requested lists, and their counts and errors to `report`.
  /// @param lists each pair must be in the lists of both boxes for PairLayout::neighbours, and
  ///   otherwise in the list of the smaller index
  /// @param report must already have the number of pairs
  DeviceLists write(NeighbourLists lists, std::size_t boxes, const DeviceRequest& request,
                    DeviceReport& report);
  /// Returns the lists of a search that was stopped.
  DeviceLists writeNone(std::size_t boxes, const DeviceRequest& request);
  /// Forgets the last pairs. The next search with `changes` reports all pairs as added.
  void forgetLast() { lastSize_ = 0; }

 private:
  void writePairs(NeighbourLists found, std::size_t boxes, const DeviceRequest& request,
                  DeviceReport& report, DeviceLists& lists);
  void writeNeighbours(NeighbourLists found, std::size_t boxes, const DeviceRequest& request,
                       DeviceReport& report, DeviceLists& lists);
  void writeChanges(NeighbourLists found, std::size_t boxes, const DeviceRequest& request,
                    DeviceReport& report, DeviceLists& lists);
  View<std::uint32_t> offsets(std::size_t boxes, const DeviceRequest& request);

  HostTasks& tasks_;
  NeighbourSort neighbourSort_;
  HostPairDelta delta_;
  std::size_t capacity_ = 0;
  HostBuffer<Pair> pairs_, added_, removed_;
  HostBuffer<Pair> last_, lastButOne_;  ///< pairs of the last two searches with `changes`
  std::size_t lastSize_ = 0;
  std::size_t comparedSize_ = 0;  ///< number of pairs in `last_` to compare this search with
  HostBuffer<std::uint32_t> offsets_, neighbours_, byWorld_;
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
#include "broadphase/host/world_order.h"

#include <algorithm>

#include "broadphase/core/grid.h"
#include "broadphase/core/morton.h"

namespace lbvh {

SceneBounds WorldOrder::sort(View<const Aabb> boxes, View<std::uint32_t> ids) {
  if (ids.size <= kFew) return sortByClass(boxes, ids);
  const View<const Aabb> mine = inOnePiece(boxes, ids);
  StepHeader header{};
  header.scene = order_.measure(mine);
  ChooseGrid{mine, nullptr, &header}(0);
  if (header.grid.bits == 10)
    sortByShortKeys(mine, header, ids);
  else
    sortByLongKeys(mine, header.grid, ids);
  return header.scene;
}

SceneBounds WorldOrder::sortByClass(View<const Aabb> boxes, View<std::uint32_t> ids) {
  SceneBounds scene;
  for (const std::uint32_t id : ids) scene.ordinary += classify(boxes[id]) == BoxClass::ordinary;
  if (scene.ordinary == ids.size) return scene;
  const auto moveToFront = [&](std::uint32_t* begin, BoxClass boxClass) {
    return std::stable_partition(begin, ids.end(),
                                 [&](std::uint32_t id) { return classify(boxes[id]) == boxClass; });
  };
  std::uint32_t* const oversized = moveToFront(ids.begin(), BoxClass::ordinary);
  std::uint32_t* const nan = moveToFront(oversized, BoxClass::oversized);
  scene.oversized = static_cast<std::uint32_t>(nan - oversized);
  scene.nan = static_cast<std::uint32_t>(ids.end() - nan);
  return scene;
}

/// The kernels read boxes that follow each other. A world's often do: then nothing is copied.
View<const Aabb> WorldOrder::inOnePiece(View<const Aabb> boxes, View<const std::uint32_t> ids) {
  const std::uint32_t first = ids[0];
  if (ids[ids.size - 1] - first == ids.size - 1) return {boxes.data + first, ids.size};
  const View<Aabb> copies = copies_.ensure(ids.size);
  tasks_.forRanges(ids.size, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) copies[k] = boxes[ids[k]];
  });
  return copies;
}

/// Key and index in one word.
void WorldOrder::sortByShortKeys(View<const Aabb> boxes, const StepHeader& header,
                                 View<std::uint32_t> ids) {
  const View<std::uint32_t> keys = shortKeys_.ensure(ids.size);
  const View<std::uint64_t> words = words_.ensure(ids.size);
  order_.assignKeys(boxes, header.grid, keys.data, places_.ensure(ids.size).data);
  tasks_.forRanges(ids.size, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) words[k] = std::uint64_t{keys[k]} << 32 | ids[k];
  });
  const int shift = CurveOrder::lowestBit(header);
  const std::uint64_t* sorted = sort_.words(tasks_, words, spare_.ensure(ids.size).data, 32 + shift,
                                            AssignCodes<std::uint32_t>::kKeyBits - shift);
  tasks_.forRanges(ids.size, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) ids[k] = static_cast<std::uint32_t>(sorted[k]);
  });
}

void WorldOrder::sortByLongKeys(View<const Aabb> boxes, const Grid& grid, View<std::uint32_t> ids) {
  const View<std::uint64_t> keys = words_.ensure(ids.size);
  const View<std::uint32_t> spareIds = places_.ensure(ids.size);
  order_.assignKeys(boxes, grid, keys.data, spareIds.data);
  const int shift = AssignCodes<std::uint64_t>::lowestBit(grid.bits);
  sort_.byKey(tasks_, keys, ids, spare_.ensure(ids.size), spareIds, shift,
              AssignCodes<std::uint64_t>::kKeyBits - shift);
}

}  // namespace lbvh

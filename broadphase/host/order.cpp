// SPDX-License-Identifier: Zlib
#include "broadphase/host/order.h"

namespace lbvh {

SceneBounds CurveOrder::measure(View<const Aabb> boxes) {
  const std::size_t parts = tasks_.parts(boxes.size, kGrain);
  const View<SceneBounds> partial = partial_.ensure(parts);
  tasks_.forParts(boxes.size, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
    partial[part] = kernels_.measure(boxes, begin, end);
  });
  SceneBounds sum;
  for (const SceneBounds& one : partial) sum += one;
  return sum;
}

}  // namespace lbvh

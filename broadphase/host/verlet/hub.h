// SPDX-License-Identifier: Zlib
// A box with very many candidates (candidates.h), such as a ground or a platform.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/types.h"

namespace lbvh {

/// Its candidates have it in their rows, but it has none of them in its own, where so many could
/// not be edited one by one. When it changes, it is searched for, as if it had left its skin.
struct Hub {
  std::uint32_t id;
  std::size_t candidates;  ///< about how many
  Aabb box, grown;         ///< in the last step
  /// In a step in which it has left: boxes that it may have to leave.
  std::vector<std::uint32_t> former = {};
};

/// @param hubs sorted by id; one of them is `id`
inline const Hub& findHub(View<const Hub> hubs, std::uint32_t id) {
  return *std::lower_bound(hubs.begin(), hubs.end(), id,
                           [](const Hub& hub, std::uint32_t other) { return hub.id < other; });
}

}  // namespace lbvh

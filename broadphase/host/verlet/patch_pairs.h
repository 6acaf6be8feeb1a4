// SPDX-License-Identifier: Zlib
// A sorted list of pairs from the last step's and the few pairs that were added and removed.
#pragma once

#include <algorithm>

#include "broadphase/types.h"

namespace lbvh {

/// All lists are sorted; every removed pair is in `old`, no added one is.
/// @param out has room for old.size + added.size - removed.size pairs, all of which are written
inline void patchPairs(View<const Pair> old, View<const Pair> added, View<const Pair> removed,
                       Pair* out) {
  const Pair* from = old.begin();
  const auto copyUpTo = [&](const Pair* end) {
    out = std::copy(from, end, out);
    from = end;
  };
  const Pair *add = added.begin(), *drop = removed.begin();
  while (add != added.end() || drop != removed.end()) {
    const bool adds = drop == removed.end() || (add != added.end() && *add < *drop);
    copyUpTo(std::lower_bound(from, old.end(), adds ? *add : *drop));
    if (adds) {
      *out++ = *add++;
    } else {
      ++from;
      ++drop;
    }
  }
  copyUpTo(old.end());
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// Makes a View of a std::vector.
#pragma once

#include <vector>

#include "broadphase/types.h"

namespace lbvh {

template <class T>
View<const T> viewOf(const std::vector<T>& values) {
  return {values.data(), values.size()};
}

}  // namespace lbvh

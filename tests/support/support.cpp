// SPDX-License-Identifier: Zlib
#include "support.h"

#include <cmath>
#include <limits>

namespace lbvh::test {
namespace {

template <class F>
Boxes generate(std::size_t n, const F& box) {
  Boxes boxes;
  for (std::size_t i = 0; i < n; ++i) boxes.push_back(box(i));
  return boxes;
}

// About ten neighbours per box, for any n.
Boxes uniform(std::size_t n, Random& r) {
  const float side = std::cbrt(static_cast<float>(n));
  return generate(n, [&](std::size_t) {
    return boxAt(r.uniform(0, side), r.uniform(0, side), r.uniform(0, side), 0.55f);
  });
}

Boxes clustered(std::size_t n, Random& r) {
  return generate(n, [&](std::size_t i) {
    const float at = static_cast<float>(i % 7) * 1000.0f;
    return boxAt(at + r.uniform(0, 3), at + r.uniform(0, 3), r.uniform(0, 3), r.uniform(0, 0.3f));
  });
}

Boxes coincident(std::size_t n, Random&) {
  return generate(n, [](std::size_t) { return boxAt(1, 2, 3, 0.5f); });
}

Boxes sharedCentres(std::size_t n, Random& r) {
  return generate(n, [&](std::size_t i) {
    return boxAt(static_cast<float>(i / 16), 0, 0, r.uniform(0.01f, 0.6f));
  });
}

Boxes nested(std::size_t n, Random&) {
  return generate(n,
                  [](std::size_t i) { return boxAt(5, 5, 5, 0.1f * static_cast<float>(i + 1)); });
}

// Unit cells. Neighbours touch at faces, edges and corners. Closed boxes that touch overlap.
Boxes touching(std::size_t n, Random&) {
  return generate(n, [](std::size_t i) {
    const auto x = static_cast<float>(i % 8), y = static_cast<float>(i / 8 % 8),
               z = static_cast<float>(i / 64);
    return Aabb{{x, y, z}, {x + 1, y + 1, z + 1}};
  });
}

Boxes flat(std::size_t n, Random& r) {
  return generate(n, [&](std::size_t) {
    Aabb box = boxAt(r.uniform(0, 20), r.uniform(0, 20), 0, 0.5f);
    box.min[2] = box.max[2] = 7;
    return box;
  });
}

Boxes points(std::size_t n, Random& r) {
  return generate(n, [&](std::size_t) {
    return boxAt(static_cast<float>(r.below(5)), static_cast<float>(r.below(5)), 0, 0);
  });
}

Boxes logUniformSizes(std::size_t n, Random& r) {
  return generate(n, [&](std::size_t) {
    return boxAt(r.uniform(0, 40), r.uniform(0, 40), r.uniform(0, 40),
                 std::pow(10.0f, r.uniform(-3, 1)));
  });
}

Boxes hugeAndTiny(std::size_t n, Random& r) {
  return generate(n, [&](std::size_t) {
    const float scale = std::pow(10.0f, r.uniform(-30, 30));
    return boxAt(r.uniform(-scale, scale), r.uniform(-scale, scale), r.uniform(-scale, scale),
                 scale * r.uniform());
  });
}

// Uniform boxes, one of which has fallen out of the world. The others must still be spread over
// several cells of the grid.
Boxes outlier(std::size_t n, Random& r) {
  Boxes boxes = uniform(n, r);
  if (n > 0) boxes[n / 2] = boxAt(0, -3e9f, 0, 0.5f);
  return boxes;
}

// Planes, infinite, inverted and NaN boxes among ordinary ones.
Boxes broken(std::size_t n, Random& r) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  Boxes boxes = uniform(n, r);
  for (Aabb& box : boxes) {
    switch (r.below(40)) {
      case 0:
        box = {{-1e18f, -1e18f, -1e18f}, {1e18f, 1e18f, 1e18f}};
        break;
      case 1:
        box = {{-inf, -inf, -inf}, {inf, inf, inf}};
        break;
      case 2:
        std::swap(box.min[r.below(3)], box.max[r.below(3)]);
        break;
      case 3:
        box.min[r.below(3)] = nan;
        break;
      case 4:
        box.max[r.below(3)] = inf;
        break;
      case 5:
        box = {{inf, inf, inf}, {-inf, -inf, -inf}};
        break;
      case 6:
        box = {{-3e38f, 0, 0}, {3e38f, 1, 1}};
        break;
      default:
        break;
    }
  }
  return boxes;
}

}  // namespace

const std::vector<BoxSet>& boxSets() {
  static const std::vector<BoxSet> sets{{"uniform", uniform},
                                        {"clustered", clustered},
                                        {"coincident", coincident},
                                        {"sharedCentres", sharedCentres},
                                        {"nested", nested},
                                        {"touching", touching},
                                        {"flat", flat},
                                        {"points", points},
                                        {"logUniformSizes", logUniformSizes},
                                        {"hugeAndTiny", hugeAndTiny},
                                        {"outlier", outlier},
                                        {"broken", broken}};
  return sets;
}

}  // namespace lbvh::test

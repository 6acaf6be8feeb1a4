// SPDX-License-Identifier: Zlib
// Uses only the core. This program must need neither Bullet nor C++20.
#include <gpulbvh/pair_finder.h>
#include <gpulbvh/tree_query.h>

#include <cstdio>

#if defined(BT_BULLET_VERSION)
#error "the core brought Bullet"
#endif

int main() {
  const lbvh::Aabb boxes[3] = {
      {{0, 0, 0}, {1, 1, 1}}, {{1, 1, 1}, {2, 2, 2}}, {{5, 5, 5}, {6, 6, 6}}};
  lbvh::PairFinder finder;
  finder.update({boxes, 3});
  for (const lbvh::Pair pair : finder.pairs()) std::printf("%u %u\n", pair.first, pair.second);

  lbvh::BoxTree tree;
  tree.build({boxes, 3});
  const lbvh::Ray ray{{-1, 0.5f, 0.5f}, {1, 0, 0}, 9};
  lbvh::BatchHits hits;
  tree.rayTest({&ray, 1}, hits);
  return finder.pairs().size() == 1 && hits.of(0).size() == 1 ? 0 : 1;
}

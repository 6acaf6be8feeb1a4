#include "broadphase/host/build_blocks.h"

#include <algorithm>

namespace lbvh {
namespace {

constexpr std::size_t kPackGrain = 256;  // leaf blocks
constexpr std::size_t kParentGrain = 64;

}  // namespace

void BlockBuilder::pack(View<const Aabb> boxes, View<const Filter> filters,
                        const std::uint32_t* ids, const SceneBounds& scene, bool inIndexOrder) {
  packed_ = {};
  knowsPlaces_ = false;
  View<std::uint32_t> others = others_.ensure(scene.oversized + scene.nan);
  std::copy_n(ids + scene.ordinary, others.size, others.data);
  BlockTree tree;
  tree.boxes = scene.ordinary;
  tree.leafBlocks = BlockTree::blocksOver(scene.ordinary);
  const std::uint32_t blocks = BlockTree::forLevels(tree.leafBlocks, [](auto...) {});
  tree.blocks = blocks_.ensure(blocks).data;
  tree.root = blocks - 1;
  tree.isInIndexOrder = inIndexOrder;
  if (!filters.empty()) tree.filters = filters_.ensure(tree.leafBlocks).data;
  packed_ = {tree,
             boxes,
             filters,
             {others.data, scene.oversized},
             {others.data + scene.oversized, scene.nan}};
  tasks_.forRanges(tree.leafBlocks, kPackGrain, [&](std::size_t begin, std::size_t end) {
    kernels_.packLeaves(packed_, ids, static_cast<std::uint32_t>(begin),
                        static_cast<std::uint32_t>(end));
  });
  packParents();
}

void BlockBuilder::packParents() {
  const BlockTree& tree = packed_.tree;
  if (tree.boxes == 0) return;
  BlockTree::forLevels(
      tree.leafBlocks, [&](std::uint32_t first, std::uint32_t children, std::uint32_t parents) {
        const std::uint32_t count = BlockTree::blocksOver(children);
        tasks_.forRanges(count, kParentGrain, [&](std::size_t begin, std::size_t end) {
          for (auto i = static_cast<std::uint32_t>(begin); i < end; ++i)
            kernels_.packParent(tree, parents + i, first + i * kLanes,
                                std::min(kLanes, children - i * kLanes));
        });
      });
}

void BlockBuilder::rebind(View<const Aabb> boxes, View<const Filter> filters) {
  packed_.boxes = boxes;
  packed_.filters = filters;
}

// Only remove() needs the places. In a scene where everything moves nobody calls it.
void BlockBuilder::findPlaces() {
  const View<std::uint32_t> places = places_.ensure(packed_.boxes.size);
  std::fill(places.begin(), places.end(), kNullIndex);
  for (std::uint32_t leaf = 0; leaf < packed_.tree.boxes; ++leaf)
    places[packed_.tree.blocks[leaf / kLanes].child[leaf % kLanes]] = leaf;
  knowsPlaces_ = true;
}

void BlockBuilder::remove(View<const std::uint32_t> ids) {
  if (ids.empty()) return;
  if (!knowsPlaces_) findPlaces();
  for (const std::uint32_t id : ids) {
    const std::uint32_t leaf = places_.data()[id];
    if (leaf != kNullIndex) packed_.tree.blocks[leaf / kLanes].clear(leaf % kLanes);
  }
  for (View<const std::uint32_t>* others : {&packed_.oversized, &packed_.nan}) {
    auto* const begin = const_cast<std::uint32_t*>(others->data);  // of others_, which is ours
    const auto* const end = std::remove_if(begin, begin + others->size, [&](std::uint32_t id) {
      return std::binary_search(ids.begin(), ids.end(), id);
    });
    others->size = static_cast<std::size_t>(end - begin);
  }
}

std::size_t BlockBuilder::memoryBytes() const {
  return blocks_.bytes() + filters_.bytes() + others_.bytes() + places_.bytes();
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
#include "broadphase/host/build_blocks.h"

#include <algorithm>
#include <atomic>

#include "broadphase/core/morton.h"
#include "broadphase/core/prefetch.h"

namespace lbvh {
namespace {

constexpr std::size_t kPackGrain = 256;  // leaf blocks
constexpr std::size_t kParentGrain = 64;
constexpr std::size_t kReplaceGrain = 512;

}  // namespace

void packBlocks(HostTasks& tasks, const SimdKernels& kernels, const PackedBoxes& packed,
                const std::uint32_t* ids) {
  const BlockTree& tree = packed.tree;
  if (tree.boxes == 0) return;
  tasks.forRanges(tree.leafBlocks, kPackGrain, [&](std::size_t begin, std::size_t end) {
    kernels.packLeaves(packed, ids, static_cast<std::uint32_t>(begin),
                       static_cast<std::uint32_t>(end));
  });
  BlockTree::forLevels(
      tree.leafBlocks, [&](std::uint32_t first, std::uint32_t children, std::uint32_t parents) {
        const std::uint32_t count = BlockTree::blocksOver(children);
        tasks.forRanges(count, kParentGrain, [&](std::size_t begin, std::size_t end) {
          for (auto i = static_cast<std::uint32_t>(begin); i < end; ++i)
            kernels.packParent(tree, parents + i, first + i * kLanes,
                               std::min(kLanes, children - i * kLanes));
        });
      });
}

void BlockBuilder::pack(View<const Aabb> boxes, View<const Filter> filters,
                        const std::uint32_t* ids, const SceneBounds& scene, bool inIndexOrder) {
  packed_ = {};
  knowsPlaces_ = false;
  roomBeside_ = scene.oversized + kMostBeside;
  View<std::uint32_t> others = others_.ensure(roomBeside_ + scene.nan);
  std::copy_n(ids + scene.ordinary, scene.oversized, others.data);
  std::copy_n(ids + scene.ordinary + scene.oversized, scene.nan, others.data + roomBeside_);
  BlockTree tree;
  tree.boxes = scene.ordinary;
  tree.leafBlocks = BlockTree::blocksOver(scene.ordinary);
  const std::uint32_t blocks = BlockTree::forLevels(tree.leafBlocks, [](auto...) {});
  tree.blocks = blocks_.ensure(blocks).data;
  tree.root = blocks - 1;
  tree.isInIndexOrder = inIndexOrder;
  if (!filters.empty()) tree.filters = filters_.ensure(tree.leafBlocks).data;
  packed_ = {
      tree, boxes, filters, {others.data, scene.oversized}, {others.data + roomBeside_, scene.nan}};
  packBlocks(tasks_, kernels_, packed_, ids);
}

// Only replace() needs the places. In a scene where everything moves nobody calls it.
void BlockBuilder::findPlaces() {
  if (knowsPlaces_) return;
  places_.assign(packed_.boxes.size, kNullIndex);
  tasks_.forRanges(packed_.tree.boxes, kPackGrain * kLanes,
                   [&](std::size_t begin, std::size_t end) {
                     for (auto leaf = static_cast<std::uint32_t>(begin); leaf < end; ++leaf)
                       places_[packed_.tree.blocks[leaf / kLanes].child[leaf % kLanes]] = leaf;
                   });
  for (const std::uint32_t id : packed_.oversized) places_[id] = kBeside;
  wear_.begin(packed_.tree);
  knowsPlaces_ = true;
}

std::uint32_t BlockBuilder::placeOf(std::uint32_t id) const {
  return id < places_.size() ? std::min(places_[id], packed_.tree.boxes) : packed_.tree.boxes;
}

bool BlockBuilder::replace(View<const std::uint32_t> ids, View<const Aabb> boxes,
                           View<const Filter> filters) {
  findPlaces();
  places_.resize(boxes.size, kNullIndex);
  packed_.boxes = boxes;
  packed_.filters = filters;
  std::atomic<bool> areAllLeaves{true};
  tasks_.forRanges(ids.size, kReplaceGrain, [&](std::size_t begin, std::size_t end) {
    forPrefetched(
        boxes.size > kBoxesInCache, end - begin,
        [&](std::size_t k) {
          if (!replaceLeaf(ids[begin + k])) areAllLeaves.store(false, std::memory_order_relaxed);
        },
        [&](std::size_t k) {
          prefetch(&places_[ids[begin + k]]);
          prefetchAll(boxes[ids[begin + k]]);
        },
        [&](std::size_t k) {
          const std::uint32_t place = places_[ids[begin + k]];
          if (place < kBeside) prefetch(&packed_.tree.blocks[place / kLanes], sizeof(BoxBlock));
        });
  });
  const auto replaceOther = [this](std::uint32_t id) { return replaceBeside(id); };
  if (!areAllLeaves && !std::all_of(ids.begin(), ids.end(), replaceOther)) return false;
  packBoundsOf(ids);
  return true;
}

/// @return false if the box has no leaf, or has to be beside the tree, too
bool BlockBuilder::replaceLeaf(std::uint32_t id) {
  const std::uint32_t place = places_[id];
  if (place >= kBeside) return false;
  setLeaf(place, id);
  return classify(packed_.boxes[id]) != BoxClass::oversized;
}

/// @return false if there is no room
bool BlockBuilder::replaceBeside(std::uint32_t id) {
  const BoxClass boxClass = classify(packed_.boxes[id]);
  if (places_[id] < kBeside && boxClass != BoxClass::oversized) return true;
  if (boxClass != BoxClass::nan) return keepBeside(id);
  dropFromBeside(id);
  return true;
}

/// Only an ordinary box may be a leaf. The lane of another waits until it is one again.
void BlockBuilder::setLeaf(std::uint32_t leaf, std::uint32_t id) {
  const BlockTree& tree = packed_.tree;
  const std::uint32_t index = leaf / kLanes, lane = leaf % kLanes;
  const Aabb& box = packed_.boxes[id];
  if (classify(box) != BoxClass::ordinary) return tree.blocks[index].clear(lane);
  tree.blocks[index].set(lane, box, id);
  if (tree.filters == nullptr) return;
  tree.filters[index].group[lane] = packed_.filters[id].group;
  tree.filters[index].mask[lane] = packed_.filters[id].mask;
}

bool BlockBuilder::keepBeside(std::uint32_t id) {
  if (places_[id] == kBeside) return true;
  if (packed_.oversized.size == roomBeside_) return false;
  others_.data()[packed_.oversized.size++] = id;
  places_[id] = kBeside;
  return true;
}

void BlockBuilder::dropFromBeside(std::uint32_t id) {
  if (places_[id] != kBeside) return;
  std::uint32_t* const end = others_.data() + packed_.oversized.size--;
  *std::find(others_.data(), end, id) = end[-1];
  places_[id] = kNullIndex;
}

void BlockBuilder::packBoundsOf(View<const std::uint32_t> ids) {
  const BlockTree& tree = packed_.tree;
  touched_.clear();
  for (const std::uint32_t id : ids)
    if (places_[id] < kBeside) touched_.push_back(places_[id] / kLanes);
  if (touched_.empty()) return;
  BlockTree::forLevels(
      tree.leafBlocks, [&](std::uint32_t first, std::uint32_t, std::uint32_t parents) {
        touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
        tasks_.forRanges(touched_.size(), kReplaceGrain, [&](std::size_t begin, std::size_t end) {
          std::uint64_t before = 0, after = 0;
          forPrefetched(
              packed_.boxes.size > kBoxesInCache, end - begin,
              [&](std::size_t k) {
                std::uint32_t& at = touched_[begin + k];
                const bool isLeafBlock = first == 0;
                if (isLeafBlock) before += wear_.surfaceOf(tree, at);
                kernels_.packBounds(tree, parents + at / kLanes, at % kLanes, first + at);
                if (isLeafBlock) after += wear_.surfaceOf(tree, at);
                at /= kLanes;
              },
              [&](std::size_t k) {
                prefetch(tree.blocks + first + touched_[begin + k], sizeof(BoxBlock));
              });
          wear_.replace(before, after);
        });
      });
}

std::size_t BlockBuilder::memoryBytes() const {
  return blocks_.bytes() + filters_.bytes() + others_.bytes() +
         (places_.capacity() + touched_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace lbvh

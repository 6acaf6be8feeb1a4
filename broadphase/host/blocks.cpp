// SPDX-License-Identifier: Zlib
#include "broadphase/host/blocks.h"

#include <algorithm>
#include <atomic>

#include "broadphase/core/morton.h"
#include "broadphase/core/prefetch.h"

namespace lbvh {
namespace {

constexpr std::size_t kPackGrain = 256;  // leaf blocks
constexpr std::size_t kParentGrain = 64;
constexpr std::size_t kReplaceGrain = 512;
constexpr std::size_t kBlockGrain = 16;  // leaf blocks; small, because their costs differ widely

/// Splits [begin, end), a range of the elements of all parts, at the boundaries between parts.
/// Calls body(part, begin, end) for each piece, with indices within the part, until body returns
/// false.
/// @param firsts the index of the first element of each part, then the number of all elements
template <class Body>
bool forParts(const std::vector<std::size_t>& firsts, std::size_t begin, std::size_t end,
              const Body& body) {
  const auto after = std::upper_bound(firsts.begin(), firsts.end(), begin);
  for (auto part = static_cast<std::size_t>(after - firsts.begin()) - 1; begin < end; ++part) {
    const std::size_t first = firsts[part], next = std::min(end, firsts[part + 1]);
    if (begin < next && !body(part, begin - first, next - first)) return false;
    begin = next;
  }
  return true;
}

/// Writes the list of the targets that an oversized box overlaps.
void listOversized(std::uint32_t id, const PackedBoxes& targets, ListKind kind,
                   std::vector<std::uint32_t>& list) {
  const std::uint32_t first = kind == ListKind::full ? 0 : id + 1;
  list.clear();
  forBoxes(targets, [&](std::uint32_t other, const Aabb& box) {
    if (other >= first && overlap(targets.boxes[id], box) &&
        shouldCollide(targets.filters, id, other))
      list.push_back(other);
  });
}

/// @return false if there are more neighbours than the limit
bool keepList(std::uint32_t id, const std::vector<std::uint32_t>& list, NeighbourLists lists,
              const NeighbourCount& count) {
  const std::uint64_t start = count.found->fetch_add(list.size(), std::memory_order_relaxed);
  if (start + list.size() > count.limit) return false;
  lists.byBox[id] = {start, static_cast<std::uint32_t>(list.size())};
  if (start + list.size() <= lists.indices.size())
    std::copy(list.begin(), list.end(), lists.indices.data() + start);
  return true;
}

}  // namespace

std::uint32_t packBlocks(HostTasks& tasks, const SimdKernels& kernels, const PackedBoxes& packed,
                         const std::uint32_t* ids) {
  const BlockTree& tree = packed.tree;
  if (tree.boxes == 0) return 0;
  std::atomic<std::uint32_t> ordinary{0};
  tasks.forRanges(tree.leafBlocks, kPackGrain, [&](std::size_t begin, std::size_t end) {
    ordinary += kernels.packLeaves(packed, ids, static_cast<std::uint32_t>(begin),
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
  return ordinary;
}

void BlockBuilder::pack(View<const Aabb> boxes, View<const Filter> filters,
                        View<const std::uint32_t> ids, std::size_t ranked, bool inIndexOrder,
                        const ShortGrid* grid) {
  packed_ = {};
  knowsPlaces_ = false;
  BlockTree tree;
  const std::uint32_t blocks = tree.cover(static_cast<std::uint32_t>(ranked));
  tree.blocks = blocks_.ensure(blocks).data();
  tree.isInIndexOrder = inIndexOrder;
  if (!filters.empty()) {
    tree.filters = filters_.ensure(blocks).data();
    tree.common = common_.ensure(BlockTree::blocksOver(tree.leafBlocks)).data();
  }
  if (grid != nullptr) {
    shorts_ = {*grid, shortBlocks_.ensure(tree.leafBlocks).data()};
    tree.shorts = &shorts_;
  }
  packed_.tree = tree;
  packed_.boxes = boxes;
  packed_.filters = filters;
  listOthers(ids, ranked, packBlocks(tasks_, kernels_, packed_, ids.data()));
}

/// Lists the oversized boxes and the boxes with a NaN.
void BlockBuilder::listOthers(View<const std::uint32_t> ids, std::size_t ranked,
                              std::size_t ordinary) {
  beside_.clear();
  nan_.assign(ids.begin() + ranked, ids.end());
  for (std::size_t k = 0; k < ranked && ordinary < ranked; ++k) {
    if (packed_.tree.blocks[k / kLanes].child[k % kLanes] != kNullIndex) continue;
    const bool isNan = classify(packed_.boxes[ids[k]]) == BoxClass::nan;
    (isNan ? nan_ : beside_).push_back(ids[k]);
  }
  const std::size_t oversized = beside_.size();
  beside_.resize(oversized + kMaxBeside);
  packed_.oversized = {beside_.data(), oversized};
  packed_.nan = {nan_.data(), nan_.size()};
}

// Not part of pack(), because only replace() needs the places. If all boxes move, replace() is
// never called.
void BlockBuilder::findPlaces() {
  if (knowsPlaces_) return;
  places_.assign(packed_.boxes.size(), kNullIndex);
  tasks_.forRanges(
      packed_.tree.boxes, kPackGrain * kLanes, [&](std::size_t begin, std::size_t end) {
        for (auto leaf = static_cast<std::uint32_t>(begin); leaf < end; ++leaf) {
          const std::uint32_t id = packed_.tree.blocks[leaf / kLanes].child[leaf % kLanes];
          if (id != kNullIndex) places_[id] = leaf;
        }
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
  places_.resize(boxes.size(), kNullIndex);
  packed_.boxes = boxes;
  packed_.filters = filters;
  std::atomic<bool> areAllLeaves{true};
  tasks_.forRanges(ids.size(), kReplaceGrain, [&](std::size_t begin, std::size_t end) {
    forPrefetched(
        boxes.size() > kBoxesInCache, end - begin,
        [&](std::size_t k) {
          if (!replaceLeaf(ids[begin + k])) areAllLeaves.store(false, std::memory_order_relaxed);
        },
        [&](std::size_t k) {
          prefetch(&places_[ids[begin + k]]);
          prefetchObject(boxes[ids[begin + k]]);
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

/// @return false if the box has no lane, or if it is oversized, so that it belongs outside the tree
bool BlockBuilder::replaceLeaf(std::uint32_t id) {
  const std::uint32_t place = places_[id];
  if (place >= kBeside) return false;
  setLeaf(place, id);
  return classify(packed_.boxes[id]) != BoxClass::oversized;
}

/// @return false if too many boxes are outside the tree
bool BlockBuilder::replaceBeside(std::uint32_t id) {
  const BoxClass boxClass = classify(packed_.boxes[id]);
  if (places_[id] < kBeside && boxClass != BoxClass::oversized) return true;
  if (boxClass != BoxClass::nan) return keepBeside(id);
  dropFromBeside(id);
  return true;
}

/// Writes a box to its lane. A box that is not ordinary leaves its lane empty until it is ordinary
/// again.
void BlockBuilder::setLeaf(std::uint32_t leaf, std::uint32_t id) {
  const BlockTree& tree = packed_.tree;
  const std::uint32_t index = leaf / kLanes, lane = leaf % kLanes;
  const Aabb& box = packed_.boxes[id];
  if (classify(box) != BoxClass::ordinary) {
    tree.blocks[index].clear(lane);
    if (tree.filters != nullptr) tree.filters[index].clear(lane);
    return;
  }
  tree.blocks[index].set(lane, box, id);
  if (tree.filters != nullptr) tree.filters[index].set(lane, packed_.filters[id]);
}

bool BlockBuilder::keepBeside(std::uint32_t id) {
  if (places_[id] == kBeside) return true;
  const std::size_t oversized = packed_.oversized.size();
  if (oversized == beside_.size()) return false;
  beside_[oversized] = id;
  packed_.oversized = {beside_.data(), oversized + 1};
  places_[id] = kBeside;
  return true;
}

void BlockBuilder::dropFromBeside(std::uint32_t id) {
  if (places_[id] != kBeside) return;
  const std::size_t rest = packed_.oversized.size() - 1;
  std::uint32_t* const last = beside_.data() + rest;
  *std::find(beside_.data(), last, id) = *last;
  packed_.oversized = {beside_.data(), rest};
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
              packed_.boxes.size() > kBoxesInCache, end - begin,
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
  const std::size_t words =
      beside_.capacity() + nan_.capacity() + places_.capacity() + touched_.capacity();
  return blocks_.bytes() + filters_.bytes() + common_.bytes() + shortBlocks_.bytes() +
         words * sizeof(std::uint32_t);
}

struct NeighbourSearch::Search {
  View<const SearchPart> parts;
  ListKind kind;
  const NeighbourLists lists;
  NeighbourCount count;
  const NeighbourFilter* filter;
};

std::uint64_t NeighbourSearch::find(View<const SearchPart> parts, ListKind kind,
                                    NeighbourLists lists, const SearchLimits& limits,
                                    const NeighbourFilter* filter) {
  std::atomic<std::uint64_t> found{0};
  tests_ = unsure_ = 0;
  number(parts);
  const NeighbourCount count{&found, limits.neighbours, &tests_, limits.tests, &unsure_};
  const Search search{parts, kind, lists, count, filter};
  findTreeLists(search);
  for (const SearchPart& part : parts)
    for (const std::uint32_t id : part.queries->nan) lists.byBox[id] = {0, 0};
  findOversizedLists(search);
  return found;
}

std::uint64_t NeighbourSearch::findByRank(const PackedBoxes& boxes, const RankLists& lists,
                                          const SearchLimits& limits) {
  std::atomic<std::uint64_t> pairs{0}, hits{0};
  tests_ = unsure_ = 0;
  const SearchPart part{&boxes, &boxes};
  number({&part, 1});
  const NeighbourCount count{&pairs, limits.neighbours, &tests_, limits.tests, &unsure_, &hits};
  const std::uint32_t blocks = boxes.tree.leafBlocks;
  tasks_.forWorkers(blocks, kBlockGrain, [&](std::size_t worker, std::size_t from, std::size_t to) {
    return kernels_.searchByRank(boxes, static_cast<std::uint32_t>(from),
                                 static_cast<std::uint32_t>(to),
                                 SearchMemory::in(memoryOf(worker), blocks), lists, count);
  });
  rankedPairs_ = pairs;
  return hits;
}

void NeighbourSearch::number(View<const SearchPart> parts) {
  firstBlock_.assign(1, 0);
  firstOversized_.assign(1, 0);
  std::size_t targets = 0;
  for (const SearchPart& part : parts) {
    firstBlock_.push_back(firstBlock_.back() + part.queries->tree.leafBlocks);
    firstOversized_.push_back(firstOversized_.back() + part.queries->oversized.size());
    targets = std::max<std::size_t>(targets, part.targets->tree.leafBlocks);
  }
  wordsAWorker_ = SearchMemory::wordsFor(targets);
  memory_.ensure(wordsAWorker_ * static_cast<std::size_t>(tasks_.threads()));
}

void NeighbourSearch::findTreeLists(const Search& search) {
  const auto find = [&](std::size_t worker, std::size_t begin, std::size_t end) {
    return forParts(firstBlock_, begin, end, [&](std::size_t k, std::size_t from, std::size_t to) {
      const SearchPart& part = search.parts[k];
      return kernels_.search(*part.queries, *part.targets, search.kind,
                             static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to),
                             SearchMemory::in(memoryOf(worker), part.targets->tree.leafBlocks),
                             search.lists, search.count, search.filter);
    });
  };
  tasks_.forWorkers(firstBlock_.back(), kBlockGrain, find);
}

// Oversized boxes are few, so each is tested against all targets.
void NeighbourSearch::findOversizedLists(const Search& search) {
  const auto find = [&](std::size_t, std::size_t begin, std::size_t end) {
    std::vector<std::uint32_t> list;
    return forParts(firstOversized_, begin, end,
                    [&](std::size_t k, std::size_t from, std::size_t to) {
                      for (std::size_t at = from; at < to; ++at) {
                        const std::uint32_t id = search.parts[k].queries->oversized[at];
                        listOversized(id, *search.parts[k].targets, search.kind, list);
                        if (search.filter != nullptr)
                          list.resize(search.filter->keep(search.filter->data, id, list.data(),
                                                          static_cast<std::uint32_t>(list.size())));
                        if (!keepList(id, list, search.lists, search.count)) return false;
                      }
                      return true;
                    });
  };
  tasks_.forWorkers(firstOversized_.back(), 1, find);
}

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
#include "broadphase/host/world_search.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace lbvh {
namespace {

constexpr std::size_t kWorldGrain = 64;
constexpr std::size_t kJoinGrain = 4096;
constexpr std::size_t kExpected = 8;  // expected neighbours of a box

/// Moves the neighbours that the rule accepts to the front of a list. Drops the box itself.
/// @param rule points to a PairRule
std::uint32_t keepByRule(const void* rule, std::uint32_t id, std::uint32_t* list,
                         std::uint32_t size) {
  const auto& accepts = *static_cast<const PairRule*>(rule);
  std::uint32_t kept = 0;
  for (std::uint32_t k = 0; k < size; ++k) {
    const std::uint32_t other = list[k];
    list[kept] = other;
    kept += other != id && accepts(makePair(id, other));
  }
  return kept;
}

}  // namespace

std::uint64_t WorldSearch::find(const WorldBlocks& worlds, std::size_t boxes,
                                const WorldSearchRequest& request, NeighbourLists& lists) {
  own_.byBox.ensure(boxes);
  own_.indices.ensure(kExpected * boxes);
  const bool isFull = request.kind == ListKind::full;
  const std::uint64_t shared = findShared(worlds, boxes, request);
  if (shared > request.maxPairs) return shared;
  const std::uint64_t listed = findOwn(worlds, request);
  const std::uint64_t pairs = shared + (isFull ? listed / 2 : listed);
  if (pairs > request.maxPairs) return pairs;
  if (!request.byWorld.empty()) countByWorld(worlds, request, shared > 0);
  if (shared > 0)
    joinLists(boxes, isFull, static_cast<std::size_t>(listed), static_cast<std::size_t>(shared));
  lists = shared > 0 ? joined_.view() : own_.view();
  lists.indices =
      lists.indices.first(static_cast<std::size_t>(listed + (isFull ? 2 * shared : shared)));
  return pairs;
}

/// Finds the pairs of a box in one world and a box in all worlds. @return the number of pairs
std::uint64_t WorldSearch::findShared(const WorldBlocks& worlds, std::size_t boxes,
                                      const WorldSearchRequest& request) {
  const World* const shared = worlds.find(worlds.worldCount());
  if (shared == nullptr || worlds.worlds().size() == 1) return 0;
  parts_.clear();
  for (const World& world : worlds.worlds())
    if (&world != shared) parts_.push_back({&world.packed, &shared->packed});
  NeighbourList* const byBox = shared_.byBox.ensure(boxes).data();
  for (const std::uint32_t id : worlds.nowhere()) byBox[id] = {0, 0};
  for (const std::uint32_t id : shared->ids) byBox[id] = {0, 0};
  return search(ListKind::full, request.rule, request.maxPairs, shared_);
}

/// Finds the neighbours of each box in its own world. The boxes that are in all worlds count as one
/// more world. @return the number of neighbours
std::uint64_t WorldSearch::findOwn(const WorldBlocks& worlds, const WorldSearchRequest& request) {
  parts_.clear();
  for (const World& world : worlds.worlds()) parts_.push_back({&world.packed, &world.packed});
  for (const std::uint32_t id : worlds.nowhere()) own_.byBox.data()[id] = {0, 0};
  const bool isFull = request.kind == ListKind::full;
  return search(request.kind, request.rule, (isFull ? 2 : 1) * request.maxPairs, own_);
}

/// Finds the neighbours of the query boxes of parts_. @return the number of neighbours
std::uint64_t WorldSearch::search(ListKind kind, const PairRule& rule, std::uint64_t limit,
                                  Lists& lists) {
  const NeighbourFilter byRule{&keepByRule, &rule};
  const bool filters = kind == ListKind::full || !rule.acceptsAll();
  for (;;) {
    const NeighbourLists view = lists.view();
    const std::uint64_t found = search_.find({parts_.data(), parts_.size()}, kind, view,
                                             {.neighbours = limit}, filters ? &byRule : nullptr);
    if (found > limit || found <= view.indices.size()) return found;
    lists.indices.ensure(static_cast<std::size_t>(found));
  }
}

void WorldSearch::countByWorld(const WorldBlocks& worlds, const WorldSearchRequest& request,
                               bool areShared) {
  std::fill(request.byWorld.begin(), request.byWorld.end(), 0u);
  tasks_.forRanges(worlds.worlds().size(), kWorldGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const World& world = worlds.worlds()[k];
      std::uint64_t own = 0, shared = 0;
      for (const std::uint32_t id : world.ids) {
        own += own_.of(id).size();
        if (areShared) shared += shared_.of(id).size();
      }
      if (request.kind == ListKind::full) own /= 2;
      request.byWorld[world.rank] = static_cast<std::uint32_t>(own + shared);
    }
  });
}

/// Joins own_ and shared_. If `isFull`, each pair of shared_ is written to the lists of both boxes,
/// otherwise to the list of the smaller index.
/// @param listed number of neighbours in own_
/// @param shared number of pairs in shared_
void WorldSearch::joinLists(std::size_t boxes, bool isFull, std::size_t listed,
                            std::size_t shared) {
  NeighbourList* const byBox = joined_.byBox.ensure(boxes).data();
  // Twice the size, because listReverse() copies the lists of the boxes that are in all worlds.
  std::uint32_t* const indices = joined_.indices.ensure(2 * (listed + shared)).data();
  std::uint64_t* const words = words_.ensure(shared).data();
  std::atomic<std::size_t> nextIndex{0}, nextWord{0};
  tasks_.forRanges(boxes, kJoinGrain, [&](std::size_t begin, std::size_t end) {
    std::size_t size = 0, reverse = 0;
    for (std::size_t id = begin; id < end; ++id) {
      size += own_.of(id).size();
      for (const std::uint32_t other : shared_.of(id)) {
        size += isFull || id < other;
        reverse += isFull || other < id;
      }
    }
    std::size_t at = nextIndex.fetch_add(size), word = nextWord.fetch_add(reverse);
    for (std::size_t id = begin; id < end; ++id) {
      const View<const std::uint32_t> own = own_.of(id);
      const std::size_t start = at;
      at = static_cast<std::size_t>(std::copy(own.begin(), own.end(), indices + at) - indices);
      for (const std::uint32_t other : shared_.of(id)) {
        if (isFull || id < other) indices[at++] = other;
        if (isFull || other < id) words[word++] = std::uint64_t{other} << 32 | id;
      }
      byBox[id] = {start, static_cast<std::uint32_t>(at - start)};
    }
  });
  listReverse({words, nextWord}, boxes, nextIndex);
}

/// Completes the lists of the boxes that are in all worlds, by adding their neighbours that are in
/// only one world.
/// @param words each word holds a box that is in all worlds, and its neighbour
/// @param end the end of the lists so far
void WorldSearch::listReverse(View<std::uint64_t> words, std::size_t boxes, std::size_t end) {
  const std::uint64_t* sorted =
      sort_.words(tasks_, words, 32, static_cast<int>(std::bit_width(boxes)));
  const auto idAt = [&](std::size_t k) { return static_cast<std::uint32_t>(sorted[k] >> 32); };
  std::uint32_t* const indices = joined_.indices.data();
  for (std::size_t k = 0; k < words.size();) {
    const std::uint32_t id = idAt(k);
    const View<const std::uint32_t> own = joined_.of(id);
    const std::size_t start = end;
    end = static_cast<std::size_t>(std::copy(own.begin(), own.end(), indices + end) - indices);
    for (; k < words.size() && idAt(k) == id; ++k)
      indices[end++] = static_cast<std::uint32_t>(sorted[k]);
    joined_.byBox.data()[id] = {start, static_cast<std::uint32_t>(end - start)};
  }
}

}  // namespace lbvh

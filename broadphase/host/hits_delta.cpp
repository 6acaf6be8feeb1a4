// SPDX-License-Identifier: Zlib
#include "broadphase/host/hits_delta.h"

#include <algorithm>
#include <bit>

namespace lbvh {
namespace {

constexpr std::size_t kGrain = 512;  // minimum number of blocks per thread

/// The number of blocks in a chunk. If all blocks are in one group, there are up to two chunks per
/// thread. Otherwise the number divides the size of a group, so that no chunk has blocks of two
/// groups.
std::size_t blocksAChunk(const HostTasks& tasks, std::size_t blocks) {
  if (blocks > BlockHits::kGroup) return BlockHits::kGroup / 16;
  const std::size_t chunks = 2 * tasks.parts(blocks, kGrain);
  return (blocks + chunks - 1) / chunks;
}

/// Compares the hits that the kernel has not compared. @return the end of the changes
HitsChange* mergeRest(HitsMerge merge) {
  while (merge.now != merge.nowEnd || merge.old != merge.oldEnd) {
    const bool hasNow = merge.now != merge.nowEnd, hasOld = merge.old != merge.oldEnd;
    const bool isNow = hasNow && (!hasOld || merge.now->key() <= merge.old->key());
    const bool isOld = hasOld && (!hasNow || merge.old->key() <= merge.now->key());
    const HitsChange change{isNow ? *merge.now : BlockHits{0}, isOld ? *merge.old : BlockHits{0}};
    merge.now += isNow;
    merge.old += isOld;
    if (change.now.number != change.old.number) *merge.out++ = change;
  }
  return merge.out;
}

/// Writes the pairs that begin or end. @param near any block of the group to which the changes
///   belong
/// @param size number of words of `out` that are in use
/// @return the new number of words in use
std::size_t writePairs(View<const HitsChange> changes, std::size_t near,
                       View<const std::uint32_t> ids, PairWords words,
                       std::vector<std::uint64_t>& out, std::size_t size) {
  for (const HitsChange& change : changes) {
    if (out.size() < size + 2 * kLanes) out.resize(2 * size + 1024);
    const BlockHits any{change.now.number | change.old.number};
    const std::uint32_t own = any.own(static_cast<std::uint32_t>(near));
    const std::uint32_t id = ids[own * kLanes + any.lane()];
    const std::uint32_t added = change.now.bits() & ~change.old.bits();
    const std::uint32_t removed = change.old.bits() & ~change.now.bits();
    // One loop visits added and removed bits, because most changes have one bit.
    for (std::uint32_t bits = added | removed << kLanes; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(bits));
      const std::uint32_t rank = any.other() * kLanes + bit % kLanes;
      out[size++] = words.change(makePair(id, ids[rank]), bit < kLanes);
    }
  }
  return size;
}

}  // namespace

void HitsDelta::find(const Input& input, Scratch<HostMemory>& memory,
                     std::vector<std::uint64_t>& changes) {
  const RankedHits &last = input.last, &next = input.next;
  const std::size_t most = next.hits.size() + last.hits.size();
  const std::size_t copied = input.removedObjects.empty() ? 0 : last.hits.size();
  memory.reset(scratchBytes<HitsChange>(most) + scratchBytes<BlockHits>(copied));
  HitsChange* const found = memory.lend<HitsChange>("changes", most).data();
  const View<const BlockHits> old =
      copied == 0 ? last.hits : withoutRemoved(input, memory.lend<BlockHits>("last hits", copied));
  const std::size_t blocks = std::max(next.blocks(), last.blocks());
  const std::size_t size = std::max<std::size_t>(blocksAChunk(tasks_, blocks), 1);
  const std::size_t pairs = (blocks + 2 * size - 1) / (2 * size);
  const View<View<const HitsChange>> changesOf = changesOf_.ensure(2 * pairs);
  const auto mergeOf = [&](std::size_t chunk) {
    const std::size_t begin = chunk * size, end = begin + size;
    const std::size_t now = next.startOf(begin), before = last.startOf(begin);
    return HitsMerge{next.hits.data() + now, next.hits.data() + next.startOf(end),
                     old.data() + before, old.data() + last.startOf(end), found + now + before};
  };
  tasks_.forRanges(pairs, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t chunk = 2 * begin; chunk < 2 * end; chunk += 2) {
      HitsMerge merges[2] = {mergeOf(chunk), mergeOf(chunk + 1)};
      const HitsChange* const outs[2] = {merges[0].out, merges[1].out};
      kernels_.mergeHits(merges[0], merges[1]);
      for (std::size_t k = 0; k < 2; ++k)
        changesOf[chunk + k] = {outs[k], static_cast<std::size_t>(mergeRest(merges[k]) - outs[k])};
    }
  });
  std::size_t changed = 0;
  for (std::size_t chunk = 0; chunk < changesOf.size(); ++chunk)
    changed = writePairs(changesOf[chunk], chunk * size, input.ids, input.words, changes, changed);
  changes.resize(changed);
}

/// Copies the previous hits, without pairs of removed boxes. Hits that lose all their pairs stay.
View<const BlockHits> HitsDelta::withoutRemoved(const Input& input, View<BlockHits> out) {
  const View<const std::uint32_t> ids = input.ids;
  const View<const std::uint8_t> removed = input.removedObjects;
  removedLanes_.assign((ids.size() + kLanes - 1) / kLanes, 0);
  for (std::size_t rank = 0; rank < ids.size(); ++rank)
    if (ids[rank] < removed.size() && removed[ids[rank]] != 0)
      removedLanes_[rank / kLanes] |= static_cast<std::uint16_t>(1u << rank % kLanes);
  input.last.forAll([&](std::uint32_t block, std::size_t place) {
    const BlockHits hits = input.last.hits[place];
    const bool isGone = (removedLanes_[block] >> hits.lane() & 1) != 0;
    const std::uint64_t gone = isGone ? hits.bits() : removedLanes_[hits.other()];
    out[place] = {hits.number & ~gone};
  });
  return out;
}

}  // namespace lbvh

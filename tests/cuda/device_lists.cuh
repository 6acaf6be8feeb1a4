// SPDX-License-Identifier: Zlib
// Compares lists of pairs on the current device, and checks the result against the standard
// library.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "broadphase/cuda/step.cuh"
#include "device_boxes.cuh"

namespace lbvh::test {

/// lists[i] has the partners of box i, in ascending order.
using Lists = std::vector<std::vector<std::uint32_t>>;

inline Pairs pairsOf(const Lists& lists) {
  Pairs pairs;
  for (std::uint32_t first = 0; first < lists.size(); ++first)
    for (const std::uint32_t second : lists[first]) pairs.push_back({first, second});
  return pairs;
}

inline std::vector<std::uint32_t> offsetsOf(const Lists& lists) {
  std::vector<std::uint32_t> offsets = {0};
  for (const auto& list : lists)
    offsets.push_back(offsets.back() + static_cast<std::uint32_t>(list.size()));
  return offsets;
}

/// Compares lists that do not come from a search. So they can be lists that no scene has.
struct Comparison {
  Lists fresh, old;
  std::vector<std::uint8_t> removedObjects;
  /// Number of boxes after the last list. Their lists are empty and may fill whole tiles.
  std::uint32_t boxesBehind = 0;

  /// Lists of random lengths from 0 to `most`.
  static Lists randomLists(std::size_t boxes, std::uint32_t most, Random& random) {
    Lists lists(boxes);
    for (std::uint32_t first = 0; first < boxes; ++first) {
      const std::uint32_t size = random.below(most + 1);
      for (std::uint32_t k = 0; k < size; ++k) {
        const std::uint32_t second = first + 1 + random.below(4 * most + 1);
        if (second < boxes) lists[first].push_back(second);
      }
      tidy(lists[first]);
    }
    return lists;
  }
  static void tidy(std::vector<std::uint32_t>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  /// Removes about one pair in `others`, and adds some new pairs.
  static Lists changed(const Lists& lists, std::uint32_t others, Random& random) {
    Lists now = lists;
    for (std::uint32_t first = 0; first < now.size(); ++first) {
      auto& list = now[first];
      const auto goes = [&](std::uint32_t) { return random.below(others) == 0; };
      list.erase(std::remove_if(list.begin(), list.end(), goes), list.end());
      if (random.below(others) == 0 && first + 1 < now.size())
        list.push_back(first + 1 +
                       random.below(static_cast<std::uint32_t>(now.size()) - first - 1));
      tidy(list);
    }
    return now;
  }

  /// Sorts and compares. Then compares again without sorting, as after a step whose changes did not
  /// fit. In the second comparison, the lists for the changes are too short.
  void check(Random& random) const {
    const Pairs freshPairs = pairsOf(fresh), oldPairs = pairsOf(old);
    Pairs counting, added, removed;
    for (const Pair pair : oldPairs)
      if (!involvesRemoved(pair, view(removedObjects))) counting.push_back(pair);
    std::set_difference(freshPairs.begin(), freshPairs.end(), counting.begin(), counting.end(),
                        std::back_inserter(added));
    std::set_difference(counting.begin(), counting.end(), freshPairs.begin(), freshPairs.end(),
                        std::back_inserter(removed));

    std::vector<std::uint32_t> partners;
    for (const auto& list : fresh) {
      const auto begin = partners.insert(partners.end(), list.begin(), list.end());
      for (auto left = static_cast<std::uint32_t>(list.size()); left > 1; --left)
        std::swap(begin[left - 1], begin[random.below(left)]);
    }
    partners.push_back(0);
    const OnDevice<std::uint32_t> unsorted(partners), freshOffsets(offsetsOf(fresh)),
        oldOffsets(offsetsOf(old));
    const OnDevice<Pair> oldThere(oldPairs), sortedThere(Pairs(freshPairs.size()));
    const OnDevice<Pair> addedThere(Pairs(added.size() + 1, kUntouched)),
        removedThere(Pairs(removed.size() + 1, kUntouched));
    const OnDevice<std::uint8_t> flags(removedObjects);
    const OnDevice<StepHeader> header(std::vector<StepHeader>(1)),
        report(std::vector<StepHeader>(1));
    const std::size_t boxes = std::max(fresh.size(), old.size());
    const std::size_t tiles = ListComparison::tiles(boxes);

    const OnDevice<unsigned long long> words(std::vector<unsigned long long>(1 + tiles));
    const OnDevice<unsigned long long> noHubs(std::vector<unsigned long long>(HubList::kWords)),
        someHubs(hubsIn(fresh));
    const bool knowsHubs = random.below(2) == 0;

    ListComparison in{};
    in.current = {sortedThere.view().data(), freshOffsets.view().data(),
                  static_cast<std::uint32_t>(fresh.size()) + boxesBehind};
    in.old = {oldThere.view().data(), oldOffsets.view().data(),
              static_cast<std::uint32_t>(old.size())};
    in.boxes = static_cast<std::uint32_t>(boxes);
    in.partners = unsorted.view().data();
    in.sortedPairs = writable(sortedThere);
    in.removedObjects = flags.view();
    in.added = {writable(addedThere), added.size()};
    in.removed = {writable(removedThere), removed.size()};
    in.header = writable(header);
    in.report = writable(report);
    in.chain = {writable(words), writable(words) + 1};
    in.hubs = {writable(knowsHubs ? someHubs : noHubs)};
    CudaSpace space;
    space.launch<compareListsKernel>(tiles, kThreads, in);
    space.wait();
    ASSERT_EQ(download(sortedThere.view()), freshPairs);
    expectList(addedThere, added, added.size());
    expectList(removedThere, removed, removed.size());
    const StepHeader told = download(report.view())[0];
    EXPECT_EQ(told.delta.added, added.size());
    EXPECT_EQ(told.delta.removed, removed.size());

    const OnDevice<Pair> addedAgain(Pairs(added.size() + 1, kUntouched)),
        removedAgain(Pairs(removed.size() + 1, kUntouched));
    in.partners = nullptr;
    in.sortedPairs = nullptr;
    in.report = nullptr;
    in.hubs = {writable(knowsHubs ? noHubs : someHubs)};
    in.added = {writable(addedAgain), added.size() / 2};
    in.removed = {writable(removedAgain), removed.size() / 3};
    space.fill(View<unsigned long long>{writable(words), 1 + tiles}, 0);
    space.launch<compareListsKernel>(tiles, kThreads, in);
    space.wait();
    expectList(addedAgain, added, added.size() / 2);
    expectList(removedAgain, removed, removed.size() / 3);
  }

 private:
  static constexpr Pair kUntouched = {12345, 12345};

  /// The hubs as a HubList, which is not sorted. If there are too many hubs, the ones with the
  /// smallest indices are missing.
  static std::vector<unsigned long long> hubsIn(const Lists& lists) {
    std::vector<unsigned long long> words(HubList::kWords);
    for (std::size_t box = lists.size(); box-- > 0;)
      if (lists[box].size() >= HubList::kFrom && words[0]++ < HubList::kMaxHubs)
        words[words[0]] = box;
    return words;
  }

  static void expectList(const OnDevice<Pair>& there, const Pairs& all, std::size_t written) {
    Pairs expected(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(written));
    expected.resize(all.size() + 1, kUntouched);
    ASSERT_EQ(download(there.view()), expected);
  }
};

inline std::vector<std::uint32_t> everyOther(std::uint32_t begin, std::uint32_t size,
                                             std::uint32_t step = 1) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t k = 0; k < size; ++k) list.push_back(begin + k * step);
  return list;
}

}  // namespace lbvh::test

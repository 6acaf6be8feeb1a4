// The candidates of each box: all boxes whose grown boxes (skin.h) its own overlaps, and of each
// whether the boxes themselves overlapped in the last step. While no box leaves its grown box, all
// pairs are among them, so a step tests only the candidates of boxes that have changed. Does not
// search, and does not know why a box was searched for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/exec/changes.h"
#include "broadphase/exec/host/buffer.h"
#include "broadphase/exec/host/tasks.h"
#include "broadphase/host/pair_words.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/types.h"

namespace lbvh {

/// What is another in a step than in the last one.
struct BoxChanges {
  View<const Aabb> boxes;
  View<const std::uint64_t> changed;        ///< a bit a box; those that have left are among them
  std::size_t changes;                      ///< how many
  View<const std::uint64_t> left;           ///< a bit a box
  View<const std::uint32_t> leftIds;        ///< the same, sorted
  View<const std::uint8_t> removedObjects;  ///< as in StepInput
};

class Candidates {
 public:
  Candidates(HostTasks& tasks, const SimdKernels& kernels) : tasks_(tasks), kernels_(kernels) {}

  /// Takes over the lists of a search among all grown boxes, in which each box has all that it
  /// overlaps. Leaves in them what the boxes themselves overlap, of greater index.
  /// @return how many pairs those are
  std::size_t adopt(const NeighbourLists& lists, View<const Aabb> boxes);

  /// False if the lists were such that one cannot go on from them: nothing is known.
  bool areKnown() const { return areKnown_; }
  /// Gives the memory back.
  void forget();

  /// Whether a box has changed that is a candidate of very many. Then all must be searched for.
  bool haveHubsChanged(View<const Aabb> boxes) const;

  /// Finds the changes of a step. Nothing is final before commit(), so that a step may fail.
  /// @param lists for each box that has left, all that its grown box overlaps
  /// @return false if there is no room: then all must be searched for
  bool compare(const BoxChanges& changes, const NeighbourLists& lists);
  /// The changes as words, in no order: pair() of each, and whether it isAdded().
  View<std::uint64_t> changes() { return {changes_.data(), changes_.size()}; }
  int changeBits() const { return 2 * format_.indexBits + 1; }
  bool isAdded(std::uint64_t change) const { return change >> 2 * format_.indexBits == 0; }
  Pair pair(std::uint64_t change) const {
    return format_.pair(change & ((std::uint64_t{1} << 2 * format_.indexBits) - 1));
  }
  /// How many pairs there are after the step.
  std::size_t pairsAfter() const { return pairsAfter_; }
  void commit(const BoxChanges& changes, const NeighbourLists& lists);

  /// How many pairs there were in the last step, and room for their lists.
  std::size_t pairs() const { return pairs_; }
  std::size_t boxes() const { return rows_.size(); }
  std::size_t roomForLists() const;
  /// For each box those of greater index that it overlapped in the last step.
  void writeLists(const NeighbourLists& lists) const;

  std::size_t memoryBytes() const;

 private:
  /// Where the candidates of a box stand: first those of greater index and the hubs, whose pairs
  /// with it are its own to test, then the others.
  struct Row {
    std::uint32_t start;
    std::uint16_t size, own, room;
    std::uint16_t expected;  ///< how many commit() will insert
  };
  struct Edit {
    enum Kind : std::uint8_t { insert, erase, set } kind;
    std::uint32_t row, entry;
  };
  struct Hub {
    std::uint32_t id;
    Aabb box;
  };

  /// A candidate's index, and two marks.
  static constexpr std::uint32_t kOverlaps = kCandidateOverlaps, kIndex = kCandidateIndex;
  static constexpr std::uint32_t kIsHub = 1u << 30;
  static constexpr std::uint32_t kAtOnce = 64;     ///< candidates that are tested together
  static constexpr std::uint32_t kHubSize = 1024;  ///< a box of more candidates is a hub
  static constexpr std::size_t kMostHubs = 64;

  View<const std::uint32_t> row(std::uint32_t i) const {
    return {entries_.data() + rows_[i].start, rows_[i].size};
  }
  void prefetchEntries(std::uint32_t i) const;
  bool layOut(const NeighbourLists& lists, View<const Aabb> boxes);
  std::uint32_t fill(std::uint32_t i, const NeighbourLists& lists, View<const Aabb> boxes);
  bool isHub(std::uint32_t i) const { return (marks_[i] & kHubMark) != 0; }
  void testChanged(const BoxChanges& changes);
  template <class Visit>
  void forRows(View<const Aabb> boxes, View<const std::uint32_t> ids, const Visit& visit) const;
  template <class Visit>
  void forFlips(View<const Aabb> boxes, std::uint32_t i, const std::uint32_t* begin,
                const std::uint32_t* end, const Visit& visit) const;
  void testOwn(const BoxChanges& changes, std::uint32_t i, std::vector<std::uint64_t>& found) const;
  void testOthers(const BoxChanges& changes, std::uint32_t i,
                  std::vector<std::uint64_t>& found) const;
  bool compareAllLeft(const BoxChanges& changes, const NeighbourLists& lists);
  bool compareLeft(const BoxChanges& changes, std::uint32_t i, View<std::uint32_t> entries);
  bool edit(Edit::Kind kind, std::uint32_t row, std::uint32_t entry);
  bool makeRoom(Row& row, std::size_t size);
  void note(bool isAdded, std::uint32_t a, std::uint32_t b, std::vector<std::uint64_t>& to) const {
    to.push_back(format_.of(makePair(a, b)) | std::uint64_t{!isAdded} << 2 * format_.indexBits);
  }
  void writeHubLists(const NeighbourLists& lists) const;
  template <class Visit>
  void forHubPairs(const Visit& visit) const;
  void applyFlip(std::uint64_t change);
  void apply(const Edit& edit);
  void insert(std::uint32_t i, std::uint32_t entry);
  void erase(Row& row, std::uint32_t* at);
  std::uint32_t* find(std::uint32_t row, std::uint32_t id);

  static constexpr std::uint8_t kOld = 1, kOverlapped = 2, kHubMark = 4;

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  std::vector<Row> rows_;
  HostBuffer<std::uint32_t> entries_;
  std::size_t used_ = 0;             ///< of entries_
  std::vector<std::uint8_t> marks_;  ///< by box
  std::vector<Hub> hubs_;            ///< sorted. They are in others' rows, but have none of others
  std::size_t pairs_ = 0, pairsAfter_ = 0;
  std::size_t ended_ = 0;  ///< pairs of removed objects
  PairWords format_{0};
  std::vector<std::vector<std::uint64_t>> flips_;  ///< by part: of boxes that have not left
  std::vector<std::uint64_t> changes_;
  std::vector<Edit> edits_;
  bool areKnown_ = false;
};

}  // namespace lbvh

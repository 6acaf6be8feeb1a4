// The host's copy of a pair list that lives elsewhere, brought up to date only when somebody asks:
// a log of added and removed pairs, merged at once. Costs nothing a pair that stays.
#pragma once

#include <cstdint>
#include <vector>

#include "broadphase/types.h"

namespace lbvh {

class PairMirror {
 public:
  /// Notes one step's changes, in the order of the steps. @throws std::bad_alloc
  void log(View<const Pair> added, View<const Pair> removed);

  /// Drops the pairs of boxes whose flag is set. @throws std::bad_alloc
  void dropPairsOf(View<const std::uint8_t> removedObjects);

  void assign(View<const Pair> pairs);

  /// Sorted by (first, second); valid until the next call. @throws std::bad_alloc
  View<const Pair> pairs();

 private:
  struct Entry {
    Pair pair;
    bool isAdded;
  };

  std::vector<Pair> pairs_;
  std::vector<Pair> merged_;
  std::vector<Entry> log_;
};

}  // namespace lbvh

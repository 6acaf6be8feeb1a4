// The host's copy of a pair list that lives elsewhere. It keeps a log of added and removed pairs,
// and merges it only when somebody asks. A pair that stays costs nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "broadphase/types.h"

namespace lbvh {

class PairMirror {
 public:
  /// Logs the changes of the next step. @throws std::bad_alloc
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

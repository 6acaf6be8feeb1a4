// SPDX-License-Identifier: Zlib
// The host's copy of a pair list that lives elsewhere. It keeps a log of added and removed pairs
// and of removed objects, and merges it only when it is read. A pair that stays costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/types.h"

namespace lbvh {

class PairMirror {
 public:
  /// Logs the changes of the next step, which begins without the pairs of removed objects.
  /// @param removedObjects a flag for each box, or none
  /// @throws std::bad_alloc with nothing changed
  void log(View<const Pair> added, View<const Pair> removed,
           View<const std::uint8_t> removedObjects = {});

  void assign(View<const Pair> pairs);

  /// Sorted by (first, second); valid until the next call. @throws std::bad_alloc
  View<const Pair> pairs();

  std::size_t memoryBytes() const {
    return (pairs_.capacity() + merged_.capacity()) * sizeof(Pair) +
           log_.capacity() * sizeof(Entry) + removedAt_.capacity() * sizeof(std::uint32_t);
  }

 private:
  struct Entry {
    Pair pair;
    std::uint32_t round;
    bool isAdded;
  };

  bool survives(Pair pair, std::uint32_t round) const;
  void merge();
  void forgetLog();

  std::vector<Pair> pairs_;
  std::vector<Pair> merged_;
  std::vector<Entry> log_;
  std::uint32_t round_ = 0;  ///< how many steps of the log began with removed objects
  /// By object, and 0 behind the end: the round that began with its removal. Pairs of earlier
  /// rounds are gone then, those of that round are another object's.
  std::vector<std::uint32_t> removedAt_;
};

}  // namespace lbvh

// SPDX-License-Identifier: Zlib
// Runs a batch of queries on the host's threads, and collects the hits of each query. Host only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/host/parallel/tasks.h"

namespace lbvh {

class BatchParts {
 public:
  /// The hits of one task, in the order of its queries.
  using Found = std::vector<std::uint32_t>;

  /// @param hitsOf hitsOf(i, visit) calls visit(box index) for each box that query i hits
  /// @param sizes receives the number of hits of each query
  /// @param most maximum number of hits; a batch with more hits stops, and skips the remaining
  ///   queries
  template <class Size, class HitsOf>
  BatchParts(HostTasks& tasks, std::size_t queries, const HitsOf& hitsOf, Size* sizes,
             std::uint64_t most = ~std::uint64_t{0})
      : tasks_(tasks),
        queries_(queries),
        found_(std::clamp<std::size_t>(queries / kQueriesAPart, 1,
                                       kPartsAThread * static_cast<std::size_t>(tasks.threads()))) {
    std::atomic<std::uint64_t> all{0};
    forParts([&](Found& found, std::size_t begin, std::size_t end) {
      for (std::size_t query = begin; query < end; ++query) {
        if (all.load(std::memory_order_relaxed) > most) return;
        const std::size_t before = found.size();
        hitsOf(query, [&](std::uint32_t box) { found.push_back(box); });
        std::sort(found.begin() + static_cast<std::ptrdiff_t>(before), found.end());
        sizes[query] = static_cast<Size>(found.size() - before);
        all.fetch_add(found.size() - before, std::memory_order_relaxed);
      }
    });
  }

  /// Number of hits of all queries.
  std::size_t hits() const {
    std::size_t sum = 0;
    for (const Found& found : found_) sum += found.size();
    return sum;
  }

  /// Writes the hits of all queries, but at most `capacity` of them. The hits of each query are in
  /// ascending order.
  /// @param offsets where the hits of each query begin
  template <class Offset>
  void write(const Offset* offsets, std::uint32_t* boxes, std::size_t capacity) {
    forParts([&](const Found& found, std::size_t begin, std::size_t) {
      const auto at = static_cast<std::size_t>(offsets[begin]);
      if (at < capacity)
        std::copy_n(found.begin(), std::min(found.size(), capacity - at), boxes + at);
    });
  }

 private:
  /// Fewer queries are not worth a task.
  static constexpr std::size_t kQueriesAPart = 64;
  /// More parts than threads, because queries differ in cost.
  static constexpr std::size_t kPartsAThread = 8;

  template <class Part>
  void forParts(const Part& part) {
    tasks_.forParts(
        queries_, found_.size(),
        [&](std::size_t k, std::size_t begin, std::size_t end) { part(found_[k], begin, end); });
  }

  HostTasks& tasks_;
  const std::size_t queries_;
  std::vector<Found> found_;
};

}  // namespace lbvh

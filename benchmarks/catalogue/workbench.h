// SPDX-License-Identifier: Zlib
// Prepares a scene for variants: boxes in the space's memory, and codes, order and tree as a step
// over a binary tree makes them. So each stage can be replaced separately. Not for production: it
// keeps all arrays, and always uses 30-bit codes.
#pragma once

#include <algorithm>
#include <vector>

#include "benchmarks/catalogue/variant.h"
#include "broadphase/core/grid.h"

namespace lbvh::variants {

struct NoPairs {
  std::uint64_t* count;
  GPULBVH_HD void operator()(std::uint32_t) const { *count = 0; }
};

struct Scribble {
  Node* nodes;
  GPULBVH_HD void operator()(std::uint32_t i) const {
    nodes[i] = {{7, 7, 7}, kNullIndex, {-7, -7, -7}, kNullIndex};
  }
};

template <class Space>
class Workbench {
 public:
  /// @param threads number of threads of the host; ignored on a GPU
  explicit Workbench(int threads = 1) : space_(spaceWith(threads)) {}

  /// Uploads the boxes and runs production's stages 1 to 4 over them. After that, sortProblem(),
  /// buildProblem() and findProblem() may be called any number of times.
  void prepare(View<const Aabb> boxes) {
    total_ = boxes.size();
    boxes_ = space_.upload(boxes, upload_);
    *arguments_.ensure(1).data() = {total_, 0};
    header_.ensure(1);
    report_.ensure(1);
    const std::size_t all = boxes_.size();
    space_.reduce(all, MeasureScene{boxes_}, &header_.data()->scene);
    space_.forEach(1, ChooseGrid{boxes_, arguments_.data(), header_.data()});
    space_.forEach(Report::kWords, Report{header_.data(), report_.data()});
    space_.wait();
    leaves_ = report_.data()->scene.ordinary;
    arrivals_.ensure(all);
    SortProblem<Space> sort = sortProblem();
    space_.sortByKey(sort.keys, sort.values, sort.spareKeys, sort.spareValues, 0, sort.bits);
    BuildProblem<Space> build = buildProblem();
    space_.forEach(leaves_, BuildHierarchy<std::uint32_t>{boxes_, build.ids, build.codes, build.n,
                                                          arrivals_.data(), build.nodes});
    space_.wait();
  }

  /// Returns a problem with unsorted keys. Each call computes the keys again.
  SortProblem<Space> sortProblem() {
    const std::size_t all = boxes_.size();
    const View<std::uint32_t> keys = keys_.ensure(all), ids = ids_.ensure(all);
    space_.forEach(all, AssignCodes<std::uint32_t>{boxes_, &header_.data()->grid, keys.data(),
                                                   ids.data(), arrivals_.data()});
    space_.wait();
    return {space_,
            memory_,
            keys,
            ids,
            spareKeys_.ensure(all),
            spareIds_.ensure(all),
            AssignCodes<std::uint32_t>::kKeyBits};
  }

  /// The keys of sortProblem() must be sorted. The new tree replaces the one that findProblem()
  /// uses.
  BuildProblem<Space> buildProblem() {
    return {space_,
            memory_,
            boxes_,
            ids_.data(),
            keys_.data(),
            leaves_,
            nodes_.ensure(2 * leaves_ + 1).data()};
  }

  /// Overwrites the tree, so that a test notices a builder that writes nothing.
  void scribble(Node* nodes) {
    if (leaves_ == 0) return;
    space_.forEach(2 * leaves_ - 1, Scribble{nodes});
    space_.wait();
  }

  /// Allocates memory for `capacity` pairs. After a run, found() returns how many were found.
  FindProblem<Space> findProblem(std::size_t capacity) {
    space_.forEach(1, NoPairs{&header_.data()->pairs});
    return {space_,        memory_,
            boxes_,        ids_.data(),
            nodes_.data(), &header_.data()->scene,
            leaves_,       {pairs_.ensure(capacity), ~std::uint64_t{0}, &header_.data()->pairs}};
  }

  /// Waits for the space, and returns the number of pairs found since the last findProblem(),
  /// including those beyond the capacity.
  std::uint64_t found() {
    space_.forEach(Report::kWords, Report{header_.data(), report_.data()});
    space_.wait();
    return report_.data()->pairs;
  }

  std::uint32_t leaves() const { return leaves_; }
  Space& space() { return space_; }

 private:
  template <class T>
  using Buffer = typename Space::template Buffer<T>;

  static Space spaceWith(int threads) {
    if constexpr (Space::kKnowsCounts)
      return Space(threads);
    else
      return Space({.timesStages = true});
  }

  Space space_;
  VariantMemory<Space> memory_;
  typename Space::template UploadBuffer<Aabb> upload_;
  typename Space::template HostBuffer<StepArguments> arguments_;
  typename Space::template HostBuffer<StepHeader> report_;
  Buffer<StepHeader> header_;
  Buffer<std::uint32_t> keys_, ids_, spareKeys_, spareIds_;
  Buffer<std::uint32_t> arrivals_;
  Buffer<Node> nodes_;
  Buffer<Pair> pairs_;
  View<const Aabb> boxes_;
  std::size_t total_ = 0;
  std::uint32_t leaves_ = 0;
};

}  // namespace lbvh::variants

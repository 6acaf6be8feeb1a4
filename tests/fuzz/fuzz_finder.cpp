// SPDX-License-Identifier: Zlib
// Fuzz target: PairFinder, and the queries of BoxTree. The bytes choose the calls, and each answer
// is compared with brute force. Several finders get the same calls. They differ in hierarchy,
// threads, instruction set and backend.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <new>
#include <optional>
#include <stdexcept>

#include "broadphase/tree_query.h"
#include "bytes.h"
#include "failing_new.h"
#include "portable.h"
#include "target.h"

namespace fuzz {
namespace {

using lbvh::Aabb;
using lbvh::Filter;
using lbvh::Pair;
using lbvh::PairFinder;
using lbvh::View;
using lbvh::test::Boxes;
using lbvh::test::Pairs;
using lbvh::test::toVector;
using lbvh::test::view;

/// The boxes and filters of an update.
struct Input {
  Boxes boxes;
  std::vector<Filter> filters;
};

bool hasNan(const Aabb& box) {
  bool has = false;
  for (int axis = 0; axis < 3; ++axis)
    has = has || std::isnan(box.min[axis]) || std::isnan(box.max[axis]);
  return has;
}

class Program {
 public:
  explicit Program(Bytes& bytes);
  void run();

 private:
  void addBoxes();
  void addCrowd();
  void moveBoxes();
  void changeFilters();
  void replaceObject();
  void moveFinders();
  void misuse();
  void update();
  void updateUnchanged();
  void queryTree();

  std::vector<std::uint64_t> changedBits();
  Pairs remembered() const;
  void updateOne(PairFinder& finder, View<const std::uint64_t> changed, const Pairs& expected);
  bool failsForMemory(PairFinder& finder, View<const std::uint64_t> changed, long allocations);
  void checkStep(PairFinder& finder, const Pairs& old, const Pairs& expected) const;
  void checkNoDelta(PairFinder& finder) const;

  Bytes& bytes_;
  lbvh::Options options_;
  std::vector<PairFinder> finders_;
  lbvh::BoxTree tree_{1};
  Input now_, last_;  ///< input of the next update, and of the last one that succeeded
  Pairs pairs_;       ///< pairs of the last update that did not throw
  std::vector<std::uint8_t> removed_;  ///< for each box, whether its object was replaced since then
  bool hasFailed_ = false;             ///< the last update threw
};

Program::Program(Bytes& bytes) : bytes_(bytes) {
  options_.maxPairs = bytes.oneIn(8) ? 40 : std::uint64_t{1} << 28;
  const auto add = [this](int threads, const char* simd, lbvh::Backend backend,
                          lbvh::Hierarchy hierarchy = lbvh::Hierarchy::wide) {
    options_.hierarchy = hierarchy;
    options_.threads = threads;
    options_.backend = backend;
    if (simd == nullptr)
      lbvh::test::unsetVariable("GPULBVH_SIMD");
    else
      lbvh::test::setVariable("GPULBVH_SIMD", simd);
    finders_.emplace_back(options_);
  };
  constexpr const char* kSimd[] = {nullptr, "avx2", "baseline"};
  const char* const simd = kSimd[bytes.below(3)];
  const int threads = bytes.oneIn(4) ? 2 : 1;
  add(1, simd, lbvh::Backend::host);
  add(threads, nullptr, lbvh::Backend::host, lbvh::Hierarchy::binary);
  if (threads == 2) add(2, nullptr, lbvh::Backend::host);
  if (otherBackend == lbvh::Backend::host) return;
  for (const auto hierarchy : {lbvh::Hierarchy::wide, lbvh::Hierarchy::binary})
    add(1, nullptr, otherBackend, hierarchy);
}

void Program::run() {
  while (!bytes_.atEnd()) {
    const std::uint32_t dice = bytes_.below(64);
    if (dice < 14) {
      addBoxes();
    } else if (dice < 16) {
      addCrowd();
    } else if (dice < 27) {
      moveBoxes();
    } else if (dice < 32) {
      changeFilters();
    } else if (dice < 37) {
      replaceObject();
    } else if (dice == 37) {
      moveFinders();
    } else if (dice == 38) {
      misuse();
    } else if (dice < 43) {
      updateUnchanged();
    } else if (dice < 47) {
      queryTree();
    } else {
      update();
    }
  }
  update();
  if (otherBackend != lbvh::Backend::host)
    require(finders_.back().stats().backend != "host", "the steps ran on the host");
}

void Program::addBoxes() {
  const std::uint32_t count = bytes_.below(16), copies = bytes_.oneIn(8) ? 1 + bytes_.below(9) : 1;
  for (std::uint32_t i = 0; i <= count && !bytes_.atEnd(); ++i)
    now_.boxes.insert(now_.boxes.end(), copies, bytes_.box());
  if (!now_.filters.empty()) now_.filters.resize(now_.boxes.size(), Filter{1, -1});
}

/// Replaces all boxes by up to 720 others, which a few bytes determine. Some code runs only for
/// hundreds of boxes.
void Program::addCrowd() {
  const std::vector<lbvh::test::BoxSet>& sets = lbvh::test::boxSets();
  const lbvh::test::BoxSet& set = sets[bytes_.below(static_cast<std::uint32_t>(sets.size()))];
  lbvh::test::Random random(bytes_.byte());
  const std::uint32_t count = bytes_.below(16) * (bytes_.oneIn(8) ? 48 : 12);
  if (set.name == std::string("coincident") && count > 200) return;  // n * n pairs
  if (set.name == std::string("nested") && count > 200) return;
  now_.boxes = set.make(count, random);
  if (!now_.filters.empty()) now_.filters.resize(now_.boxes.size(), Filter{1, -1});
}

void Program::moveBoxes() {
  const auto any = [this] { return bytes_.below(static_cast<std::uint32_t>(now_.boxes.size())); };
  for (std::uint32_t left = bytes_.below(6); left > 0 && !now_.boxes.empty(); --left) {
    Aabb& box = now_.boxes[any()];
    const std::uint32_t kind = bytes_.below(8);
    const int axis = static_cast<int>(bytes_.below(3));
    if (kind < 3)
      box = bytes_.box();
    else if (kind == 3)
      box = now_.boxes[any()];
    else if (kind == 4)
      box.min[axis] = now_.boxes[any()].max[axis];  // the box touches the other one, or is inverted
    else if (kind == 5)
      box.max[axis] = std::nextafter(now_.boxes[any()].min[axis], -1e30f);
    else if (kind == 6)
      now_.boxes.resize(any());
    else
      box.max[axis] = bytes_.coordinate();
  }
  if (!now_.filters.empty()) now_.filters.resize(now_.boxes.size());
}

void Program::changeFilters() {
  if (bytes_.oneIn(4)) {
    now_.filters.clear();
    return;
  }
  now_.filters.resize(now_.boxes.size(), Filter{1, -1});
  for (std::uint32_t left = bytes_.below(6); left > 0 && !now_.boxes.empty(); --left) {
    Filter& filter = now_.filters[bytes_.below(static_cast<std::uint32_t>(now_.boxes.size()))];
    filter = {1 << bytes_.below(32), bytes_.oneIn(4) ? -1 : static_cast<int>(bytes_.below(8))};
  }
}

void Program::replaceObject() {
  const std::uint32_t index = bytes_.oneIn(16) ? bytes_.bits() : bytes_.below(200);
  if (index < removed_.size()) removed_[index] = 1;
  for (PairFinder& finder : finders_) finder.replaceObject(index);
}

void Program::moveFinders() {
  for (PairFinder& finder : finders_) {
    PairFinder moved(std::move(finder));
    finder = std::move(moved);
  }
}

template <class Error, class F>
void requireThrow(const F& f, const char* what) {
  try {
    f();
  } catch (const Error&) {
    return;
  }
  require(false, what);
}

/// Makes calls with wrong arguments. They must throw, and change nothing but the delta.
void Program::misuse() {
  requireThrow<std::invalid_argument>(
      [] {
        PairFinder(lbvh::Options{lbvh::Backend::host, -1});
      },
      "negative threads were accepted");
  for (PairFinder& finder : finders_) {
    const std::vector<Filter> filters(now_.boxes.size() + 1);
    requireThrow<std::invalid_argument>([&] { finder.update(view(now_.boxes), view(filters)); },
                                        "too many filters were accepted");
    const std::uint64_t word = 0;
    if (!now_.boxes.empty())
      requireThrow<std::invalid_argument>(
          [&] {
            finder.update(view(now_.boxes), {}, {&word, (now_.boxes.size() - 1) / 64});
          },
          "too few bits were accepted");
    checkNoDelta(finder);
  }
  hasFailed_ = true;
}

/// Bits for all boxes that need one by the contract of update(), and for some others.
std::vector<std::uint64_t> Program::changedBits() {
  std::vector<std::uint64_t> bits(now_.boxes.size() / 64 + 1);
  const auto differ = [](const auto& a, const auto& b) {
    return std::memcmp(&a, &b, sizeof a) != 0;
  };
  for (std::size_t i = 0; i < std::min(now_.boxes.size(), last_.boxes.size()); ++i) {
    bool hasChanged = differ(now_.boxes[i], last_.boxes[i]);
    if (!now_.filters.empty() && !last_.filters.empty())
      hasChanged = hasChanged || differ(now_.filters[i], last_.filters[i]);
    bits[i / 64] |= std::uint64_t{hasChanged} << i % 64;
  }
  bits[0] |= bytes_.below(4);
  if (bytes_.oneIn(8)) bits.back() |= std::uint64_t{bytes_.bits()} << 32;  // bits beyond the end
  return bits;
}

/// The pairs to which the next delta is relative.
Pairs Program::remembered() const {
  Pairs pairs;
  for (const Pair pair : pairs_)
    if (!involvesRemoved(pair, view(removed_))) pairs.push_back(pair);
  return pairs;
}

void Program::update() {
  const Pairs expected = lbvh::test::bruteForce(now_.boxes, now_.filters);
  const std::vector<std::uint64_t> bits = changedBits();
  const View<const std::uint64_t> changed =
      bytes_.oneIn(2) ? view(bits) : View<const std::uint64_t>{};
  const bool isScarce = bytes_.oneIn(8);
  const long allocations = isScarce ? bytes_.below(40) : 0;
  bool hasFailed = expected.size() > options_.maxPairs;
  for (PairFinder& finder : finders_) {
    // Whether this is the first finder with its hierarchy.
    const bool isFirst = &finder == &finders_[0] || &finder == &finders_[1];
    if (isScarce && isFirst && failsForMemory(finder, changed, allocations)) checkNoDelta(finder);
    updateOne(finder, changed, expected);
  }
  hasFailed_ = hasFailed;
  if (hasFailed_) return;
  pairs_ = expected;
  last_ = now_;
  removed_.assign(now_.boxes.size(), 0);
}

/// Runs an update with limited memory. Returns false if it succeeded. In that case it also checks
/// the delta, and then updates the finder with the previous boxes, because the caller repeats the
/// update.
bool Program::failsForMemory(PairFinder& finder, View<const std::uint64_t> changed,
                             long allocations) {
  bool isDone = false;
  try {
    failing_new::callWith(allocations, [&] {
      finder.update(view(now_.boxes), view(now_.filters), changed);
      isDone = true;
    });
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const std::length_error&) {
    return true;
  }
  require(isDone, "neither done nor failed");
  const Pairs expected = lbvh::test::bruteForce(now_.boxes, now_.filters);
  checkStep(finder, remembered(), expected);
  // Return to the state of the other finders.
  finder.update(view(last_.boxes), view(last_.filters));
  for (std::uint32_t i = 0; i < removed_.size(); ++i)
    if (removed_[i] != 0) finder.replaceObject(i);
  return false;
}

void Program::updateOne(PairFinder& finder, View<const std::uint64_t> changed,
                        const Pairs& expected) {
  if (expected.size() <= options_.maxPairs) {
    finder.update(view(now_.boxes), view(now_.filters), changed);
    return checkStep(finder, remembered(), expected);
  }
  requireThrow<std::length_error>(
      [&] { finder.update(view(now_.boxes), view(now_.filters), changed); },
      "too many pairs were accepted");
  checkNoDelta(finder);
}

void Program::checkStep(PairFinder& finder, const Pairs& old, const Pairs& expected) const {
  Pairs added, removed;
  std::set_difference(expected.begin(), expected.end(), old.begin(), old.end(),
                      std::back_inserter(added));
  std::set_difference(old.begin(), old.end(), expected.begin(), expected.end(),
                      std::back_inserter(removed));
  require(toVector(finder.pairs()) == expected, "the pairs are not those of brute force");
  require(toVector(finder.added()) == added, "the added pairs are wrong");
  require(toVector(finder.removed()) == removed, "the removed pairs are wrong");
  const lbvh::Stats& stats = finder.stats();
  const auto nans = std::count_if(now_.boxes.begin(), now_.boxes.end(), hasNan);
  require(stats.objects == now_.boxes.size() && stats.pairs == expected.size() &&
              stats.added == added.size() && stats.removed == removed.size() &&
              stats.searched <= now_.boxes.size() &&
              stats.nanBoxes == static_cast<std::size_t>(nans),
          "a figure of stats() is wrong");
}

void Program::checkNoDelta(PairFinder& finder) const {
  require(toVector(finder.pairs()) == pairs_, "pairs() changed");
  require(finder.added().empty() && finder.removed().empty(),
          "added() or removed() is not empty though nothing has changed");
}

/// Calls updateUnchanged(), unless the last update failed or objects were replaced after it. In
/// these cases the call is not allowed.
void Program::updateUnchanged() {
  const bool isForgotten = std::count(removed_.begin(), removed_.end(), 1) > 0;
  if (hasFailed_ || isForgotten) return;
  for (PairFinder& finder : finders_) {
    finder.updateUnchanged();
    checkNoDelta(finder);
    require(finder.stats().pairs == pairs_.size(),
            "stats().pairs is wrong after updateUnchanged()");
  }
}

lbvh::Ray rayOf(Bytes& bytes) {
  lbvh::Ray ray{};
  for (int axis = 0; axis < 3; ++axis) {
    ray.origin[axis] = bytes.coordinate();
    const std::uint32_t way = bytes.below(8);
    ray.direction[axis] = way < 4 ? static_cast<float>(way) - 1 : bytes.coordinate();
  }
  ray.length = bytes.coordinate();
  return ray;
}

/// Checks that the hits of each query are the boxes that `hits(query, box)` accepts.
template <class Query, class Hits>
void checkBatch(const lbvh::BatchHits& found, const std::vector<Query>& queries, const Boxes& boxes,
                const Hits& hits) {
  require(found.offsets.size() == queries.size() + 1, "not an answer for each query");
  for (std::size_t query = 0; query < queries.size(); ++query) {
    std::vector<std::uint32_t> expected;
    for (std::uint32_t box = 0; box < boxes.size(); ++box)
      if (hits(queries[query], boxes[box])) expected.push_back(box);
    const View<const std::uint32_t> of = found.of(query);
    require(std::equal(of.begin(), of.end(), expected.begin(), expected.end()),
            "a query of the tree is wrong");
  }
}

void Program::queryTree() {
  std::vector<Aabb> boxes;
  std::vector<lbvh::Ray> rays;
  for (std::uint32_t left = 1 + bytes_.below(4); left > 0; --left) {
    boxes.push_back(bytes_.box());
    rays.push_back(rayOf(bytes_));
  }
  tree_.build(view(now_.boxes));
  lbvh::BatchHits hits;
  tree_.aabbTest(view(boxes), hits);
  checkBatch(hits, boxes, now_.boxes, [](const Aabb& a, const Aabb& b) { return overlap(a, b); });
  tree_.rayTest(view(rays), hits);
  checkBatch(hits, rays, now_.boxes,
             [](const lbvh::Ray& ray, const Aabb& box) { return lbvh::RayTest(ray)(box); });
  for (const Aabb& query : boxes) {
    std::vector<char> visits(now_.boxes.size());
    tree_.query([&](const Aabb& box) { return overlap(query, box); },
                [&](std::uint32_t box) { ++visits[box]; });
    for (std::size_t box = 0; box < visits.size(); ++box)
      require(visits[box] == (overlap(query, now_.boxes[box]) ? 1 : 0),
              "a query with a predicate is wrong");
  }
}

}  // namespace

void runTarget(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Program(bytes).run();
}

}  // namespace fuzz

// SPDX-License-Identifier: Zlib
// A filter callback that may change its answers at any time, and a naive model of its calls and of
// the pairs. See docs/contract.md, "When a filter callback is called".
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace refusal {

using namespace twins;
using Question = std::pair<std::uint32_t, std::uint32_t>;  // two slots, the smaller first

struct Thrown {};

/// A filter whose answers depend on the two objects' numbers, and on a counter for each object
/// (`minds`), which tests increase.
struct Fickle : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    const int first = *numberOf(a), second = *numberOf(b);
    asked.push_back({first, second});
    if (answersLeft > 0 && --answersLeft == 0) throw Thrown{};
    return accepts(first, second);
  }
  bool accepts(int a, int b) const {
    const auto mindOf = [&](int one) {
      const auto found = minds.find(one);
      return static_cast<std::uint32_t>(found == minds.end() ? 0 : found->second);
    };
    const auto numbers = static_cast<std::uint32_t>(std::min(a, b) * 1009 + std::max(a, b));
    return ((numbers + mindOf(a) + mindOf(b)) * 2654435769u >> 20) % 3 == 0;
  }
  std::map<int, int> minds;
  mutable std::vector<std::pair<int, int>> asked;
  mutable int answersLeft = 0;  ///< number of answers until it throws; 0: never
};

/// What the model knows about an object.
struct Known {
  int number = 0;
  std::uint32_t slot = 0;
  btBroadphaseProxy* proxy = nullptr;
  Box box, fat;              ///< `box` was set by the caller, `fat` includes the margin
  bool mustAsk = true;       ///< the box changed or its pairs were cleaned since the last step
  bool isHalfSpace = false;  ///< y <= 1
};

/// The model of the adapter. It remembers a state for each pair.
class Rule {
 public:
  enum State { refused, accepted, taken };  // taken: removed from the cache by the user
  explicit Rule(float margin) : margin_(margin) {}

  void create(int number, btBroadphaseProxy* proxy, const Box& box) {
    Known one;
    one.number = number;
    one.proxy = proxy;
    one.slot = lowestFreeSlot();
    one.box = box;
    one.fat = fattened(box);
    objects[number] = one;
  }
  void destroy(int number) {
    objects.erase(number);
    std::erase_if(pairs_, [&](const auto& pair) {
      return pair.first.first == number || pair.first.second == number;
    });
  }
  void move(int number, const Box& box) {
    Known& one = objects.at(number);
    if (one.box.min == box.min && one.box.max == box.max) return;
    one.mustAsk = true;
    one.box = box;
    bool isInside = margin_ > 0;
    for (int axis = 0; axis < 3; ++axis)
      isInside =
          isInside && one.fat.min[axis] <= box.min[axis] && box.max[axis] <= one.fat.max[axis];
    if (!isInside) one.fat = fattened(box);
  }
  void takeAccepted(int number) {
    for (auto& [pair, state] : pairs_)
      if ((pair.first == number || pair.second == number) && state == accepted) state = taken;
  }

  /// @param asksAll whether the filter is called for all pairs, as after refilter()
  /// @param accepts what the callback answers
  /// @return the pairs for which the filter must be called, in order
  template <class Accepts>
  std::vector<Question> step(bool asksAll, const Accepts& accepts) {
    std::vector<Question> questions;
    for (auto a = objects.begin(); a != objects.end(); ++a)
      for (auto b = std::next(a); b != objects.end(); ++b)
        decide(a->second, b->second, asksAll, accepts, questions);
    for (auto& [number, one] : objects) one.mustAsk = false;
    std::sort(questions.begin(), questions.end());
    return questions;
  }
  PairSet pairs() const {
    PairSet all;
    for (const auto& [pair, state] : pairs_)
      if (state == accepted) all.insert(pair);
    return all;
  }

  std::map<int, Known> objects;

 private:
  template <class Accepts>
  void decide(const Known& a, const Known& b, bool asksAll, const Accepts& accepts,
              std::vector<Question>& questions) {
    const std::pair<int, int> key(a.number, b.number);
    const auto before = pairs_.find(key);
    if (!overlap(a, b)) {
      pairs_.erase(key);
      return;
    }
    const bool begins = before == pairs_.end();
    const bool isAgain = !begins && before->second == refused && (a.mustAsk || b.mustAsk);
    if (!asksAll && !begins && !isAgain) return;
    questions.emplace_back(std::min(a.slot, b.slot), std::max(a.slot, b.slot));
    pairs_[key] = accepts(a.number, b.number) ? accepted : refused;
  }
  static bool overlap(const Known& a, const Known& b) {
    if ((a.isHalfSpace && b.fat.min.y() > 1) || (b.isHalfSpace && a.fat.min.y() > 1)) return false;
    return TestAabbAgainstAabb2(a.fat.min, a.fat.max, b.fat.min, b.fat.max);
  }
  std::uint32_t lowestFreeSlot() const {
    std::set<std::uint32_t> used;
    for (const auto& [number, one] : objects) used.insert(one.slot);
    std::uint32_t slot = 0;
    while (used.count(slot) == 1) ++slot;
    return slot;
  }
  Box fattened(const Box& box) const {
    const btVector3 margin(margin_, margin_, margin_);
    return {box.min - margin, box.max + margin};
  }

  const float margin_;
  std::map<std::pair<int, int>, State> pairs_;
};

/// Corners are multiples of 1/16, so that nothing is rounded and many boxes just touch.
inline Box drawBox(Random& random, int side, int size) {
  const auto draw = [&](int n) {
    return btScalar(random.below(static_cast<std::uint32_t>(n * 16))) / 16;
  };
  const btVector3 min(draw(side), draw(side), draw(side));
  return {min, min + btVector3(draw(size), draw(size), draw(size))};
}

}  // namespace refusal

// SPDX-License-Identifier: Zlib
// Compares SparseBits with a std::set.
#include "broadphase/core/sparse_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "support.h"

namespace lbvh {
namespace {

class SparseBitsTest : public testing::Test {
 protected:
  std::size_t below(std::size_t n) { return random_.below(static_cast<std::uint32_t>(n)); }

  void resize(std::size_t n) {
    size_ = n;
    bits_.resize(n);
    model_.erase(model_.lower_bound(n), model_.end());
  }
  void addRange() {
    const std::size_t begin = below(size_), end = std::min(size_, begin + below(200));
    bits_.addRange(begin, end);
    for (std::size_t i = begin; i < end; ++i) model_.insert(i);
  }
  void addMask() {
    const std::size_t i = below(size_), word = i / 64;
    const std::uint64_t mask =
        random_.below(3) == 0
            ? 0
            : (std::uint64_t{random_.bits()} << random_.below(33)) & bitsBelow(size_, 64 * word);
    bits_.addMask(mask, i);
    forBits(mask, 64 * word, [&](std::uint32_t one) { model_.insert(one); });
  }
  void addOther() {
    SparseBits other;
    other.begin(size_);
    for (int k = 0; k < 5; ++k) other.add(below(size_));
    if (random_.below(2) == 0)
      bits_.addAll(other);
    else
      bits_.addAll(other.words());
    other.forEach([&](std::uint32_t i) { model_.insert(i); });
  }
  void takeLowest() {
    if (model_.empty()) return;
    ASSERT_EQ(bits_.takeLowest(), *model_.begin());
    model_.erase(model_.begin());
  }

  void check() {
    std::vector<std::size_t> all;
    bits_.forEach([&](std::uint32_t i) { all.push_back(i); });
    ASSERT_EQ(all, std::vector<std::size_t>(model_.begin(), model_.end()));
    ASSERT_EQ(bits_.count(), model_.size());
    ASSERT_EQ(bits_.isEmpty(), model_.empty());
    for (std::size_t word = 0; word < bits_.words().size(); ++word)
      ASSERT_EQ(hasBit(bits_.used(), word), bits_.words()[word] != 0) << word;
    if (size_ > 0) {
      const std::size_t i = below(size_);
      ASSERT_EQ(bits_.contains(i), model_.count(i) == 1);
    }
  }

  test::Random random_{4};
  SparseBits bits_;
  std::set<std::size_t> model_;
  std::size_t size_ = 0;
};

TEST_F(SparseBitsTest, IsASet) {
  for (int call = 0; call < 20000 && !HasFailure(); ++call) {
    const std::uint32_t what = random_.below(100);
    if (what < 4 || size_ == 0) {
      resize(below(std::size_t{1} << below(16)));
    } else if (what < 5) {
      bits_.begin(size_);
      model_.clear();
    } else if (what < 30) {
      takeLowest();
    } else if (what < 40) {
      addRange();
    } else if (what < 50) {
      addMask();
    } else if (what < 60) {
      addOther();
    } else {
      const std::size_t i = below(size_);
      bits_.add(i);
      model_.insert(i);
    }
    check();
  }
}

}  // namespace
}  // namespace lbvh

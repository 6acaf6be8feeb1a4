// SPDX-License-Identifier: Zlib
#include "broadphase/host/verlet/skin_account.h"

#include <algorithm>

namespace lbvh {
namespace {

constexpr std::size_t kBoxesPerSample = 256;

double of(std::uint64_t count) { return static_cast<double>(count); }

}  // namespace

void SkinAccount::open() {
  debt_ = perEscaped_ = 0;
  all_ = kMaxOfAll;
}

void SkinAccount::notePlain(std::size_t boxes, std::uint64_t tests) {
  plainTests_ = of(tests) / std::max(of(boxes), 1.0);
}

std::uint64_t SkinAccount::mostTests(std::size_t boxes) const {
  if (plainTests_ == 0) return ~std::uint64_t{0};
  return static_cast<std::uint64_t>(kMaxTestsOfAll * kBothSides * plainTests_ * of(boxes));
}

void SkinAccount::chargeAll(std::size_t boxes, std::uint64_t found, const StepWork& work) {
  const double n = std::max(of(boxes), 1.0), tests = of(work.tests) / n;
  boxes_ = boxes;
  plain_ = n * ((plainTests_ > 0 ? plainTests_ : tests / kBothSides) + kPlain);
  row_ = of(found) / n;
  if (perEscaped_ == 0) perEscaped_ = kEscaping + tests + 2 * (kComparing + kEditing) * row_;
  const double each = tests + kOrdering + kListing + kGrowing + kAdopting * row_;
  all_ = std::min(n * each / plain_, kMaxOfAll);
  charge(all_ * plain_);
}

void SkinAccount::chargeEscaped(std::size_t escaped, const StepWork& work) {
  const double ofEscaped = kEscaping * of(escaped) + of(work.tests) +
                           kComparing * of(work.compared) + kEditing * of(work.edited);
  if (escaped * kBoxesPerSample > boxes_) perEscaped_ = ofEscaped / of(escaped);
  charge(ofEscaped + kOrdering * of(work.ordered) + kTesting * of(work.tested));
}

void SkinAccount::charge(double work) { debt_ = std::max(debt_ + work / plain_ - 1, -kMaxCredit); }

/// Assumes that the step must also order all boxes.
bool SkinAccount::allowsEscaped(std::size_t escaped, std::size_t changed,
                                std::size_t ofHubs) const {
  const double tested = of(changed - escaped) * row_;
  const double work = perEscaped_ * of(escaped) + kOrdering * of(boxes_) +
                      2 * kComparing * of(ofHubs) +
                      kTesting * std::min(tested, of(boxes_) * row_ / 2);
  return work <= kMaxOfEscaped * plain_;
}

}  // namespace lbvh

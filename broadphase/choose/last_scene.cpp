// SPDX-License-Identifier: Zlib
#include "broadphase/choose/last_scene.h"

#include <algorithm>
#include <utility>

#include "broadphase/core/changes.h"
#include "broadphase/core/view_of.h"

namespace lbvh {

LastScene::Copying LastScene::prepare(const StepInput& input) {
  Copy& to = next();
  const bool wasWhole = std::exchange(to.isWhole, false);
  const bool knows = wasWhole && last().isWhole && last().knowsChanged;
  to.knowsChanged = input.changed.data() != nullptr;
  const auto known = [&](std::size_t then, std::size_t before, std::size_t now) {
    return knows && to.knowsChanged ? std::min({then, before, now}) : 0;
  };
  known_ = known(to.boxes.size(), last().boxes.size(), input.boxes.size());
  if (!input.filters.empty())
    known_ =
        std::min(known_, known(to.filters.size(), last().filters.size(), input.filters.size()));
  to.boxes.resize(input.boxes.size());
  to.filters.resize(input.filters.size());
  to.changed.resize(to.knowsChanged ? wordsFor(input.boxes.size()) : 0);
  if (to.knowsChanged) std::copy_n(input.changed.data(), to.changed.size(), to.changed.data());
  to.maxPairs = input.maxPairs;
  return Copying(*this, input);
}

void LastScene::Copying::run(std::size_t piece) noexcept {
  const std::size_t begin = piece * kPiece;
  scene_.copyRange(input_, begin, std::min(begin + kPiece, input_.boxes.size()));
}

/// @param begin a multiple of 64
void LastScene::copyRange(const StepInput& input, std::size_t begin, std::size_t end) noexcept {
  Copy& to = next();
  const std::uint64_t *const now = input.changed.data(), *const before = last().changed.data();
  std::size_t first = begin;
  for (; first + kMaskBits <= std::min(known_, end); first += kMaskBits) {
    // This copy is two steps old, so it also lacks what the previous step changed.
    const std::uint64_t changed = now[first / kMaskBits] | before[first / kMaskBits];
    if (changed == 0) continue;
    copyChanged(to.boxes.data() + first, input.boxes.data() + first, kMaskBits, changed);
    if (!input.filters.empty())
      copyChanged(to.filters.data() + first, input.filters.data() + first, kMaskBits, changed);
  }
  std::copy_n(input.boxes.data() + first, end - first, to.boxes.data() + first);
  if (!input.filters.empty())
    std::copy_n(input.filters.data() + first, end - first, to.filters.data() + first);
}

void LastScene::keep() noexcept {
  next().isWhole = true;
  last_ = 1 - last_;
}

StepInput LastScene::get() const {
  return {viewOf(last().boxes), viewOf(last().filters), {}, last().maxPairs};
}

std::size_t LastScene::memoryBytes() const {
  std::size_t bytes = 0;
  for (const Copy& copy : copies_)
    bytes += copy.boxes.capacity() * sizeof(Aabb) + copy.filters.capacity() * sizeof(Filter) +
             copy.changed.capacity() * sizeof(std::uint64_t);
  return bytes;
}

}  // namespace lbvh

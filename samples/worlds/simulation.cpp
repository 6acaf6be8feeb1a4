// SPDX-License-Identifier: Zlib
#include "worlds/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "broadphase/pair_finder.h"
#include "support/bit_hash.h"
#include "support/random.h"

namespace worlds {
namespace {

constexpr std::uint32_t kSide = 3;   // boxes side by side above the ground
constexpr float kGroundReach = 100;  // m
constexpr float kGroundDepth = 2;    // m; more than a box falls in a step
constexpr float kApart = 2;          // m, distance between two worlds in sideBySide()

/// The start position of box i of a world. Boxes are in layers of nine, from the ground up.
Vector startOf(std::uint32_t i, Random& random) {
  const auto cell = [&](std::uint32_t place) {
    const float shift = static_cast<float>(random.between(-0.4f, 0.4f));
    return (static_cast<float>(place % kSide) - 1) * 1.1f + shift;
  };
  const float x = cell(i);
  const float z = cell(i / kSide);
  return {{x, 1 + static_cast<float>(i / (kSide * kSide)) * 1.2f, z}};
}

Vector halfSize(Random& random) {
  Vector half;
  for (float& side : half.at) side = static_cast<float>(random.between(0.15f, 0.4f));
  return half;
}

std::vector<lbvh::Pair> sortedPairs(std::vector<lbvh::Pair> pairs) {
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace

Simulation::Simulation(Space& space, const lbvh::DeviceOptions& options, std::uint32_t worlds,
                       std::uint32_t boxes)
    : space_(space), finder_(options), boxes_(boxes) {
  scene_.boxCapacity = std::size_t{worlds} * boxes + 1;
  scene_.worldCount = worlds;
  Random random(1);
  std::vector<Vector> positions, halves;
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i + 1 < scene_.boxCapacity; ++i) {
    positions.push_back(startOf(i % boxes, random));
    halves.push_back(halfSize(random));
    ids.push_back(i / boxes);
  }
  positions.push_back({{0, -kGroundDepth / 2, 0}});
  halves.push_back({{kGroundReach, kGroundDepth / 2, kGroundReach}});
  ids.push_back(lbvh::kAllWorlds);
  std::vector<std::uint8_t> movable(scene_.boxCapacity, 1);
  movable.back() = 0;

  bodies_.position = space.put(positions);
  bodies_.velocity = space.put(std::vector<Vector>(scene_.boxCapacity));
  bodies_.half = space.put(halves);
  bodies_.movable = space.put(movable);
  bodies_.boxes = space.put(std::vector<lbvh::Aabb>(scene_.boxCapacity));
  scene_.min = {bodies_.boxes->min, sizeof(lbvh::Aabb)};
  scene_.max = {bodies_.boxes->max, sizeof(lbvh::Aabb)};
  scene_.movable = bodies_.movable;
  scene_.worlds = space.put(ids);
  request_.layout = lbvh::PairLayout::neighbours;
  finder_.reserve(scene_, request_,
                  scene_.boxCapacity / 4 + 1);  // few boxes overlap at first; step() reserves more
}

void Simulation::step() {
  for (;;) {
    space_.repeat([this] {
      space_.forEach(scene_.boxCapacity, WriteBox{bodies_});
      found_ = finder_.find(scene_, request_, space_.stream());
      space_.forEach(scene_.boxCapacity, MoveBody{bodies_, found_});
    });
    report_ = space_.get(found_.report, 1)[0];
    if (report_.errors == 0) return;
    if (report_.errors != lbvh::bitOf(lbvh::DeviceError::pairsTruncated))
      throw std::runtime_error(
          fmt::format("the search failed with error bits {:#x}", report_.errors));
    ++repeated_;
    space_.forget();
    finder_.reserve(scene_, request_, report_.pairs + report_.pairs / 2);
  }
}

std::string Simulation::whatDiffers(std::uint32_t world) {
  const std::uint32_t begin = world * boxes_;
  const auto ground = static_cast<std::uint32_t>(scene_.boxCapacity - 1);
  std::vector<lbvh::Aabb> boxes = space_.get(bodies_.boxes + begin, boxes_);
  boxes.push_back(space_.get(bodies_.boxes + ground, 1)[0]);
  for (const lbvh::Aabb& box : boxes)
    if (!(box.max[1] >= 0)) return fmt::format("world {}: a box fell through the ground", world);
  lbvh::PairFinder finder({.backend = lbvh::Backend::host, .threads = 1});
  finder.update({boxes.data(), boxes.size()});
  std::vector<lbvh::Pair> expected;
  for (const lbvh::Pair pair : finder.pairs())
    expected.push_back({begin + pair.first, pair.second == boxes_ ? ground : begin + pair.second});

  // Reads the pairs from the lists of their first boxes, and from the lists of their second boxes.
  // Does not read the ground's list, which has boxes of all worlds.
  std::vector<lbvh::Pair> forth, back;
  const auto offsets = space_.get(found_.offsets.data() + begin, boxes_ + 1);
  const auto partners =
      space_.get(found_.neighbours.data() + offsets[0], offsets[boxes_] - offsets[0]);
  for (std::uint32_t i = 0; i < boxes_; ++i)
    for (std::uint32_t k = offsets[i]; k < offsets[i + 1]; ++k) {
      const std::uint32_t partner = partners[k - offsets[0]];
      (begin + i < partner ? forth : back).push_back(lbvh::makePair(begin + i, partner));
    }
  if (forth != expected)
    return fmt::format("world {}: the search found {} pairs, PairFinder {}; they differ", world,
                       forth.size(), expected.size());
  std::erase_if(expected, [ground](lbvh::Pair pair) { return pair.second == ground; });
  if (sortedPairs(std::move(back)) != expected)
    return fmt::format("world {}: a box is missing from the list of its partner", world);
  return "";
}

std::uint64_t Simulation::hash() {
  BitHash hash;
  for (const Vector& position : space_.get(bodies_.position, scene_.boxCapacity))
    hash.add(position);
  for (const Vector& velocity : space_.get(bodies_.velocity, scene_.boxCapacity))
    hash.add(velocity);
  return hash.value();
}

std::vector<lbvh::Aabb> Simulation::sideBySide(std::uint32_t worlds) {
  std::vector<lbvh::Aabb> boxes = space_.get(bodies_.boxes, std::size_t{worlds} * boxes_);
  const auto side = static_cast<std::uint32_t>(std::ceil(std::sqrt(double(worlds))));
  for (std::uint32_t world = 0; world < worlds; ++world)
    boxes.push_back({{-kReach, -0.1f, -kReach}, {kReach, 0, kReach}});
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const std::size_t moving = std::size_t{worlds} * boxes_;
    const auto world = static_cast<std::uint32_t>(i < moving ? i / boxes_ : i - moving);
    const std::uint32_t cell[3] = {world % side, 0, world / side};
    for (const int axis : {0, 2}) {
      const float middle = (static_cast<float>(cell[axis]) - static_cast<float>(side - 1) / 2) *
                           (2 * kReach + kApart);
      boxes[i].min[axis] += middle;
      boxes[i].max[axis] += middle;
    }
  }
  return boxes;
}

}  // namespace worlds

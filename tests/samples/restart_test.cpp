// SPDX-License-Identifier: Zlib
// Tests that a restarted simulation gets the same pairs in the same order. All objects are removed
// from the broad phase and added again, as in a game that reloads a level.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "GpuLbvhBroadphase.h"
#include "scenes/scenes.h"
#include "support/random.h"

namespace {

using Frames = std::vector<std::vector<lbvh::Aabb>>;           // the boxes of all objects, by step
using Orders = std::vector<std::vector<std::pair<int, int>>>;  // the cache's array, by step

Frames record(const Scene& scene) {
  World world(makeBroadphase("gpu-lbvh", setupFor(300, {})));
  scene.build(world, {300, 1});
  Frames frames;
  for (int step = 0; step < 12; ++step) {
    world.step();
    frames.push_back(world.boxes());
  }
  return frames;
}

/// Plays recorded boxes in a broad phase, several times.
class Player {
 public:
  Player(const Frames& frames, btOverlappingPairCache* cache)
      : m_frames(frames), m_broadphase(optionsOnHost(), cache), m_numbers(frames[0].size()) {
    for (std::size_t i = 0; i < m_numbers.size(); ++i) m_numbers[i] = static_cast<int>(i);
  }
  ~Player() { m_broadphase.destroyProxies(m_proxies.data(), count(), nullptr); }

  Orders play() {
    Orders orders;
    for (int& number : m_numbers) {
      const auto [min, max] = boxOf(0, number);
      m_proxies.push_back(m_broadphase.createProxy(min, max, 0, &number, 1, -1, nullptr));
    }
    for (std::size_t step = 0; step < m_frames.size(); ++step) {
      for (const int number : m_numbers) {
        const auto [min, max] = boxOf(step, number);
        m_broadphase.setAabb(m_proxies[static_cast<std::size_t>(number)], min, max, nullptr);
      }
      m_broadphase.calculateOverlappingPairs(nullptr);
      orders.push_back(order());
    }
    return orders;
  }
  void takeOutInOrder() { takeOut(); }
  void takeOutBackwards() {
    std::reverse(m_proxies.begin(), m_proxies.end());
    takeOut();
    m_broadphase.calculateOverlappingPairs(nullptr);
  }
  void takeOutInAnyOrder() {
    Random random(5);
    for (std::size_t i = m_proxies.size(); i > 1; --i)
      std::swap(m_proxies[i - 1], m_proxies[random.below(static_cast<std::uint32_t>(i))]);
    takeOut();
  }
  void takeOutTogether() {
    m_broadphase.destroyProxies(m_proxies.data(), count(), nullptr);
    m_proxies.clear();
    m_broadphase.resetPool(nullptr);
  }

 private:
  static GpuLbvhOptions optionsOnHost() {
    GpuLbvhOptions options;
    options.backend = lbvh::Backend::host;
    return options;
  }
  int count() const { return static_cast<int>(m_proxies.size()); }
  std::pair<btVector3, btVector3> boxOf(std::size_t step, int number) const {
    const lbvh::Aabb& box = m_frames[step][static_cast<std::size_t>(number)];
    return {btVector3(box.min[0], box.min[1], box.min[2]),
            btVector3(box.max[0], box.max[1], box.max[2])};
  }
  std::vector<std::pair<int, int>> order() {
    const auto numberOf = [](const btBroadphaseProxy* proxy) {
      return *static_cast<const int*>(proxy->m_clientObject);
    };
    std::vector<std::pair<int, int>> pairs;
    const btBroadphasePairArray& array =
        m_broadphase.getOverlappingPairCache()->getOverlappingPairArray();
    for (int i = 0; i < array.size(); ++i)
      pairs.emplace_back(numberOf(array[i].m_pProxy0), numberOf(array[i].m_pProxy1));
    return pairs;
  }
  void takeOut() {
    for (btBroadphaseProxy* proxy : m_proxies) m_broadphase.destroyProxy(proxy, nullptr);
    m_proxies.clear();
  }

  const Frames& m_frames;
  GpuLbvhBroadphase m_broadphase;
  std::vector<int> m_numbers;  ///< the clients of the proxies
  std::vector<btBroadphaseProxy*> m_proxies;
};

TEST(Restart, GivesTheSamePairsInTheSameOrder) {
  constexpr std::pair<const char*, void (Player::*)()> kWays[] = {
      {"in order", &Player::takeOutInOrder},
      {"backwards", &Player::takeOutBackwards},
      {"in any order", &Player::takeOutInAnyOrder},
      {"together", &Player::takeOutTogether}};
  for (const Scene& scene : scenes()) {
    const Frames frames = record(scene);
    btHashedOverlappingPairCache hashed;
    for (btOverlappingPairCache* cache : {static_cast<btOverlappingPairCache*>(nullptr),
                                          static_cast<btOverlappingPairCache*>(&hashed)}) {
      Player player(frames, cache);
      const Orders first = player.play();
      EXPECT_FALSE(first.back().empty());
      for (const auto& [name, takeOut] : kWays) {
        SCOPED_TRACE(std::string(scene.name) + ", " + name);
        (player.*takeOut)();
        EXPECT_EQ(player.play(), first);
      }
    }
  }
}

}  // namespace

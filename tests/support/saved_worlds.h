// SPDX-License-Identifier: Zlib
// Shared by the tests that save and restore worlds. Records sample scenes whose objects appear,
// move and disappear. Puts a broad phase into the state of any recorded step.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "GpuLbvhBroadphase.h"
#include "scenes/scenes.h"
#include "skin_hook.h"
#include "support/random.h"

namespace saved_worlds {

/// What a program saves of one object.
struct Saved {
  int id;
  btVector3 min, max;
  int group, mask;
};
/// What a program saves of a world, sorted by id.
using Save = std::vector<Saved>;
/// The pairs in the cache's array, as ids.
using Order = std::vector<std::pair<int, int>>;

/// Plays a scene, and saves the world after each step. Each object is left out for five steps, and
/// then returns as a new object, with an id larger than all previous ids.
inline std::vector<Save> record(const Scene& scene, int objects, int steps) {
  constexpr int kLength = 5, kPhases = 11;
  World world(makeBroadphase("gpu-lbvh", setupFor(objects, {})));
  scene.build(world, {objects, 1});
  std::vector<Save> saves;
  for (int step = 0; step < steps; ++step) {
    world.step();
    Save save;
    const btCollisionObjectArray& all = world.bullet().getCollisionObjectArray();
    for (int i = 0; i < all.size(); ++i) {
      const btBroadphaseProxy* proxy = all[i]->getBroadphaseHandle();
      const int number = proxy->m_uniqueId, absent = number * 7 % kPhases, phase = step / kLength;
      if (phase == absent) continue;
      const int id = phase > absent ? number + 100000 * (absent + 1) : number;
      save.push_back({id, proxy->m_aabbMin, proxy->m_aabbMax, proxy->m_collisionFilterGroup,
                      proxy->m_collisionFilterMask});
    }
    std::sort(save.begin(), save.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    saves.push_back(save);
  }
  return saves;
}

/// The pairs of a saved world by brute force, sorted.
inline Order bruteForce(const Save& save) {
  Order order;
  for (std::size_t i = 0; i < save.size(); ++i)
    for (std::size_t j = i + 1; j < save.size(); ++j) {
      const Saved &a = save[i], &b = save[j];
      bool isPair = (a.group & b.mask) != 0 && (b.group & a.mask) != 0;
      for (int axis = 0; axis < 3; ++axis)
        isPair = isPair && a.min[axis] <= b.max[axis] && b.min[axis] <= a.max[axis];
      if (isPair) order.emplace_back(a.id, b.id);
    }
  return order;
}

/// How the pairs get a fixed order: by our option in each step, or by Bullet's option when the
/// pairs are visited. Bullet's option is used with our cache or with Bullet's.
enum class Settled { bySteps, byVisits, byVisitsOfBulletsCache };

/// A program that restores saved worlds in its broad phase, and continues from there.
class Program {
 public:
  explicit Program(GpuLbvhOptions options, Settled settled = Settled::bySteps)
      : m_settled(settled),
        m_broadphase(with(options, settled),
                     settled == Settled::byVisitsOfBulletsCache ? &m_cache : nullptr) {}
  ~Program() { clear(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Restores a saved world from scratch. The objects get new ids, in the order of the saved ids.
  void loadInOrder(const Save& save) {
    clear();
    for (const Saved& one : save) create(one);
  }
  /// Restores a saved world from scratch, with the saved ids. Creates the objects in random order.
  void loadInAnyOrder(Save save, Random& random) {
    clear();
    for (std::size_t i = save.size(); i > 1; --i)
      std::swap(save[i - 1], save[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
    for (const Saved& one : save) createWithId(one);
  }
  /// Changes the world to the state of another step, later or earlier.
  /// @param withIds whether new objects get the saved ids; otherwise each gets the next id
  void change(const Save& save, bool withIds) {
    std::map<int, Saved> wanted;
    for (const Saved& one : save) wanted.emplace(one.id, one);
    for (auto it = m_proxies.begin(); it != m_proxies.end();) {
      const bool stays = wanted.count(it->first) == 1;
      if (!stays) m_broadphase.destroyProxy(it->second, nullptr);
      it = stays ? std::next(it) : m_proxies.erase(it);
    }
    for (const Saved& one : save) {
      const auto proxy = m_proxies.find(one.id);
      if (proxy != m_proxies.end())
        m_broadphase.setAabb(proxy->second, one.min, one.max, nullptr);
      else if (withIds)
        createWithId(one);
      else
        create(one);
    }
  }
  /// Steps, and returns the pairs in the fixed order, as saved ids.
  Order step() {
    m_broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_STREQ(m_broadphase.error(), "");
    std::map<const btBroadphaseProxy*, int> ids;
    for (const auto& [id, proxy] : m_proxies) ids[proxy] = id;
    Order order;
    for (const btBroadphasePair& pair : visited())
      order.emplace_back(ids.at(pair.m_pProxy0), ids.at(pair.m_pProxy1));
    return order;
  }
  const lbvh::Stats& stats() const { return m_broadphase.stats(); }

 private:
  static GpuLbvhOptions with(GpuLbvhOptions options, Settled settled) {
    options.sortsPairs = settled == Settled::bySteps;
    return options;
  }
  std::vector<btBroadphasePair> visited() {
    btOverlappingPairCache& cache = *m_broadphase.getOverlappingPairCache();
    if (m_settled == Settled::bySteps) {
      const btBroadphasePair* pairs = cache.getOverlappingPairArrayPtr();
      return {pairs, pairs + cache.getNumOverlappingPairs()};
    }
    struct Visits : btOverlapCallback {
      bool processOverlap(btBroadphasePair& pair) override {
        pairs.push_back(pair);
        return false;
      }
      std::vector<btBroadphasePair> pairs;
    } visits;
    btDispatcherInfo info;
    info.m_deterministicOverlappingPairs = true;
    cache.processAllOverlappingPairs(&visits, nullptr, info);
    std::reverse(visits.pairs.begin(), visits.pairs.end());  // Bullet's order is descending
    return visits.pairs;
  }
  void clear() {
    for (const auto& one : m_proxies) m_broadphase.destroyProxy(one.second, nullptr);
    m_proxies.clear();
    m_broadphase.resetPool(nullptr);
  }
  void create(const Saved& one) {
    m_proxies[one.id] =
        m_broadphase.createProxy(one.min, one.max, 0, nullptr, one.group, one.mask, nullptr);
  }
  void createWithId(const Saved& one) {
    EXPECT_TRUE(m_broadphase.setNextUniqueId(one.id));
    create(one);
    EXPECT_EQ(m_proxies[one.id]->m_uniqueId, one.id);
  }

  const Settled m_settled;
  btHashedOverlappingPairCache m_cache;
  GpuLbvhBroadphase m_broadphase;
  std::map<int, btBroadphaseProxy*> m_proxies;  ///< by saved id
};

constexpr int kSteps = 60;   ///< steps of a recording
constexpr int kGoesOn = 20;  ///< steps for which a restored world continues

/// A recorded scene, and the order of the pairs in each step.
struct Recorded {
  Recorded(const Scene& scene, int objects)
      : name(std::string(scene.name) + " of " + std::to_string(objects)),
        saves(record(scene, objects, kSteps)) {
    Program program(lbvh::Options{});
    for (const Save& save : saves) {
      program.change(save, true);
      orders.push_back(program.step());
    }
  }
  const Save& save(int step) const { return saves[static_cast<std::size_t>(step)]; }
  /// Plays some steps.
  /// @param withIds whether new objects get their saved ids; otherwise each gets the next id
  void play(Program& program, int from, int steps, bool withIds) const {
    for (int step = from; step < from + steps; ++step) {
      program.change(save(step), withIds);
      program.step();
    }
  }

  std::string name;
  std::vector<Save> saves;
  std::vector<Order> orders;
};

/// The number of ways to restore a world: into a new or a used broad phase, each with new or saved
/// ids, and by rolling back.
constexpr int kWays = 5;

/// @return whether the objects have the saved ids; otherwise they have new ids in the same order
inline bool restore(Program& program, const Recorded& one, const Recorded& another, int from,
                    int way, Random& random) {
  if (way == 1 || way == 3) another.play(program, random.below(kSteps - 3), 3, false);
  if (way < 2) {
    program.loadInOrder(one.save(from));
  } else {
    program.loadInAnyOrder(one.save(from), random);
  }
  if (way == 4) {
    one.play(program, from, 1 + random.below(kGoesOn), true);
    program.change(one.save(from), true);
  }
  return way >= 2;
}

/// Restores a random step in a random way, and continues. Each step must have the recorded pairs in
/// the recorded order.
inline void restoreAndGoOn(const GpuLbvhOptions& options, const Recorded& one,
                           const Recorded& another, Random& random) {
  const int from = random.below(kSteps - kGoesOn), way = random.below(kWays);
  SCOPED_TRACE(one.name + ", step " + std::to_string(from) + ", way " + std::to_string(way));
  const auto settled = static_cast<Settled>(std::max(0, random.below(5) - 2));
  Program program(options, settled);
  const bool withIds = restore(program, one, another, from, way, random);
  for (int step = from; step <= from + kGoesOn; ++step) {
    if (step > from) program.change(one.save(step), withIds);
    ASSERT_EQ(program.step(), one.orders[static_cast<std::size_t>(step)]) << "in step " << step;
  }
  EXPECT_EQ(program.stats().backend == "host", options.backend == lbvh::Backend::host);
}

/// Returns random options, and sets a random skin. Neither may change the pairs.
inline GpuLbvhOptions randomOptions(lbvh::Backend backend, Random& random) {
  const char* const skins[] = {"always", "never", "automatic"};
  lbvh::test::forceSkin(skins[random.below(3)]);
  GpuLbvhOptions options;
  options.backend = backend;
  options.threads = random.below(2) == 0 ? 1 : 3;
  if (random.below(4) == 0) options.hierarchy = lbvh::Hierarchy::binary;
  return options;
}

}  // namespace saved_worlds

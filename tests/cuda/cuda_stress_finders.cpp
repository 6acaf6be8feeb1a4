// SPDX-License-Identifier: Zlib
// The parts of cuda_stress that use PairFinder. They compare whole updates and their deltas with
// the host's. One part runs while the memory hog runs. The other part uses two threads, while a
// third thread synchronises the device in a loop.
#include <array>
#include <memory>

#include "broadphase/pair_finder.h"
#include "cuda_stress.h"
#include "support.h"

namespace lbvh::stress {
namespace {

using test::Boxes;
using test::view;

/// A hash that depends on the order of the pairs.
std::uint64_t hashOf(View<const Pair> pairs) {
  std::uint64_t hash = pairs.size();
  for (const Pair pair : pairs) {
    hash = (hash ^ (std::uint64_t{pair.first} << 32 | pair.second)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}

struct Hashes {
  std::uint64_t pairs, added, removed;
};

Hashes hashesOf(PairFinder& finder) {
  return {hashOf(finder.pairs()), hashOf(finder.added()), hashOf(finder.removed())};
}

PairFinder finderOn(Backend backend) {
  Options options;
  options.backend = backend;
  return PairFinder(options);
}

/// A cycle of frames. Between frames some boxes move, and one becomes another object.
class Scene {
 public:
  static constexpr std::size_t kFrames = 6;

  Scene(std::size_t n, std::uint32_t seed, bool stretched = false) {
    test::Random random(seed);
    frames_[0] = uniformBoxes(n, stretched, random);
    for (std::size_t frame = 1; frame < kFrames; ++frame) {
      const Boxes other = uniformBoxes(n, stretched, random);
      frames_[frame] = frames_[frame - 1];
      for (std::size_t i = 0; i < n / 10 + 1; ++i) {
        const std::uint32_t at = random.below(static_cast<std::uint32_t>(n));
        frames_[frame][at] = other[at];
      }
    }
    PairFinder host = finderOn(Backend::host);
    // Frame 0 runs again at the end, to get its delta relative to the last frame.
    for (std::size_t step = 0; step <= kFrames; ++step) {
      update(host, step);
      wanted_[step % kFrames] = hashesOf(host);
    }
  }

  void update(PairFinder& finder, std::size_t step) const {
    const Boxes& boxes = frames_[step % kFrames];
    finder.replaceObject(static_cast<std::uint32_t>(step % kFrames * 7 % boxes.size()));
    finder.update(view(boxes));
  }

  /// Compares the finder's last update with the host's, and reports differences to `rounds`.
  void check(PairFinder& finder, std::size_t step, bool spoil, Rounds& rounds) const {
    const Hashes& wanted = wanted_[step % kFrames];
    Hashes found = hashesOf(finder);
    if (spoil) {
      test::Pairs pairs = test::toVector(finder.pairs());
      pairs.at(pairs.size() / 2).second ^= 1u << 7;
      found.pairs = hashOf(view(pairs));
    }
    std::string wrong;
    if (found.pairs != wanted.pairs) wrong += " pairs";
    // The first update has no update before it, so all of its pairs are added.
    if (found.added != (step == 0 ? wanted.pairs : wanted.added)) wrong += " added";
    if (step > 0 && found.removed != wanted.removed) wrong += " removed";
    if (!wrong.empty())
      rounds.differs(std::to_string(frames_[0].size()) + " boxes, frame " +
                     std::to_string(step % kFrames) + ", on " + finder.stats().backend +
                     ": wrong lists:" + wrong);
    if (finder.stats().backend == "host") rounds.endedOnHost(finder.stats().reason);
  }

 private:
  std::array<Boxes, kFrames> frames_;
  std::array<Hashes, kFrames> wanted_{};
};

/// Calls cudaDeviceSynchronize in a loop during its lifetime.
class Synchroniser {
 public:
  Synchroniser() : thread_([this] { run(); }) {}
  ~Synchroniser() {
    isOver_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::string stop() {
    isOver_ = true;
    thread_.join();
    return std::to_string(calls_) + " calls of cudaDeviceSynchronize, " + std::to_string(refused_) +
           " refused";
  }

 private:
  void run() {
    while (!isOver_) {
      ++calls_;
      if (!synchroniseDevice()) ++refused_;
      std::this_thread::yield();
    }
  }

  std::atomic<bool> isOver_{false};
  long calls_ = 0, refused_ = 0;
  std::thread thread_;  ///< the last member, because it uses the others
};

}  // namespace

Outcome stressFinders(const Load& load) {
  std::vector<Scene> scenes;
  std::vector<PairFinder> finders;
  for (const std::size_t n : load.sizes)
    for (const bool stretched : {false, true}) {
      scenes.emplace_back(n, 103, stretched);
      finders.push_back(finderOn(Backend::cuda));
    }
  MemoryHog hog(64 * load.sizes.back());
  Rounds rounds(load);
  bool spoil = false;
  for (std::size_t round = 0; rounds.next(spoil); ++round) {
    const std::size_t which = round % scenes.size(), step = round / scenes.size();
    scenes[which].update(finders[which], step);
    scenes[which].check(finders[which], step, spoil, rounds);
  }
  const long passes = hog.stop();
  return rounds.outcome("the memory hog went " + std::to_string(passes) +
                        " times through its memory");
}

// A finder records its graphs in its first steps, so each thread often makes a new finder.
Outcome stressThreads(const Load& load) {
  constexpr std::size_t kStepsOfAFinder = 2 * Scene::kFrames + 3;
  const std::size_t n = load.sizes.front() / 8 + 1;
  const std::array<Scene, 2> scenes{Scene(n, 104), Scene(n + n / 3, 105)};
  std::array<std::string, 2> errors;
  Rounds rounds(load);
  std::string disturbance;
  {
    Synchroniser synchroniser;
    const auto run = [&](std::size_t which) {
      try {
        bool spoil = false, isOver = false;
        while (!isOver) {
          PairFinder finder = finderOn(Backend::cuda);
          for (std::size_t step = 0; step < kStepsOfAFinder; ++step) {
            isOver = !rounds.next(spoil);
            if (isOver) break;
            scenes[which].update(finder, step);
            scenes[which].check(finder, step, spoil, rounds);
          }
        }
      } catch (const std::exception& error) {
        errors[which] = error.what();
      }
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    disturbance = synchroniser.stop();
  }
  for (const std::string& error : errors)
    if (!error.empty()) rounds.differs("a thread ended: " + error);
  return rounds.outcome(disturbance);
}

}  // namespace lbvh::stress

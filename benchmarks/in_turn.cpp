// SPDX-License-Identifier: Zlib
// in_turn: actors move one after another among resting boxes. After its move, each actor queries
// its surroundings, as characters and planners do. A ray or a box query sees all earlier moves. Our
// broad phase and Bullet's run their frames in turn. Prints milliseconds per frame.
#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>
#include <GpuLbvhBroadphase.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "count_hits.h"
#include "support/command_line.h"
#include "support/random.h"
#include "support/timing.h"

namespace {

struct Settings {
  int resting = 5000, actors = 200, sweeps = 5, boxes = 1, frames = 40;
  bool neverSteps = false;
};

/// Boxes with sides of 0.4 to 4 on a floor, one per nine square units. Actors pair with all
/// objects, resting boxes only with actors.
class Level {
 public:
  Level(btBroadphaseInterface& broadphase, const Settings& settings)
      : settings_(settings), broadphase_(broadphase) {
    const auto side = btScalar(3 * std::sqrt(settings.resting + settings.actors / 20.0));
    for (int i = 0; i < settings.resting; ++i) {
      const btVector3 at = place(side), half = around(1.1f, 0.9f);
      create(at, half, 2, ~2);
    }
    for (int i = 0; i < settings.actors; ++i) {
      at_.push_back(place(side));
      actors_.push_back(create(at_.back(), kHalf, 1, -1));
    }
    broadphase_.calculateOverlappingPairs(nullptr);
  }
  ~Level() {
    for (btBroadphaseProxy* proxy : all_) broadphase_.destroyProxy(proxy, nullptr);
  }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  double frame() {
    const Stopwatch watch;
    for (std::size_t i = 0; i < actors_.size(); ++i) {
      at_[i] += around(0, 0.1f) * kFloor;
      broadphase_.setAabb(actors_[i], at_[i] - kHalf, at_[i] + kHalf, nullptr);
      look(at_[i]);
    }
    if (!settings_.neverSteps) broadphase_.calculateOverlappingPairs(nullptr);
    return watch.milliseconds();
  }
  std::size_t hits() const { return hits_; }

 private:
  void look(const btVector3& from) {
    for (int k = 0; k < settings_.sweeps; ++k) {
      const btVector3 way = around(0, 3) * kFloor - btVector3(0, 1, 0), half(0.4f, 0.4f, 0.4f);
      CountRay ray(way);
      broadphase_.rayTest(from, from + way, ray, -half, half);
      hits_ += ray.hits;
    }
    for (int k = 0; k < settings_.boxes; ++k) {
      CountBoxes found;
      broadphase_.aabbTest(from - kHalf, from + kHalf, found);
      hits_ += found.hits;
    }
  }
  btBroadphaseProxy* create(const btVector3& at, const btVector3& half, int group, int mask) {
    all_.push_back(broadphase_.createProxy(at - half, at + half, 0, this, group, mask, nullptr));
    return all_.back();
  }
  btVector3 around(btScalar middle, btScalar reach) {
    return btVector3(middle, middle, middle) + random_.inCube() * reach;
  }
  btVector3 place(btScalar side) { return around(0.5f, 0.5f) * btVector3(side, 3, side); }

  const btVector3 kFloor{1, 0, 1};
  const btVector3 kHalf{0.4f, 0.9f, 0.4f};
  const Settings& settings_;
  btBroadphaseInterface& broadphase_;
  Random random_{1};
  std::vector<btBroadphaseProxy*> all_, actors_;
  std::vector<btVector3> at_;
  std::size_t hits_ = 0;
};

int run(const Settings& settings) {
  lbvh::Options options;
  options.threads = 1;
  options.backend = lbvh::Backend::host;
  GpuLbvhBroadphase ours(options);
  btDbvtBroadphase theirs;
  Level a(ours, settings), b(theirs, settings);
  std::vector<double> timesA, timesB;
  for (int frame = 0; frame < settings.frames; ++frame) {
    timesA.push_back(a.frame());
    timesB.push_back(b.frame());
  }
  std::printf("summary resting=%d actors=%d gpu_lbvh_ms=%.4f dbvt_ms=%.4f hits=%zu dbvt_hits=%zu\n",
              settings.resting, settings.actors, median(timesA), median(timesB), a.hits(),
              b.hits());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Moves actors one after another. Each queries its surroundings after its move.",
                   "in_turn");
  line.add("RESTING", settings.resting, "number of resting boxes").range(0, 10000000).showDefault();
  line.add("--actors", settings.actors, "number of actors").range(1, 1000000).showDefault();
  line.add("--sweeps", settings.sweeps, "box sweeps after each move").range(0, 1000).showDefault();
  line.add("--boxes", settings.boxes, "box queries after each move").range(0, 1000).showDefault();
  line.add("--frames", settings.frames, "number of frames").range(1, 1000000).showDefault();
  line.addFlag("--never-step", settings.neverSteps, "do not find pairs");
  return runProgram(line, argc, argv, [&settings] { return run(settings); });
}

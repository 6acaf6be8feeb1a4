// SPDX-License-Identifier: Zlib
// ghosts: measures steps of many boxes, some of which are ghost objects. Each step moves all boxes,
// or with --others-rest only the ghosts. Then it moves each ghost once more, as a character
// controller does. Prints the median milliseconds per step of our broad phase and of Bullet's. The
// unit boxes are in a cube. Each move is up to 0.05 per axis.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <GpuLbvhBroadphase.h>
#include <btBulletCollisionCommon.h>
#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "support/command_line.h"
#include "support/random.h"
#include "support/timing.h"

namespace {

class Crowd {
 public:
  Crowd(btBroadphaseInterface& broadphase, int boxes, int ghosts) : broadphase_(broadphase) {
    broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&callback_);
    const double side = std::cbrt(boxes * 8.0 / 6);
    for (int i = 0; i < boxes; ++i) {
      const bool isGhost = i % (boxes / ghosts) == 0;
      if (isGhost)
        objects_.push_back(std::make_unique<btPairCachingGhostObject>());
      else
        objects_.push_back(std::make_unique<btCollisionObject>());
      const btVector3 at(unit() * btScalar(side), unit() * btScalar(side), unit() * btScalar(side));
      proxies_.push_back(broadphase.createProxy(at, at + btVector3(1, 1, 1), 0,
                                                objects_.back().get(), 1, -1, nullptr));
      if (isGhost) ghosts_.push_back(proxies_.back());
    }
    broadphase.calculateOverlappingPairs(nullptr);
  }
  ~Crowd() {
    for (btBroadphaseProxy* proxy : proxies_) broadphase_.destroyProxy(proxy, nullptr);
  }

  double step(bool othersRest) {
    const Stopwatch watch;
    for (btBroadphaseProxy* proxy : othersRest ? ghosts_ : proxies_) move(proxy);
    broadphase_.calculateOverlappingPairs(nullptr);
    for (btBroadphaseProxy* proxy : ghosts_) move(proxy);
    return watch.milliseconds();
  }

 private:
  btScalar unit() { return btScalar(random_.unit()); }
  void move(btBroadphaseProxy* proxy) {
    const btVector3 by = btVector3(unit(), unit(), unit()) - btVector3(1, 1, 1) / 2;
    const btVector3 to = proxy->m_aabbMin + by / 10;
    broadphase_.setAabb(proxy, to, to + btVector3(1, 1, 1), nullptr);
  }

  btBroadphaseInterface& broadphase_;
  btGhostPairCallback callback_;
  Random random_{1};
  std::vector<std::unique_ptr<btCollisionObject>> objects_;
  std::vector<btBroadphaseProxy*> proxies_, ghosts_;
};

int run(int boxes, int most, bool othersRest) {
  std::printf("%d boxes, one host thread, milliseconds a step, medians of 20\n", boxes);
  for (int ghosts = most > 0 ? most : 1; ghosts <= (most > 0 ? most : 1000); ghosts *= 10) {
    lbvh::Options options;
    options.threads = 1;
    options.backend = lbvh::Backend::host;
    GpuLbvhBroadphase ours(options);
    btDbvtBroadphase theirs;
    Crowd a(ours, boxes, ghosts), b(theirs, boxes, ghosts);
    std::vector<double> timesA, timesB;
    for (int step = 0; step < 20; ++step) {
      timesA.push_back(a.step(othersRest));
      timesB.push_back(b.step(othersRest));
    }
    std::printf("%5d ghosts: gpu-lbvh %8.2f, dbvt %8.2f\n", ghosts, median(timesA), median(timesB));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int boxes = 12000, ghosts = 0;
  bool othersRest = false;
  CommandLine line("Moves many boxes, some of them ghosts, with our broad phase and Bullet's.",
                   "ghosts");
  line.add("BOXES", boxes, "number of boxes").range(1000, 1000000).showDefault();
  line.add("--ghosts", ghosts, "number of ghosts; 0 runs with 1, 10, 100 and 1000")
      .range(0, 1000000)
      .showDefault();
  line.addFlag("--others-rest", othersRest, "only the ghosts move");
  return runProgram(line, argc, argv, [&] {
    if (ghosts > boxes)
      throw UsageError(fmt::format("--ghosts: {}, but there are only {} boxes", ghosts, boxes));
    return run(boxes, ghosts, othersRest);
  });
}

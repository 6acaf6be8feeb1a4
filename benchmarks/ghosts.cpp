// SPDX-License-Identifier: Zlib
// ghosts: moves many boxes, some of them ghost objects, and runs a step; then moves each ghost once
// more, as a character does. Prints milliseconds for our broad phase and Bullet's. Unit boxes in a
// cube, moving up to 0.05 a step and axis.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <GpuLbvhBroadphase.h>
#include <btBulletCollisionCommon.h>

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

  double step() {
    const Stopwatch watch;
    for (btBroadphaseProxy* proxy : proxies_) move(proxy);
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

int run(int boxes) {
  std::printf("%d boxes, one host thread, milliseconds a step, medians of 20\n", boxes);
  for (const int ghosts : {1, 10, 100, 1000}) {
    lbvh::Options options;
    options.threads = 1;
    options.backend = lbvh::Backend::host;
    GpuLbvhBroadphase ours(options);
    btDbvtBroadphase theirs;
    Crowd a(ours, boxes, ghosts), b(theirs, boxes, ghosts);
    std::vector<double> timesA, timesB;
    for (int step = 0; step < 20; ++step) {
      timesA.push_back(a.step());
      timesB.push_back(b.step());
    }
    std::printf("%5d ghosts: gpu-lbvh %8.2f, dbvt %8.2f\n", ghosts, median(timesA), median(timesB));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int boxes = 12000;
  CLI::App app("Moves many boxes, some of them ghosts, with our broad phase and Bullet's.",
               "ghosts");
  app.add_option("BOXES", boxes, "how many")
      ->check(CLI::Range(1000, 1000000))
      ->capture_default_str();
  return runProgram(app, argc, argv, [&boxes] { return run(boxes); });
}

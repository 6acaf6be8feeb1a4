// SPDX-License-Identifier: Zlib
// one_moves: times a large world in which one box moves per step, through Bullet's interface.
// Measures our broad phase and Bullet's in turn. Times two kinds of steps. The first kind calls
// setAabb for all objects, as Bullet does. The second kind calls it only for the moved object, as a
// program may do. Also times setAabb for a box that did not change. The boxes come from walk.h.
// `announced` is our broad phase with GpuLbvhOptions::announcedFilters. With --replace, the second
// kind of step does not call setAabb, but destroys the moved object and creates it again.
#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>
#include <GpuLbvhBroadphase.h>

#include <cstdio>
#include <vector>

#include "support/command_line.h"
#include "support/timing.h"
#include "walk.h"

namespace {

/// Number of steps before timing begins. btDbvtBroadphase needs about a hundred steps to optimise
/// its tree of resting boxes.
constexpr int kSettling = 110;

struct Corners {
  btVector3 low, high;
};

class Crowd {
 public:
  Crowd(btBroadphaseInterface& broadphase, std::vector<Corners>& boxes)
      : broadphase_(broadphase), boxes_(boxes) {
    for (Corners& box : boxes_) proxies_.push_back(create(box));
    broadphase_.calculateOverlappingPairs(nullptr);
  }
  ~Crowd() {
    RemoveAll all;
    broadphase_.getOverlappingPairCache()->processAllOverlappingPairs(&all, nullptr);
    for (btBroadphaseProxy* proxy : proxies_) broadphase_.destroyProxy(proxy, nullptr);
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void setAll() {
    for (std::size_t i = 0; i < proxies_.size(); ++i) set(i);
  }
  void set(std::size_t i) {
    broadphase_.setAabb(proxies_[i], boxes_[i].low, boxes_[i].high, nullptr);
  }
  void replace(std::size_t i) {
    broadphase_.destroyProxy(proxies_[i], nullptr);
    proxies_[i] = create(boxes_[i]);
  }
  void findPairs() { broadphase_.calculateOverlappingPairs(nullptr); }
  int pairs() const { return broadphase_.getOverlappingPairCache()->getNumOverlappingPairs(); }

 private:
  struct RemoveAll : btOverlapCallback {
    bool processOverlap(btBroadphasePair&) override { return true; }
  };

  btBroadphaseProxy* create(Corners& box) {
    return broadphase_.createProxy(box.low, box.high, BOX_SHAPE_PROXYTYPE, &box,
                                   btBroadphaseProxy::DefaultFilter, btBroadphaseProxy::AllFilter,
                                   nullptr);
  }

  btBroadphaseInterface& broadphase_;
  std::vector<Corners>& boxes_;
  std::vector<btBroadphaseProxy*> proxies_;
};

/// A broad phase in two worlds. In one world setAabb is called for all boxes, in the other only for
/// the moved box.
struct Contestant {
  const char* name;
  Crowd asBullet, alone;
  std::vector<double> setAll = {}, stepOfAll = {}, setUnchanged = {}, stepOfOne = {};
};

/// Times a step of both worlds, after box `moved` has moved.
/// @param replaces whether the world that sets only this box replaces the object instead
void step(Contestant& one, std::size_t moved, bool replaces) {
  const Stopwatch all;
  one.asBullet.setAll();
  one.setAll.push_back(all.milliseconds());
  one.asBullet.findPairs();
  one.stepOfAll.push_back(all.milliseconds());
  const Stopwatch unchanged;
  one.asBullet.setAll();
  one.setUnchanged.push_back(unchanged.milliseconds());
  const Stopwatch alone;
  if (replaces)
    one.alone.replace(moved);
  else
    one.alone.set(moved);
  one.alone.findPairs();
  one.stepOfOne.push_back(alone.milliseconds());
}

void print(const Contestant& one, std::size_t boxes) {
  std::printf(
      "summary broadphase=%s objects=%zu steps=%zu all_us=%.3f all_p95_us=%.3f alone_us=%.3f "
      "alone_p95_us=%.3f set_all_us=%.3f set_unchanged_ns=%.3f pairs=%d\n",
      one.name, boxes, one.setAll.size(), 1e3 * median(one.stepOfAll),
      1e3 * percentile(one.stepOfAll, 0.95), 1e3 * median(one.stepOfOne),
      1e3 * percentile(one.stepOfOne, 0.95), 1e3 * median(one.setAll),
      1e6 * median(one.setUnchanged) / double(boxes), one.asBullet.pairs());
}

int run(int count, int steps, bool replaces) {
  const Walk walk(static_cast<std::uint32_t>(count), 1);
  std::vector<Corners> boxes;
  for (const lbvh::Aabb& box : walk.boxes())
    boxes.push_back({{box.min[0], box.min[1], box.min[2]}, {box.max[0], box.max[1], box.max[2]}});
  lbvh::Options options;
  options.threads = 1;
  options.backend = lbvh::Backend::host;
  GpuLbvhOptions announced = options;
  announced.announcedFilters = true;
  GpuLbvhBroadphase ours[2] = {GpuLbvhBroadphase(options), GpuLbvhBroadphase(options)};
  GpuLbvhBroadphase told[2] = {GpuLbvhBroadphase(announced), GpuLbvhBroadphase(announced)};
  btDbvtBroadphase theirs[2];
  Contestant contestants[] = {{"gpu-lbvh", {ours[0], boxes}, {ours[1], boxes}},
                              {"announced", {told[0], boxes}, {told[1], boxes}},
                              {"dbvt", {theirs[0], boxes}, {theirs[1], boxes}}};
  const std::size_t moved = boxes.size() / 2;
  const auto forget = [](Contestant& one) {
    for (auto* times : {&one.setAll, &one.stepOfAll, &one.setUnchanged, &one.stepOfOne})
      times->clear();
  };
  Random random(1);
  for (int i = -kSettling; i < steps; ++i) {
    const btVector3 by = random.inCube() * btScalar(0.05);
    boxes[moved].low += by;
    boxes[moved].high += by;
    for (Contestant& one : contestants) {
      if (i == 0) forget(one);
      step(one, moved, replaces);
    }
  }
  for (const Contestant& one : contestants) print(one, boxes.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int boxes = 100000, steps = 200;
  bool replaces = false;
  CommandLine line("Moves one of many boxes per step, with our broad phase and Bullet's.",
                   "one_moves");
  line.add("BOXES", boxes, "number of boxes").range(1, 10000000).showDefault();
  line.add("--steps", steps, "number of steps").range(1, 1000000).showDefault();
  line.addFlag("--replace", replaces,
               "destroy and create the moved object again, instead of calling setAabb only for it");
  return runProgram(line, argc, argv, [&] { return run(boxes, steps, replaces); });
}

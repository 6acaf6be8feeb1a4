// SPDX-License-Identifier: Zlib
// loading: adds many boxes to a broad phase, runs the first step, and removes the boxes again. Adds
// and removes boxes one by one, and also in bulk if the broad phase can. Prints milliseconds. The
// unit boxes are in a cube, and have about six neighbours each.
#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>
#include <GpuLbvhBroadphase.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "support/command_line.h"
#include "support/random.h"
#include "support/timing.h"

namespace {

using Proxies = std::vector<btBroadphaseProxy*>;

std::vector<GpuLbvhNewProxy> makeBoxes(int n) {
  Random random(1);
  const double side = std::cbrt(n * 8.0 / 6);
  std::vector<GpuLbvhNewProxy> boxes(static_cast<std::size_t>(n));
  for (GpuLbvhNewProxy& box : boxes) {
    box.aabbMin.setValue(btScalar(side * random.unit()), btScalar(side * random.unit()),
                         btScalar(side * random.unit()));
    box.aabbMax = box.aabbMin + btVector3(1, 1, 1);
  }
  return boxes;
}

struct Times {
  std::vector<double> create, step, destroy;
};

template <class Broadphase>
void oneByOne(Broadphase& broadphase, const std::vector<GpuLbvhNewProxy>& boxes, Times& times,
              std::size_t mostDestroyed) {
  Proxies proxies;
  const Stopwatch create;
  for (const GpuLbvhNewProxy& box : boxes)
    proxies.push_back(broadphase.createProxy(box.aabbMin, box.aabbMax, box.shapeType, box.client,
                                             box.group, box.mask, nullptr));
  times.create.push_back(create.milliseconds());
  const Stopwatch step;
  broadphase.calculateOverlappingPairs(nullptr);
  times.step.push_back(step.milliseconds());
  const std::size_t destroyed = std::min(proxies.size(), mostDestroyed);
  const Stopwatch destroy;
  for (std::size_t i = 0; i < destroyed; ++i) broadphase.destroyProxy(proxies[i], nullptr);
  times.destroy.push_back(destroy.milliseconds() * double(proxies.size()) / double(destroyed));
}

void inBulk(GpuLbvhBroadphase& broadphase, const std::vector<GpuLbvhNewProxy>& boxes,
            Times& times) {
  Proxies proxies(boxes.size());
  const int count = static_cast<int>(boxes.size());
  const Stopwatch create;
  broadphase.createProxies(boxes.data(), count, proxies.data(), nullptr);
  times.create.push_back(create.milliseconds());
  const Stopwatch step;
  broadphase.calculateOverlappingPairs(nullptr);
  times.step.push_back(step.milliseconds());
  const Stopwatch destroy;
  broadphase.destroyProxies(proxies.data(), count, nullptr);
  times.destroy.push_back(destroy.milliseconds());
}

void print(const char* name, const Times& times, double dbvt) {
  const double create = median(times.create), step = median(times.step);
  std::printf("  %-22s %10.2f %10.2f %10.2f %7.1f x %12.2f\n", name, create, step, create + step,
              dbvt / (create + step), median(times.destroy));
}

int run(int n) {
  const std::vector<GpuLbvhNewProxy> boxes = makeBoxes(n);
  Times dbvt, single, bulk;
  int pairs = 0;
  for (int round = 0; round < 3; ++round) {
    btDbvtBroadphase theirs;
    oneByOne(theirs, boxes, dbvt, 1000);
    GpuLbvhBroadphase ours;
    oneByOne(ours, boxes, single, boxes.size());
    GpuLbvhBroadphase again;
    inBulk(again, boxes, bulk);
    pairs = static_cast<int>(again.stats().pairs);
  }
  std::printf("%d boxes, %d pairs; milliseconds, medians of 3\n", n, pairs);
  std::printf("  %-22s %10s %10s %10s %9s %12s\n", "", "create", "first step", "both", "",
              "destroy all");
  const double both = median(dbvt.create) + median(dbvt.step);
  print("dbvt, one by one", dbvt, both);
  print("gpu-lbvh, one by one", single, both);
  print("gpu-lbvh, in bulk", bulk, both);
  std::printf("(dbvt: destroy all is extrapolated from the first 1000 boxes)\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int boxes = 100000;
  CommandLine line("Adds many boxes to a broad phase and removes them again.", "loading");
  line.add("BOXES", boxes, "number of boxes").range(1, 10000000).showDefault();
  return runProgram(line, argc, argv, [&boxes] { return run(boxes); });
}

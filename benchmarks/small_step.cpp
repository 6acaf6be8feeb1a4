// SPDX-License-Identifier: Zlib
// small_step: times small worlds in which almost nothing happens, through Bullet's interface.
// Measurements of our broad phase and of btDbvtBroadphase alternate. By default a few boxes move
// back and forth, usually within btDbvtBroadphase's margin. With --identical, only one of many
// identical boxes moves. With --construct, a broad phase is made for a few boxes, stepped once and
// destroyed. Prints microseconds.
#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>
#include <GpuLbvhBroadphase.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "support/command_line.h"
#include "support/timing.h"

namespace {

/// Steps are timed in groups of this many, because reading a clock takes a tenth of the shortest
/// step.
constexpr int kTogether = 10;

struct Settings {
  int boxes = 50, rounds = 500;
  double by = 0.01;
  bool areIdentical = false, constructs = false;
  std::string only;
};

/// A layer of boxes, each of which overlaps its neighbours, or boxes that are all at one place.
class Layer {
 public:
  Layer(btBroadphaseInterface& broadphase, const Settings& settings)
      : broadphase_(broadphase), isOnePlace_(settings.areIdentical), by_(btScalar(settings.by)) {
    for (int i = 0; i < settings.boxes; ++i) {
      const btVector3 at = place(i);
      proxies_.push_back(broadphase.createProxy(at, at + kSides, 0, this, 1, -1, nullptr));
    }
    broadphase.calculateOverlappingPairs(nullptr);
  }
  ~Layer() {
    for (btBroadphaseProxy* proxy : proxies_) broadphase_.destroyProxy(proxy, nullptr);
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  void step() {
    ++steps_;
    const btVector3 by(by_ * btScalar(steps_ % 5), 0, 0);
    const int moved = isOnePlace_ ? 1 : static_cast<int>(proxies_.size());
    for (int i = 0; i < moved; ++i) {
      const btVector3 at = place(i) + by;
      broadphase_.setAabb(proxies_[static_cast<std::size_t>(i)], at, at + kSides, nullptr);
    }
    broadphase_.calculateOverlappingPairs(nullptr);
  }

 private:
  btVector3 place(int i) const {
    return isOnePlace_ ? btVector3(0, 0, 0) : btVector3(btScalar(i % 10), btScalar(i / 10), 0);
  }

  const btVector3 kSides{btScalar(1.1), btScalar(1.1), 1};
  btBroadphaseInterface& broadphase_;
  const bool isOnePlace_;
  const btScalar by_;
  std::vector<btBroadphaseProxy*> proxies_;
  int steps_ = 0;
};

GpuLbvhOptions ownOptions() {
  lbvh::Options options;
  options.threads = 1;
  options.backend = lbvh::Backend::host;
  return options;
}

double microsecondsOfSteps(Layer& layer) {
  const Stopwatch watch;
  for (int k = 0; k < kTogether; ++k) layer.step();
  return 1e3 * watch.milliseconds() / kTogether;
}

template <class Make>
double microsecondsOfLife(const Settings& settings, const Make& make) {
  const Stopwatch watch;
  for (int k = 0; k < kTogether; ++k) {
    auto broadphase = make();
    const Layer layer(*broadphase, settings);
  }
  return 1e3 * watch.milliseconds() / kTogether;
}

int run(const Settings& settings) {
  const auto makeOurs = [] { return std::make_unique<GpuLbvhBroadphase>(ownOptions()); };
  const auto makeTheirs = [] { return std::make_unique<btDbvtBroadphase>(); };
  std::vector<double> ours, theirs;
  if (settings.constructs) {
    for (int round = 0; round < settings.rounds; ++round) {
      ours.push_back(microsecondsOfLife(settings, makeOurs));
      theirs.push_back(microsecondsOfLife(settings, makeTheirs));
    }
  } else {
    const auto a = makeOurs();
    const auto b = makeTheirs();
    Layer layerA(*a, settings), layerB(*b, settings);
    for (int round = 0; round < settings.rounds; ++round) {
      if (settings.only != "dbvt") ours.push_back(microsecondsOfSteps(layerA));
      if (settings.only != "gpu-lbvh") theirs.push_back(microsecondsOfSteps(layerB));
    }
  }
  std::printf("summary boxes=%d gpu_lbvh_us=%.4f dbvt_us=%.4f\n", settings.boxes, median(ours),
              median(theirs));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Steps small worlds in which almost nothing happens.", "small_step");
  line.add("BOXES", settings.boxes, "number of boxes").range(1, 1000000).showDefault();
  line.add("--rounds", settings.rounds, "number of rounds of ten steps")
      .range(1, 1000000)
      .showDefault();
  line.add("--by", settings.by,
           "boxes move up to four times this far; above 0.0125 they leave dbvt's margin")
      .range(0.0, 1e6)
      .showDefault();
  line.add("--only", settings.only, "gpu-lbvh or dbvt, for a profiler");
  line.addFlag("--identical", settings.areIdentical,
               "all boxes at one place, and one of them moves");
  line.addFlag("--construct", settings.constructs, "make a broad phase, step once, destroy it");
  return runProgram(line, argc, argv, [&settings] { return run(settings); });
}

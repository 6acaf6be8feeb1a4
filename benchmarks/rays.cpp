// SPDX-License-Identifier: Zlib
// rays: times rays against boxes at rest through Bullet's interface, with our broad phase and with
// Bullet's. Casts them before the first step, after it, and after many boxes were destroyed and
// created. At the end, our broad phase is also compared with a new instance of it that has the same
// boxes. Prints nanoseconds per ray.
#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>
#include <GpuLbvhBroadphase.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "count_hits.h"
#include "support/command_line.h"
#include "support/random.h"
#include "support/timing.h"

namespace {

struct Settings {
  int boxes = 100000, rays = 100000, replaced = 200000;
};

constexpr int kReplacedInStep = 10000, kBatch = 1000;

/// Boxes with sides of 0.2 to 1.8 in a cube, one per eight cubic units.
class Cloud {
 public:
  Cloud(std::unique_ptr<btBroadphaseInterface> broadphase, const Settings& settings)
      : side_(btScalar(2 * std::cbrt(settings.boxes))), broadphase_(std::move(broadphase)) {
    for (int i = 0; i < settings.boxes; ++i) add(anywhere(), anywhere());
  }
  /// Copies the boxes of another cloud, in the same order.
  Cloud(std::unique_ptr<btBroadphaseInterface> broadphase, const Cloud& other)
      : side_(other.side_), broadphase_(std::move(broadphase)) {
    for (btBroadphaseProxy* proxy : other.proxies_) {
      proxies_.push_back(
          broadphase_->createProxy(proxy->m_aabbMin, proxy->m_aabbMax, 0, this, 1, -1, nullptr));
    }
  }
  ~Cloud() {
    for (btBroadphaseProxy* proxy : proxies_) broadphase_->destroyProxy(proxy, nullptr);
  }
  Cloud(const Cloud&) = delete;
  Cloud& operator=(const Cloud&) = delete;

  void step() { broadphase_->calculateOverlappingPairs(nullptr); }

  /// Destroys `count` random boxes, and creates as many boxes at other places.
  void replace(int count) {
    for (int k = 0; k < count; ++k) {
      const int place = random_.below(static_cast<int>(proxies_.size()));
      btBroadphaseProxy*& gone = proxies_[static_cast<std::size_t>(place)];
      broadphase_->destroyProxy(gone, nullptr);
      gone = proxies_.back();
      proxies_.pop_back();
      add(anywhere(), anywhere());
    }
  }

  /// @return milliseconds
  double cast(int rays, Random& random) {
    const Stopwatch watch;
    for (int k = 0; k < rays; ++k) {
      const btVector3 from = random.inCube() * (side_ / 2), way = random.inCube() * 20;
      CountRay ray(way);
      broadphase_->rayTest(from, from + way, ray);
      hits_ += ray.hits;
    }
    return watch.milliseconds();
  }
  std::size_t hits() const { return hits_; }

 private:
  btVector3 anywhere() { return random_.inCube(); }
  void add(const btVector3& at, const btVector3& size) {
    const btVector3 middle = at * (side_ / 2);
    const btVector3 half = btVector3(0.5f, 0.5f, 0.5f) + size * btScalar(0.4);
    proxies_.push_back(
        broadphase_->createProxy(middle - half, middle + half, 0, this, 1, -1, nullptr));
  }

  const btScalar side_;
  const std::unique_ptr<btBroadphaseInterface> broadphase_;
  Random random_{1};
  std::vector<btBroadphaseProxy*> proxies_;
  std::size_t hits_ = 0;
};

std::unique_ptr<btBroadphaseInterface> makeOurs() {
  lbvh::Options options;
  options.threads = 1;
  options.backend = lbvh::Backend::host;
  return std::make_unique<GpuLbvhBroadphase>(options);
}

/// Casts the same rays in two clouds alternately. Prints nanoseconds per ray.
void compare(const char* when, const char* nameA, Cloud& a, const char* nameB, Cloud& b, int rays) {
  const std::size_t hitsA = a.hits(), hitsB = b.hits();
  double timeA = 0, timeB = 0;
  Random raysA(2), raysB(2);
  for (int cast = 0; cast < rays; cast += kBatch) {
    timeA += a.cast(kBatch, raysA);
    timeB += b.cast(kBatch, raysB);
  }
  const double nanoseconds = 1e6 / (std::ceil(rays / double(kBatch)) * kBatch);
  std::printf("summary when=%s %s_ns=%.1f %s_ns=%.1f ratio=%.3f hits=%zu other_hits=%zu\n", when,
              nameA, timeA * nanoseconds, nameB, timeB * nanoseconds, timeB / timeA,
              a.hits() - hitsA, b.hits() - hitsB);
}

int run(const Settings& settings) {
  Cloud ours(makeOurs(), settings), dbvt(std::make_unique<btDbvtBroadphase>(), settings);
  const auto compareBoth = [&](const char* when) {
    compare(when, "gpu_lbvh", ours, "dbvt", dbvt, settings.rays);
  };
  compareBoth("before_the_first_step");
  for (Cloud* cloud : {&ours, &dbvt}) cloud->step();
  compareBoth("after_the_first_step");
  for (Cloud* cloud : {&ours, &dbvt})
    for (int done = 0; done < settings.replaced; done += kReplacedInStep) {
      cloud->replace(std::min(kReplacedInStep, settings.replaced - done));
      cloud->step();
    }
  compareBoth("after_replacements");
  Cloud fresh(makeOurs(), ours);
  fresh.step();
  compare("beside_a_new_one", "gpu_lbvh", ours, "new", fresh, settings.rays);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Casts rays against boxes at rest.", "rays");
  line.add("BOXES", settings.boxes, "number of boxes").range(1, 10000000).showDefault();
  line.add("--rays", settings.rays, "number of rays each time, rounded up to whole thousands")
      .range(1, 1000000000)
      .showDefault();
  line.add("--replaced", settings.replaced, "number of boxes that are destroyed and created")
      .range(0, 1000000000)
      .showDefault();
  return runProgram(line, argc, argv, [&settings] { return run(settings); });
}

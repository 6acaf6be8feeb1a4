// SPDX-License-Identifier: Zlib
// The finders of replay: PairFinder itself, and any btBroadphaseInterface.
#include "support/box_finders.h"

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace {

class CoreFinder : public BoxFinder {
 public:
  explicit CoreFinder(const lbvh::Options& options) : finder_(options) {}

  /// Does not copy: the core reads the caller's boxes.
  void setBoxes(const std::vector<lbvh::Aabb>& boxes) override { boxes_ = &boxes; }

  void find() override { finder_.update({boxes_->data(), boxes_->size()}); }

  std::size_t countPairs() override { return finder_.pairs().size(); }

  PairHash pairs() override {
    PairHash hash;
    for (const lbvh::Pair pair : finder_.pairs()) hash.add(pair);
    return hash;
  }

  Space space() const override { return spaceOf(finder_.stats()); }
  const lbvh::StepStats* stats() const override { return &finder_.stats(); }

 private:
  lbvh::PairFinder finder_;
  const std::vector<lbvh::Aabb>* boxes_ = nullptr;
};

btVector3 low(const lbvh::Aabb& box) { return {box.min[0], box.min[1], box.min[2]}; }
btVector3 high(const lbvh::Aabb& box) { return {box.max[0], box.max[1], box.max[2]}; }

/// Sets the world of `setup` to the bounds of all boxes, with space for them to move. Ignores
/// coordinates beyond a million, because they would make axis-sweep's grid too coarse.
void fitWorld(BroadphaseSetup& setup, const std::vector<lbvh::Aabb>& boxes) {
  constexpr float kLargest = 1e6F;
  for (int axis = 0; axis < 3; ++axis) {
    float least = 0;
    float most = 0;
    for (const lbvh::Aabb& box : boxes) {
      for (const float x : {box.min[axis], box.max[axis]}) {
        if (!(std::abs(x) <= kLargest)) continue;
        least = std::min(least, x);
        most = std::max(most, x);
      }
    }
    const float room = (most - least) / 2 + 1;
    setup.low[axis] = least - room;
    setup.high[axis] = most + room;
  }
}

class BulletFinder : public BoxFinder {
 public:
  BulletFinder(const std::string& name, const BroadphaseSetup& setup)
      : broadphase_(makeBroadphase(name, setup)) {}

  BulletFinder(const BulletFinder&) = delete;
  BulletFinder& operator=(const BulletFinder&) = delete;

  ~BulletFinder() override {
    removeAllPairs(*broadphase_, nullptr);
    for (btBroadphaseProxy* proxy : proxies_) broadphase_->destroyProxy(proxy, nullptr);
  }

  void setBoxes(const std::vector<lbvh::Aabb>& boxes) override {
    if (proxies_.size() != boxes.size()) return createProxies(boxes);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      broadphase_->setAabb(proxies_[i], low(boxes[i]), high(boxes[i]), nullptr);
    }
  }

  void find() override {
    broadphase_->calculateOverlappingPairs(nullptr);
    const std::string error = errorOf(*broadphase_);
    if (!error.empty()) throw std::runtime_error(error);
  }

  std::size_t countPairs() override { return static_cast<std::size_t>(pairArray().size()); }

  PairHash pairs() override {
    PairHash hash;
    const btBroadphasePairArray& array = pairArray();
    for (int i = 0; i < array.size(); ++i) {
      hash.add(lbvh::makePair(indexOf(array[i].m_pProxy0), indexOf(array[i].m_pProxy1)));
    }
    return hash;
  }

  Space space() const override { return spaceOf(*broadphase_); }
  const lbvh::StepStats* stats() const override { return statsOf(*broadphase_); }

 private:
  /// Runs in the first frame only, because a file has a fixed number of objects.
  void createProxies(const std::vector<lbvh::Aabb>& boxes) {
    indices_.resize(boxes.size());
    proxies_.reserve(boxes.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      indices_[i] = static_cast<std::uint32_t>(i);
      proxies_.push_back(broadphase_->createProxy(
          low(boxes[i]), high(boxes[i]), BOX_SHAPE_PROXYTYPE, &indices_[i],
          btBroadphaseProxy::DefaultFilter, btBroadphaseProxy::AllFilter, nullptr));
    }
  }

  const btBroadphasePairArray& pairArray() {
    return broadphase_->getOverlappingPairCache()->getOverlappingPairArray();
  }

  /// A client object must not be null, so it is the address of the index, not the index itself.
  static std::uint32_t indexOf(const btBroadphaseProxy* proxy) {
    return *static_cast<const std::uint32_t*>(proxy->m_clientObject);
  }

  std::unique_ptr<btBroadphaseInterface> broadphase_;
  std::vector<std::uint32_t> indices_;
  std::vector<btBroadphaseProxy*> proxies_;
};

bool hasNan(const lbvh::Aabb& box) {
  for (int axis = 0; axis < 3; ++axis)
    if (std::isnan(box.min[axis]) || std::isnan(box.max[axis])) return true;
  return false;
}

}  // namespace

std::vector<std::string> boxFinderNames() {
  std::vector<std::string> names = {"core"};
  names.insert(names.end(), broadphaseNames().begin(), broadphaseNames().end());
  return names;
}

void requireBoxes(const std::string& name, const std::vector<lbvh::Aabb>& boxes,
                  const std::string& file) {
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (hasNan(boxes[i])) throw FileError(fmt::format("{}: box {} has a NaN", file, i));
    // A box overlaps itself unless it is inverted.
    if (name == "axis-sweep" && !overlap(boxes[i], boxes[i]))
      throw FileError(
          fmt::format("{}: axis-sweep cannot handle box {}, which has min > max", file, i));
  }
}

std::unique_ptr<BoxFinder> makeBoxFinder(const std::string& name, const lbvh::Options& options,
                                         const std::vector<lbvh::Aabb>& first) {
  if (name == "core") return std::make_unique<CoreFinder>(options);
  constexpr std::size_t kMax = std::size_t{1} << 30;
  if (first.size() > kMax)
    throw std::length_error(
        fmt::format("{} boxes, but Bullet can have at most {}", first.size(), kMax));
  BroadphaseSetup setup;
  setup.options = options;
  setup.maxObjects = static_cast<int>(first.size());
  fitWorld(setup, first);
  return std::make_unique<BulletFinder>(name, setup);
}

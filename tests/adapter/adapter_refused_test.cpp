// SPDX-License-Identifier: Zlib
// Tests a filter callback whose answer changes while two boxes overlap: for which pairs it is
// called again, and when. docs/contract.md states the rule.
#include <btBulletCollisionCommon.h>

#include "refusal_model.h"

extern btScalar gDbvtMargin;

namespace {

using namespace refusal;

struct Setting {
  const char* cache;
  float margin = 0;
  bool announcedFilters = false;
};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.cache; }

/// Makes the same random calls to a broad phase and to its model.
class TwinOfTheRule {
 public:
  explicit TwinOfTheRule(const Setting& setting)
      : options(optionsOf(setting)),
        isOwn(setting.cache == std::string("own")),
        rule(setting.margin),
        ours(options, setting.cache == std::string("hashed")
                          ? static_cast<btOverlappingPairCache*>(&hashed)
                      : isOwn ? nullptr
                              : &sorted) {
    for (int i = 0; i < 20000; ++i) numbers.push_back(i);
    cache().setOverlapFilterCallback(&filter);
  }
  static GpuLbvhOptions optionsOf(const Setting& setting) {
    GpuLbvhOptions options;
    options.margin = setting.margin;
    options.announcedFilters = setting.announcedFilters;
    return options;
  }
  btOverlappingPairCache& cache() { return *ours.getOverlappingPairCache(); }

  void create(Random& random) {
    std::vector<GpuLbvhNewProxy> objects(1 + random.below(3));
    std::vector<btBroadphaseProxy*> proxies(objects.size());
    for (GpuLbvhNewProxy& object : objects) {
      const Box box = drawBox(random, 6, 3);
      object.aabbMin = box.min;
      object.aabbMax = box.max;
      object.client = &numbers[static_cast<std::size_t>(next++)];
    }
    ASSERT_TRUE(ours.createProxies(objects.data(), static_cast<int>(objects.size()), proxies.data(),
                                   nullptr));
    for (btBroadphaseProxy* proxy : proxies)
      rule.create(*numberOf(proxy), proxy, {proxy->m_aabbMin, proxy->m_aabbMax});
  }
  void destroy(Random& random) {
    std::vector<btBroadphaseProxy*> proxies;
    for (std::uint32_t count = 1 + random.below(3); count > 0 && !rule.objects.empty(); --count) {
      proxies.push_back(any(random).proxy);
      rule.destroy(*numberOf(proxies.back()));
    }
    ours.destroyProxies(proxies.data(), static_cast<int>(proxies.size()), nullptr);
  }
  void destroyAll() {
    while (!rule.objects.empty()) {
      ours.destroyProxy(rule.objects.begin()->second.proxy, nullptr);
      rule.destroy(rule.objects.begin()->first);
    }
    ours.resetPool(nullptr);
  }
  /// Moves a random object far, a little, away and back, or not at all.
  void move(Random& random) {
    const Known one = any(random);
    const btVector3 little(btScalar(1) / 16, 0, btScalar(1) / 16);
    const std::uint32_t kind = random.below(5);
    if (kind == 0) set(one, drawBox(random, 6, 3));
    if (kind == 1 || kind == 2) set(one, {one.box.min + little, one.box.max + little});
    if (kind == 3) set(one, drawBox(random, 6, 3));
    if (kind > 2) set(one, one.box);
  }
  void set(const Known& one, const Box& box) {
    ours.setAabbs(&one.proxy, &box.min, &box.max, 1, nullptr);
    rule.move(one.number, box);
  }
  /// Cleans or removes the pairs of a random object. With Bullet's caches, pairs are only cleaned:
  /// these caches do not report removals, so the next step would not call the filter.
  void clean(Random& random) {
    Known& one = any(random);
    if (isOwn) one.mustAsk = true;
    if (random.below(2) == 0) return cache().cleanProxyFromPairs(one.proxy, nullptr);
    if (!isOwn) return;
    cache().removeOverlappingPairsContainingProxy(one.proxy, nullptr);
    rule.takeAccepted(one.number);
  }
  void changePlane(Random& random) {
    Known& one = any(random);
    one.isHalfSpace = random.below(2) == 0;
    if (one.isHalfSpace)
      ASSERT_TRUE(ours.setPlane(one.proxy, btVector3(0, 1, 0), 1));
    else
      ours.clearPlane(one.proxy);
  }
  void changeMind(Random& random) { ++filter.minds[any(random).number]; }
  void changeGroup(Random& random) {
    const Known& one = any(random);
    one.proxy->m_collisionFilterGroup = 1 << random.below(3);  // the callback does not read groups
    ours.filterChanged(one.proxy);
  }
  void refilter() {
    ours.refilter();
    asksAll = true;
  }
  void exchangeCallback() {
    cache().setOverlapFilterCallback(hasCallback() ? nullptr : &filter);
    for (auto& [number, one] : rule.objects) one.proxy->m_collisionFilterGroup = 1;
    for (auto& [number, one] : rule.objects) ours.filterChanged(one.proxy);
  }
  bool hasCallback() { return cache().getOverlapFilterCallback() != nullptr; }

  void step() {
    asksAll = asksAll || hasCallback() != hadCallback;
    hadCallback = hasCallback();
    filter.asked.clear();
    ours.calculateOverlappingPairs(nullptr);
    ASSERT_STREQ(ours.error(), "");
    const std::vector<Question> expected =
        rule.step(asksAll, [&](int a, int b) { return !hasCallback() || filter.accepts(a, b); });
    ASSERT_EQ(pairsOf(ours), rule.pairs());
    if (!asksAll && hasCallback()) ASSERT_EQ(questions(), expected);
    askedAgain += asksAll ? 0 : static_cast<int>(expected.size());
    asksAll = false;
  }
  void stepThatThrows(Random& random) {
    filter.answersLeft = static_cast<int>(1 + random.below(6));
    try {
      ours.calculateOverlappingPairs(nullptr);
    } catch (const Thrown&) {
      ++thrown;
    }
    filter.answersLeft = 0;
    refilter();  // the model does not know how far the step got
    step();
  }
  /// The pairs for which the filter was called, as slots.
  std::vector<Question> questions() const {
    std::vector<Question> all;
    for (const auto& [a, b] : filter.asked) {
      const std::uint32_t slotA = rule.objects.at(a).slot, slotB = rule.objects.at(b).slot;
      all.emplace_back(std::min(slotA, slotB), std::max(slotA, slotB));
    }
    return all;
  }
  Known& any(Random& random) {
    auto one = rule.objects.begin();
    std::advance(one, random.below(static_cast<std::uint32_t>(rule.objects.size())));
    return one->second;
  }

  GpuLbvhOptions options;
  const bool isOwn;
  std::vector<int> numbers;
  Fickle filter;
  Rule rule;
  btHashedOverlappingPairCache hashed;
  btSortedOverlappingPairCache sorted;
  GpuLbvhBroadphase ours;
  int next = 0, askedAgain = 0, thrown = 0;
  bool asksAll = true, hadCallback = true;
};

class EverySetting : public testing::TestWithParam<Setting> {};

INSTANTIATE_TEST_SUITE_P(Refused, EverySetting,
                         testing::Values(Setting{"own"}, Setting{"own", 0.25f},
                                         Setting{"own", 0, true}, Setting{"hashed"},
                                         Setting{"hashed", 0.25f}, Setting{"sorted"}),
                         [](const auto& info) {
                           return info.param.cache +
                                  std::string(info.param.margin > 0 ? "_with_margin" : "") +
                                  (info.param.announcedFilters ? "_announced" : "");
                         });

// The pairs, and the filter's calls and their order, must equal the model's.
TEST_P(EverySetting, FollowsTheRuleThroughRandomCalls) {
  Random random(141);
  TwinOfTheRule twin(GetParam());
  for (int round = 0; round < 900 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    for (std::uint32_t calls = random.below(12); calls > 0; --calls) {
      const std::uint32_t what = random.below(32);
      if (twin.rule.objects.size() < 45 || (what < 2 && twin.rule.objects.size() < 80))
        twin.create(random);
      else if (what < 4)
        twin.destroy(random);
      else if (what < 18)
        twin.move(random);
      else if (what < 25)
        twin.changeMind(random);
      else if (what < 28)
        twin.clean(random);
      else if (what < 30)
        twin.changePlane(random);
      else
        twin.changeGroup(random);
    }
    if (round % 40 == 20) twin.refilter();
    if (round % 60 == 30) twin.exchangeCallback();
    if (round % 60 == 33) twin.exchangeCallback();
    if (round % 150 == 149) twin.destroyAll();
    if (round % 13 == 12)
      twin.stepThatThrows(random);
    else
      twin.step();
  }
  EXPECT_GT(twin.askedAgain, 3000);
  EXPECT_GT(twin.thrown, 15);
}

/// Accepts more and more pairs, and never refuses one that it has accepted.
struct EverMore : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    const int first = *numberOf(a), second = *numberOf(b);
    const auto numbers =
        static_cast<std::uint32_t>(std::min(first, second) * 1009 + std::max(first, second));
    return (numbers * 2654435769u >> 20) % 16 <
           levels[static_cast<std::size_t>(first)] + levels[static_cast<std::size_t>(second)];
  }
  std::vector<std::uint32_t> levels = std::vector<std::uint32_t>(400);
};

// btDbvtBroadphase calls the filter when a box leaves its leaf's volume. Without a margin, a box
// leaves this volume at every change, unless the box shrinks.
TEST(Refused, EveryOverlappingPairOfDbvtIsThereInTheSameStep) {
  struct NoMargin {
    NoMargin() { std::swap(gDbvtMargin, margin); }
    ~NoMargin() { std::swap(gDbvtMargin, margin); }
    btScalar margin = 0;
  } const noMargin;
  Random random(142);
  GpuLbvhBroadphase ours;
  btDbvtBroadphase dbvt;
  EverMore filter;
  for (btBroadphaseInterface* one :
       {static_cast<btBroadphaseInterface*>(&ours), static_cast<btBroadphaseInterface*>(&dbvt)})
    one->getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  Twins twins({&ours, &dbvt});
  for (int i = 0; i < 350; ++i) twins.create(random);
  std::size_t compared = 0;
  for (int step = 0; step < 900; ++step) {
    for (std::uint32_t i = random.below(3); i > 0; --i) twins.create(random);
    for (std::uint32_t i = random.below(3); i > 0; --i) twins.destroy(random);
    for (std::uint32_t i = random.below(8); i > 0; --i) twins.move(random);
    for (std::uint32_t i = random.below(60); i > 0; --i) twins.nudge(random);
    for (std::uint32_t i = random.below(3); i > 0; --i) ++filter.levels[random.below(400)];
    twins.step();
    const PairSet pairs = pairsOf(ours);
    const btBroadphasePairArray& array = dbvt.getOverlappingPairCache()->getOverlappingPairArray();
    for (int i = 0; i < array.size(); ++i) {
      if (!overlap(array[i].m_pProxy0, array[i].m_pProxy1)) continue;
      const int a = *numberOf(array[i].m_pProxy0), b = *numberOf(array[i].m_pProxy1);
      ASSERT_EQ(pairs.count({std::min(a, b), std::max(a, b)}), 1u)
          << step << ": " << a << ", " << b;
      ++compared;
    }
  }
  EXPECT_GT(compared, 3000u);
  // The destructor of btDbvtBroadphase does not destroy its proxies.
  while (!twins.proxies(0).empty()) twins.destroy(random);
}

}  // namespace

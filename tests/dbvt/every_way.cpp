// SPDX-License-Identifier: Zlib
// Makes a btDbvtBroadphase in every way that C++ offers, and uses each. The code names only
// Bullet's classes. The tests link it with GpuLbvhBroadphase::dbvt, or run it with
// libgpulbvh_dbvt.so, and pass an argument that says whose broad phases it must find.
// Usage: every_way ours|bullets
#include <BulletCollision/BroadphaseCollision/btAxisSweep3.h>
#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>
#include <BulletCollision/BroadphaseCollision/btDispatcher.h>
#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>
#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <typeinfo>
#include <utility>
#include <vector>

namespace {

bool wantOurs = false;
int failures = 0;

void check(bool holds, const char* way, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s: %s\n", way, what);
  ++failures;
}

/// Collects the proxies that a query visits.
struct Met : btBroadphaseRayCallback {  // also a btBroadphaseAabbCallback
  std::vector<const btBroadphaseProxy*> proxies;
  bool throws = false;
  bool process(const btBroadphaseProxy* proxy) override {
    if (throws) throw std::runtime_error("thrown by a callback");
    proxies.push_back(proxy);
    return true;
  }
};

/// Casts a ray along x from -100 to 100, at this y and z = 0.
void castAlongX(btBroadphaseInterface& broadphase, btScalar y, Met& met) {
  met.m_rayDirectionInverse = btVector3(1, BT_LARGE_FLOAT, BT_LARGE_FLOAT);
  for (unsigned& sign : met.m_signs) sign = 0;
  met.m_lambda_max = 200;
  broadphase.rayTest(btVector3(-100, y, 0), btVector3(100, y, 0), met);
}

/// Makes a row of cubes of side 1, each of which touches the next.
constexpr int kCubes = 20;
void makeRow(btBroadphaseInterface& broadphase, std::vector<btBroadphaseProxy*>& row,
             int cubes = kCubes) {
  for (int i = 0; i < cubes; ++i) {
    const btVector3 corner(btScalar(i), 0, 0);
    row.push_back(
        broadphase.createProxy(corner, corner + btVector3(1, 1, 1), 0, nullptr, 1, -1, nullptr));
  }
}

/// Checks what both Bullet's broad phase and ours must do. `pairs` says whether the broad phase's
/// cache stores pairs.
void use(btBroadphaseInterface& broadphase, const char* way, bool pairs = true) {
  std::vector<btBroadphaseProxy*> row;
  makeRow(broadphase, row);
  broadphase.calculateOverlappingPairs(nullptr);
  btOverlappingPairCache* const cache = broadphase.getOverlappingPairCache();
  check(&*cache == std::as_const(broadphase).getOverlappingPairCache(), way, "two caches");
  if (pairs) check(cache->getNumOverlappingPairs() == kCubes - 1, way, "pairs of the row");

  broadphase.setAabb(row[0], btVector3(0, 50, 0), btVector3(1, 51, 1), nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  btVector3 aabbMin, aabbMax;
  broadphase.getAabb(row[0], aabbMin, aabbMax);
  check(aabbMin == btVector3(0, 50, 0), way, "the box that was set");
  broadphase.getBroadphaseAabb(aabbMin, aabbMax);
  check(aabbMax.y() >= 51, way, "the box around all");

  Met met;
  castAlongX(broadphase, btScalar(0.5), met);
  check(met.proxies.size() == kCubes - 1, way, "a ray along the row");
  Met high;
  broadphase.aabbTest(btVector3(0, 49, 0), btVector3(1, 52, 1), high);
  check(high.proxies.size() == 1, way, "a box query");
  Met throwing;
  throwing.throws = true;
  bool caught = false;
  try {
    castAlongX(broadphase, btScalar(0.5), throwing);
  } catch (const std::runtime_error&) {
    caught = true;
  }
  check(caught, way, "an exception of a callback");

  for (btBroadphaseProxy* proxy : row) broadphase.destroyProxy(proxy, nullptr);
  if (pairs) check(cache->getNumOverlappingPairs() == 0, way, "pairs of destroyed proxies");
  broadphase.resetPool(nullptr);
  broadphase.printStats();
}

/// Bullet's broad phase keeps its objects in m_sets, and ours does not.
bool isOurs(btDbvtBroadphase& dbvt) {
  btBroadphaseProxy* const proxy =
      dbvt.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), 0, nullptr, 1, -1, nullptr);
  const bool ours = dbvt.m_sets[0].empty() && dbvt.m_sets[1].empty();
  dbvt.destroyProxy(proxy, nullptr);
  return ours;
}

void checkDbvt(btDbvtBroadphase& dbvt, const char* way, bool pairs = true) {
  check(isOurs(dbvt) == wantOurs, way, wantOurs ? "it is Bullet's" : "it is ours");
  check(dbvt.m_paircache == dbvt.getOverlappingPairCache(), way, "m_paircache");
  check(dbvt.m_rayTestStacks.size() > 0, way, "m_rayTestStacks");
  check(dbvt.m_cupdates == 10 && dbvt.m_newpairs == 1 && !dbvt.m_deferedcollide, way, "members");
  btBroadphaseInterface* const base = &dbvt;
  check(dynamic_cast<btDbvtBroadphase*>(base) == &dbvt, way, "dynamic_cast");
  use(dbvt, way, pairs);
}

struct Game {
  int before = 1;
  btDbvtBroadphase dbvt;
  int behind = 2;
};

struct Counting : btDbvtBroadphase {
  using btDbvtBroadphase::btDbvtBroadphase;
  int sets = 0;
  void setAabb(btBroadphaseProxy* proxy, const btVector3& aabbMin, const btVector3& aabbMax,
               btDispatcher* dispatcher) override {
    ++sets;
    btDbvtBroadphase::setAabb(proxy, aabbMin, aabbMax, dispatcher);
  }
};

void makeByItself() {
  {
    btDbvtBroadphase onStack;
    checkDbvt(onStack, "on the stack");
    check(typeid(onStack) == typeid(btDbvtBroadphase), "on the stack", "typeid");
    btBroadphaseInterface& base = onStack;
    check(typeid(base) == typeid(btDbvtBroadphase), "on the stack", "typeid of the object");
  }
  auto* const onHeap = new btDbvtBroadphase();
  checkDbvt(*onHeap, "on the heap");
  delete onHeap;
  std::unique_ptr<btBroadphaseInterface> base(new btDbvtBroadphase);
  checkDbvt(static_cast<btDbvtBroadphase&>(*base), "by its base");
  base.reset();
  checkDbvt(*std::make_shared<btDbvtBroadphase>(), "by make_shared");
  {
    Game game;
    checkDbvt(game.dbvt, "as a member");
    check(game.before == 1 && game.behind == 2, "as a member", "its neighbours");
  }
  alignas(16) unsigned char place[sizeof(btDbvtBroadphase)];
  for (int round = 0; round < 2; ++round) {
    auto* const placed = new (place) btDbvtBroadphase;
    checkDbvt(*placed, "by placement");
    placed->~btDbvtBroadphase();
  }
  std::vector<btDbvtBroadphase> several(3);
  for (btDbvtBroadphase& dbvt : several) checkDbvt(dbvt, "in a vector");
}

void makeDerived() {
  Counting onStack;
  checkDbvt(onStack, "derived");
  check(onStack.sets == 1, "derived", "its setAabb was not called");
  check(typeid(static_cast<btBroadphaseInterface&>(onStack)) == typeid(Counting), "derived",
        "typeid");
  std::unique_ptr<btDbvtBroadphase> base(new Counting);
  checkDbvt(*base, "derived, by its base");
  check(dynamic_cast<Counting*>(base.get()) != nullptr, "derived, by its base", "dynamic_cast");
}

template <class Cache>
void makeWithCache(const char* way, bool pairs = true) {
  Cache cache;
  {
    btDbvtBroadphase dbvt(&cache);
    check(dbvt.getOverlappingPairCache() == &cache, way, "the supplied cache");
    checkDbvt(dbvt, way, pairs);
  }
  check(cache.getNumOverlappingPairs() == 0, way, "pairs after the broad phase's end");
}

template <class Sweep>
struct OpenSweep : Sweep {
  OpenSweep() : Sweep(btVector3(-1000, -1000, -1000), btVector3(1000, 1000, 1000)) {}
  bool hasOurs() { return this->m_raycastAccelerator->m_sets[0].empty(); }
};

/// Makes and uses an axis sweep. Its constructor makes a btDbvtBroadphase inside Bullet's library.
template <class Sweep>
void makeInSweep(const char* way, bool want) {
  OpenSweep<Sweep> sweep;
  std::vector<btBroadphaseProxy*> row;
  makeRow(sweep, row);
  check(sweep.hasOurs() == want, way, want ? "it is Bullet's" : "it is ours");
  for (btBroadphaseProxy* proxy : row) sweep.destroyProxy(proxy, nullptr);
  use(sweep, way);
}

void callWhatIsNotVirtual() {
  const char* const way = "not virtual";
  btDbvtBroadphase dbvt;
  dbvt.m_deferedcollide = true;
  dbvt.m_cupdates = 100;
  dbvt.m_dupdates = 1;
  dbvt.setVelocityPrediction(btScalar(0.25));
  check(dbvt.getVelocityPrediction() == btScalar(0.25), way, "the prediction");
  std::vector<btBroadphaseProxy*> row;
  makeRow(dbvt, row);
  dbvt.setAabbForceUpdate(row[0], btVector3(0, 9, 0), btVector3(1, 10, 1), nullptr);
  dbvt.optimize();
  dbvt.collide(nullptr);
  dbvt.performDeferredRemoval(nullptr);
  check(dbvt.getOverlappingPairCache()->getNumOverlappingPairs() == kCubes - 2, way, "pairs");
  btDbvtBroadphase::benchmark(&dbvt);
}

#ifdef _WIN32
void useInChild() {}  // Windows has no fork
void endChildAtOnce() {}
#else
/// Starts a child with vfork. It shares its parent's memory, and ends with _exit.
void endChildAtOnce() {
  const pid_t child = vfork();  // NOLINT(bugprone-unsafe-functions): this is what is tested
  if (child == 0) _exit(9);
  int status = 0;
  check(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9, "vfork", "its status");
}

/// Uses a broad phase in a child after fork(). The parent has used the same broad phase on all
/// threads.
void useInChild() {
  const int many = wantOurs ? 20000 : kCubes;
  btDbvtBroadphase dbvt;
  std::vector<btBroadphaseProxy*> row;
  makeRow(dbvt, row, many);
  dbvt.calculateOverlappingPairs(nullptr);
  const auto isRight = [&] {
    return dbvt.getOverlappingPairCache()->getNumOverlappingPairs() == many - 1;
  };
  check(isRight(), "before a fork", "pairs");
  const pid_t child = fork();
  if (child == 0) {
    for (btBroadphaseProxy* proxy : row) {
      const btVector3 aabbMin = proxy->m_aabbMin + btVector3(0, 100, 0);
      dbvt.setAabb(proxy, aabbMin, aabbMin + btVector3(1, 1, 1), nullptr);
    }
    dbvt.calculateOverlappingPairs(nullptr);
    btDbvtBroadphase another;
    checkDbvt(another, "made in a child");
    _exit(isRight() && failures == 0 ? 0 : 1);
  }
  int status = 1;
  check(waitpid(child, &status, 0) == child && status == 0, "in a child", "its status");
}
#endif

}  // namespace

/// plugin_host.cpp loads this file as a plugin, and calls this function.
extern "C" int everyWay(int argc, char** argv) {
  if (argc < 2) return 2;
  wantOurs = std::strcmp(argv[1], "ours") == 0;
  makeByItself();
  endChildAtOnce();
  makeDerived();
  makeWithCache<btHashedOverlappingPairCache>("with a hashed cache");
  makeWithCache<btSortedOverlappingPairCache>("with a sorted cache");
  makeWithCache<btNullPairCache>("with no cache", false);
  const bool wantOursInside = wantOurs && std::getenv("BULLET_BINDS_ITS_OWN") == nullptr;
  makeInSweep<btAxisSweep3>("in btAxisSweep3", wantOursInside);
  makeInSweep<bt32BitAxisSweep3>("in bt32BitAxisSweep3", wantOursInside);
  callWhatIsNotVirtual();
  useInChild();
  std::fprintf(stderr, "%s: %d failures\n", wantOurs ? "ours" : "Bullet's", failures);
  return failures == 0 ? 0 : 1;
}

int main(int argc, char** argv) { return everyWay(argc, argv); }

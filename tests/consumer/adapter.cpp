// A user of the adapter.
#include <GpuLbvhBroadphase.h>

int main() {
  GpuLbvhBroadphase broadphase;
  int client = 0;
  const btVector3 lo(0, 0, 0), hi(1, 1, 1);
  broadphase.createProxy(lo, hi, 0, &client, 1, -1, nullptr);
  broadphase.createProxy(hi, hi + hi, 0, &client, 1, -1, nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  broadphase.printStats();
  return broadphase.stats().pairs == 1 ? 0 : 1;
}

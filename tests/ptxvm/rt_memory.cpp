// SPDX-License-Identifier: Zlib
// CUDA runtime API front end: device, managed and pinned memory, memory pools
#include <sys/mman.h>

#include <algorithm>

#include "rt.h"

static std::map<u64, unsigned> g_hostflags;
size_t mem_limit() {
  static size_t lim = (size_t)env_long("PTXVM_MEM_MB", 8192) << 20;
  return lim;
}
static size_t g_used[MAX_DEVICES];
struct Pool {
  int dev = 0;
  u64 threshold = 0;
  int reuse[3] = {1, 1, 1};
  size_t used = 0, high = 0;
  size_t idle = 0;  // freed, and not yet given back to the device
  void trim(size_t keep) { idle = std::min(idle, keep > used ? keep - used : 0); }
};
static std::map<u64, Pool*> g_pooled;
static std::set<Pool*> g_pools;
// As at a call that synchronises.
void trim_pools() {
  for (Pool* pool : g_pools) pool->trim(pool->threshold);
}
static size_t idle_memory(int d) {
  size_t sum = 0;
  for (const Pool* pool : g_pools) sum += pool->dev == d ? pool->idle : 0;
  return sum;
}
static size_t granule(size_t n) { return (n + 511) & ~511ull; }
static size_t page_up(size_t n) { return (n + 4095) & ~4095ull; }

// Unless PTXVM_GUARD is 0: the host has no access to device memory but inside of API calls.
static std::map<void*, size_t> g_guarded;
static bool guards() {
  static bool on = env_long("PTXVM_GUARD", 1);
  return on;
}
void guard_memory(bool open) {
  if (guards())
    for (auto& [p, bytes] : g_guarded) mprotect(p, bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// New memory reads 0xCD; inaccessible pages follow it.
static int mem_alloc(void** p, size_t n, u8 kind, int d = current_device()) {
  if (!p) return cudaErrorInvalidValue;
  *p = nullptr;
  if (!n) return 0;
  bool dev = kind == K_DEVICE || kind == K_MANAGED;
  if (n > mem_limit() * 64 || (dev && g_used[d] + granule(n) > mem_limit())) return cudaErrorMemoryAllocation;
  void* q = mmap(nullptr, page_up(n) + 8192, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (q == MAP_FAILED) return cudaErrorMemoryAllocation;
  mprotect((char*)q + page_up(n), 8192, PROT_NONE);
  memset(q, 0xCD, n);
  vm_add_alloc(q, n, kind, d);
  if (kind == K_DEVICE && guards()) g_guarded[q] = page_up(n);
  if (dev) g_used[d] += granule(n);
  *p = q;
  return 0;
}
static int mem_free(void* p, bool host) {
  if (!p) return 0;
  const Alloc* a = vm_find_alloc((u64)p);
  bool ok =
      a && a->lo == (u64)p && (host ? a->kind == K_PINNED : a->kind == K_DEVICE || a->kind == K_MANAGED);
  if (!ok) {
    fprintf(stderr, "ptxvm: free of an unknown, foreign or already freed pointer %p\n", p);
    return cudaErrorInvalidValue;
  }
  size_t n = a->hi - a->lo;
  if (!host) g_used[a->dev] -= granule(n);
  auto pooled = g_pooled.find((u64)p);
  if (pooled != g_pooled.end()) {
    pooled->second->used -= granule(n);
    g_pooled.erase(pooled);
  }
  g_hostflags.erase((u64)p);
  vm_del_alloc(p);
  g_guarded.erase(p);
  munmap(p, page_up(n) + 8192);
  return 0;
}
API cudaError_t cudaMalloc(void** p, size_t n) {
  ENTER("malloc", F_NOCAP);
  return E(mem_alloc(p, n, K_DEVICE));
}
API cudaError_t cudaMallocManaged(void** p, size_t n, unsigned flags) {
  ENTER("malloc", F_NOCAP);
  if (!n || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) return E(cudaErrorInvalidValue);
  return E(mem_alloc(p, n, K_MANAGED));
}
API cudaError_t cudaMallocPitch(void** p, size_t* pitch, size_t w, size_t h) {
  ENTER("malloc", F_NOCAP);
  *pitch = (w + 511) / 512 * 512;
  return E(mem_alloc(p, *pitch * h, K_DEVICE));
}
API cudaError_t cudaFree(void* p) {
  ENTER("free", F_NOCAP | F_SYNC | F_FREE);
  return E(mem_free(p, false));
}
API cudaError_t cudaMallocHost(void** p, size_t n) {
  ENTER("hostalloc", F_NOCAP);
  return E(mem_alloc(p, n, K_PINNED));
}
API cudaError_t cudaHostAlloc(void** p, size_t n, unsigned flags) {
  ENTER("hostalloc", F_NOCAP);
  if (flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
    return E(cudaErrorInvalidValue);
  int r = mem_alloc(p, n, K_PINNED);
  if (!r && *p) g_hostflags[(u64)*p] = flags;
  return E(r);
}
API cudaError_t cudaFreeHost(void* p) {
  ENTER("free", F_NOCAP | F_SYNC | F_FREE);
  return E(mem_free(p, true));
}
API cudaError_t cudaHostRegister(void* p, size_t n, unsigned flags) {
  ENTER("hostalloc", F_NOCAP);
  if (!p || !n) return E(cudaErrorInvalidValue);
  if (vm_find_alloc((u64)p) || vm_find_alloc((u64)p + n - 1)) return E(cudaErrorHostMemoryAlreadyRegistered);
  vm_add_alloc(p, n, K_REGISTERED, current_device());
  g_hostflags[(u64)p] = flags;
  return cudaSuccess;
}
API cudaError_t cudaHostUnregister(void* p) {
  ENTER("free", F_NOCAP | F_SYNC | F_FREE);
  const Alloc* a = vm_find_alloc((u64)p);
  if (!a || a->lo != (u64)p || a->kind != K_REGISTERED) return E(cudaErrorHostMemoryNotRegistered);
  g_hostflags.erase((u64)p);
  vm_del_alloc(p);
  return cudaSuccess;
}
API cudaError_t cudaHostGetDevicePointer(void** d, void* h, unsigned) {
  ENTER("", 0);
  const Alloc* a = vm_find_alloc((u64)h);
  if (!a || (a->kind != K_PINNED && a->kind != K_REGISTERED)) return E(cudaErrorInvalidValue);
  *d = h;
  return cudaSuccess;
}
API cudaError_t cudaHostGetFlags(unsigned* f, void* h) {
  ENTER("", 0);
  const Alloc* a = vm_find_alloc((u64)h);
  if (!a || (a->kind != K_PINNED && a->kind != K_REGISTERED)) return E(cudaErrorInvalidValue);
  auto it = g_hostflags.find(a->lo);
  *f = (it == g_hostflags.end() ? 0 : it->second) | cudaHostAllocMapped;
  return cudaSuccess;
}
API cudaError_t cudaMemGetInfo(size_t* f, size_t* t) {
  ENTER("", 0);
  *t = mem_limit();
  size_t held = g_used[current_device()] + idle_memory(current_device());
  *f = *t - std::min(held, *t);  // an allocation that needs it gets what is idle
  return cudaSuccess;
}
API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  ENTER("", 0);
  memset(a, 0, sizeof *a);
  const Alloc* q = vm_find_alloc((u64)p);
  if (!q || (u64)p >= q->hi) {
    a->type = cudaMemoryTypeUnregistered;
    a->device = -2;
    a->hostPointer = (void*)p;
    return cudaSuccess;
  }
  a->devicePointer = (void*)p;
  a->device = q->kind == K_MODULE ? current_device() : q->dev;
  if (q->kind == K_DEVICE || q->kind == K_MODULE) {
    a->type = cudaMemoryTypeDevice;
  } else {
    a->type = q->kind == K_MANAGED ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
    a->hostPointer = (void*)p;
  }
  return cudaSuccess;
}
API cudaError_t cudaMemPrefetchAsync(const void* p, size_t n, cudaMemLocation, unsigned, cudaStream_t) {
  ENTER("", 0);
  const Alloc* a = vm_find_alloc((u64)p);
  return E(a && a->kind == K_MANAGED && (u64)p + n <= a->hi ? 0 : cudaErrorInvalidValue);
}
API cudaError_t cudaMemAdvise(const void* p, size_t n, cudaMemoryAdvise, cudaMemLocation) {
  ENTER("", 0);
  const Alloc* a = vm_find_alloc((u64)p);
  return E(a && a->kind == K_MANAGED && (u64)p + n <= a->hi ? 0 : cudaErrorInvalidValue);
}

// Stream-ordered allocation: one pool per device (others may be created). Freed memory is the pool's until a
// call that synchronises.
static Pool& default_pool(int d) {
  static std::vector<Pool> pools(MAX_DEVICES);
  pools[d].dev = d;
  g_pools.insert(&pools[d]);
  return pools[d];
}
static Pool*& current_pool(int d) {
  static std::vector<Pool*> pools(MAX_DEVICES);
  if (!pools[d]) pools[d] = &default_pool(d);
  return pools[d];
}
static int pool_alloc(void** p, size_t n, Pool* pool, cudaStream_t s) {
  if (!p) return cudaErrorInvalidValue;
  if (int r = stream_refused(s, "allocation")) return r;
  if (!pool) pool = current_pool(stream_device(s));
  if (is_capturing(s)) {
    fprintf(stderr, "ptxvm: memory nodes in graphs are not implemented\n");
    return cudaErrorNotSupported;
  }
  int r = mem_alloc(p, n, K_DEVICE, pool->dev);
  if (!r && *p) {
    g_pooled[(u64)*p] = pool;
    pool->used += granule(n);
    pool->idle -= std::min(pool->idle, granule(n));
    pool->high = std::max(pool->high, pool->used);
  }
  return r;
}
API cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t s) {
  ENTER("malloc", 0);
  return E(pool_alloc(p, n, nullptr, s));
}
API cudaError_t cudaMallocFromPoolAsync(void** p, size_t n, cudaMemPool_t pool, cudaStream_t s) {
  ENTER("malloc", 0);
  return E(pool ? pool_alloc(p, n, (Pool*)pool, s) : cudaErrorInvalidValue);
}
API cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  ENTER("free", 0);
  if (int r = stream_refused(s, "cudaFreeAsync")) return E(r);
  if (is_capturing(s)) {
    fprintf(stderr, "ptxvm: memory nodes in graphs are not implemented\n");
    return E(cudaErrorNotSupported);
  }
  if (!p) return E(cudaErrorInvalidValue);
  const Alloc* a = vm_find_alloc((u64)p);
  const size_t bytes = a ? granule(a->hi - a->lo) : 0;
  auto pooled = g_pooled.find((u64)p);
  Pool* pool = pooled == g_pooled.end() ? nullptr : pooled->second;
  const int r = mem_free(p, false);
  if (!r && pool) pool->idle += bytes;
  return E(r);
}
API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* p, int d) {
  ENTER("", 0);
  if (no_such_device(d)) return E(cudaErrorInvalidDevice);
  *p = (cudaMemPool_t)&default_pool(d);
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* p, int d) {
  ENTER("", 0);
  if (no_such_device(d)) return E(cudaErrorInvalidDevice);
  *p = (cudaMemPool_t)current_pool(d);
  return cudaSuccess;
}
API cudaError_t cudaDeviceSetMemPool(int d, cudaMemPool_t p) {
  ENTER("", 0);
  if (no_such_device(d)) return E(cudaErrorInvalidDevice);
  if (!p || ((Pool*)p)->dev != d) return E(cudaErrorInvalidValue);
  current_pool(d) = (Pool*)p;
  return cudaSuccess;
}
API cudaError_t cudaMemPoolCreate(cudaMemPool_t* p, const cudaMemPoolProps* props) {
  ENTER("", 0);
  if (!props || no_such_device(props->location.id)) return E(cudaErrorInvalidValue);
  auto* q = new Pool;
  q->dev = props->location.id;
  g_pools.insert(q);
  *p = (cudaMemPool_t)q;
  return cudaSuccess;
}
API cudaError_t cudaMemPoolDestroy(cudaMemPool_t p) {
  ENTER("", 0);
  auto* q = (Pool*)p;
  if (!q || q == &default_pool(q->dev)) return E(cudaErrorInvalidValue);
  if (current_pool(q->dev) == q) current_pool(q->dev) = &default_pool(q->dev);
  for (auto& a : g_pooled)
    if (a.second == q)
      a.second = &default_pool(q->dev), a.second->used += granule(vm_find_alloc(a.first)->hi - a.first);
  g_pools.erase(q);
  delete q;
  return cudaSuccess;
}
API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t p, size_t keep) {
  ENTER("", 0);
  if (!p) return E(cudaErrorInvalidValue);
  ((Pool*)p)->trim(keep);
  return cudaSuccess;
}
API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t p, cudaMemPoolAttr a, void* v) {
  ENTER("", 0);
  if (!p || !v) return E(cudaErrorInvalidValue);
  switch (a) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      ((Pool*)p)->reuse[(int)a - (int)cudaMemPoolReuseFollowEventDependencies] = *(int*)v;
      return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold: ((Pool*)p)->threshold = *(u64*)v; return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
      if (*(u64*)v) return E(cudaErrorInvalidValue);
      ((Pool*)p)->high = ((Pool*)p)->used;
      return cudaSuccess;
    default: return E(cudaErrorInvalidValue);
  }
}
API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t p, cudaMemPoolAttr a, void* v) {
  ENTER("", 0);
  if (!p || !v) return E(cudaErrorInvalidValue);
  switch (a) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      *(int*)v = ((Pool*)p)->reuse[(int)a - (int)cudaMemPoolReuseFollowEventDependencies];
      return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold: *(u64*)v = ((Pool*)p)->threshold; return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
      *(u64*)v = ((Pool*)p)->used + ((Pool*)p)->idle;
      return cudaSuccess;
    case cudaMemPoolAttrUsedMemCurrent: *(u64*)v = ((Pool*)p)->used; return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh: *(u64*)v = ((Pool*)p)->high; return cudaSuccess;
    default: return E(cudaErrorInvalidValue);
  }
}
API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t p, const cudaMemAccessDesc*, size_t) {
  ENTER("", 0);
  return E(p ? 0 : cudaErrorInvalidValue);
}

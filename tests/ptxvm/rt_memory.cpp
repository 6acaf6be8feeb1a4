// SPDX-License-Identifier: Zlib
// Runtime API front end: device, managed and pinned memory, memory pools
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
  size_t idle = 0;  // freed, but not yet returned to the device
  void trim(size_t keep) { idle = std::min(idle, keep > used ? keep - used : 0); }
};
static std::map<u64, Pool*> g_pooled;
static std::set<Pool*> g_pools;
static std::set<u64> g_owned;    // the live allocations that this file has made
static std::set<u64> g_freeing;  // allocations with a queued cudaFreeAsync
// Every call that synchronises calls this function.
void trim_pools() {
  for (Pool* pool : g_pools) pool->trim(pool->threshold);
}
static size_t idle_memory(int d) {
  size_t sum = 0;
  for (const Pool* pool : g_pools) sum += pool->dev == d ? pool->idle : 0;
  return sum;
}
static size_t granule(size_t n) { return (n + 511) & ~511ull; }
// New memory is filled with 0xCD.
static int mem_alloc(void** p, size_t n, u8 what, int d = current_device()) {
  if (!p) return cudaErrorInvalidValue;
  *p = nullptr;
  if (!n) return 0;
  bool dev = what == K_DEVICE || what == K_MANAGED;
  if (dev && g_used[d] + granule(n) > mem_limit()) run_device(d);  // queued work may release memory
  if (n > mem_limit() * 64 || (dev && g_used[d] + granule(n) > mem_limit())) return cudaErrorMemoryAllocation;
  u64 view = 0;
  void* q = vm_map(n, what == K_DEVICE && !kind(PAGES), view);
  if (!q) return cudaErrorMemoryAllocation;
  vm_add_alloc(q, n, what, d, false, view);
  memset(vm_at((u64)q), 0xCD, n);
  if (view) note_origin(q, n);
  if (dev) g_used[d] += granule(n);
  g_owned.insert((u64)q);
  *p = q;
  return 0;
}
static bool may_free(const Alloc* a, void* p, bool host) {
  if (a && a->lo == (u64)p && !g_freeing.count((u64)p) &&
      (host ? a->kind == K_PINNED : a->kind == K_DEVICE || a->kind == K_MANAGED))
    return true;
  fprintf(stderr, "ptxvm: free of an unknown, foreign or already freed pointer %p\n", p);
  return false;
}
// Frees the memory at once. Queued work that still uses this memory will fail.
static int mem_free(void* p, bool host) {
  if (!p) return 0;
  const Alloc* a = vm_find_alloc((u64)p);
  if (!may_free(a, p, host)) return cudaErrorInvalidValue;
  size_t n = a->hi - a->lo;
  if (!host) g_used[a->dev] -= granule(n);
  auto pooled = g_pooled.find((u64)p);
  if (pooled != g_pooled.end()) {
    pooled->second->used -= granule(n);
    g_pooled.erase(pooled);
  }
  const u64 view = a->view;
  g_hostflags.erase((u64)p);
  vm_del_alloc(p);
  vm_unmap(p, n, view);
  g_owned.erase((u64)p);
  return 0;
}
void reset_memory(int dev) {
  const std::set<u64> owned = g_owned;
  for (u64 p : owned) {
    const Alloc* a = vm_find_alloc(p);
    if (a->dev != dev) continue;
    g_freeing.erase(p);
    mem_free((void*)p, a->kind == K_PINNED);
  }
  for (Pool* pool : g_pools)
    if (pool->dev == dev) pool->idle = 0;
}
// Runs a queued cudaFreeAsync.
static void free_queued(void* p) {
  g_freeing.erase((u64)p);
  const Alloc* a = vm_find_alloc((u64)p);
  const size_t bytes = granule(a->hi - a->lo);
  auto pooled = g_pooled.find((u64)p);
  if (pooled != g_pooled.end() && !kind(FREED)) pooled->second->idle += bytes;
  mem_free(p, false);
}
// CUDA's documentation says that calls that free memory may wait, but not that they do.
static int wait_to_free() {
  if (!kind(FREEING)) return 0;
  for (int d = 0; d < device_count(); d++) run_device(d);
  return surfaced();
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
  if (int r = wait_to_free()) return E(r);
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
  if (int r = wait_to_free()) return E(r);
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
  if (int r = wait_to_free()) return E(r);
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
  *f = *t - std::min(held, *t);  // mem_alloc() ignores idle memory, so held may exceed the limit
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
  if (a->type == cudaMemoryTypeHost)
    a->devicePointer = g_host_offset < 0 ? nullptr : (char*)p + g_host_offset;
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

// Stream-ordered allocation uses one pool per device, or pools that the program creates. A pool keeps freed
// memory until a call synchronises.
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
  if (!may_free(a, p, false)) return E(cudaErrorInvalidValue);
  g_freeing.insert((u64)p);
  Node n;
  n.type = cudaGraphNodeTypeHost;
  n.host = [p] { free_queued(p); };
  const int r = submit(s, std::move(n));
  return E(r || !kind(FREED) ? r : run_stream(s));
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

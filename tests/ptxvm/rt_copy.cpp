// SPDX-License-Identifier: Zlib
// Runtime API front end: copies, fills, symbols, and running a work item
#include "rt.h"

static bool inside(const void* p, size_t n, const char* what) {
  const Alloc* a = vm_find_alloc((u64)p);
  if (a && (u64)p + n > a->hi) {
    fprintf(stderr, "ptxvm: %s of %zu bytes at %p runs %llu bytes past its allocation of %llu bytes\n", what,
            n, p, (unsigned long long)((u64)p + n - a->hi), (unsigned long long)(a->hi - a->lo));
    return false;
  }
  return true;
}
static bool is_dev(const void* p) {
  const Alloc* a = vm_find_alloc((u64)p);
  return a && (a->kind == K_DEVICE || a->kind == K_MODULE);
}
static int do_copy(char* d, const char* s, size_t n, cudaMemcpyKind k) {
  if (!n) return 0;
  if (!d || !s || (unsigned)k > cudaMemcpyDefault)
    return !d || !s ? cudaErrorInvalidValue : cudaErrorInvalidMemcpyDirection;
  if (!inside(d, n, "copy to") || !inside(s, n, "copy from")) return cudaErrorInvalidValue;
  bool dd = is_dev(d), sd = is_dev(s), dh = !vm_find_alloc((u64)d), sh = !vm_find_alloc((u64)s);
  bool bad = (k == cudaMemcpyHostToDevice && (dh || sd)) || (k == cudaMemcpyDeviceToHost && (dd || sh)) ||
             (k == cudaMemcpyDeviceToDevice && (dh || sh)) || (k == cudaMemcpyHostToHost && (dd || sd));
  if (bad) {
    fprintf(stderr, "ptxvm: memcpy kind %d does not match its pointers (dst %s, src %s)\n", (int)k,
            dd ? "device" : "host", sd ? "device" : "host");
    return cudaErrorInvalidValue;
  }
  memmove(d, s, n);
  return 0;
}
static int copy_slices(const CopyOp& c) {
  for (size_t z = 0; z < c.depth; z++) {
    char* d = c.d + z * c.dslice;
    const char* s = c.s + z * c.sslice;
    for (size_t y = 0; y < c.h; y++)
      if (int r = do_copy(d + y * c.dpitch, s + y * c.spitch, c.w, c.kind)) return r;
    if (g_profile && c.w) prof_copy(d, s, c.w, c.h, c.dpitch, c.spitch);
  }
  return 0;
}
static int do_fill(const FillOp& f, int dev) {
  for (size_t y = 0; y < f.h; y++) {
    char* p = f.d + y * f.pitch;
    if (!f.w) break;
    if (!p || !vm_find_alloc((u64)p) || !inside(p, f.w, "memset")) {
      if (p && !vm_find_alloc((u64)p)) fprintf(stderr, "ptxvm: memset of %p: not device memory\n", (void*)p);
      return cudaErrorInvalidValue;
    }
    if (const Alloc* a = vm_find_alloc((u64)p); a->kind == K_DEVICE && a->dev != dev) {
      fprintf(stderr, "ptxvm: memset of memory of device %d by device %d\n", a->dev, dev);
      return cudaErrorInvalidValue;
    }
    for (size_t x = 0; x < f.w; x += f.esz) memcpy(p + x, &f.value, f.esz);
  }
  if (g_profile && f.w) prof_fill(f.d, f.w, f.h, f.pitch);
  return 0;
}
int run_node(const Node& n) {
  if (g_sticky) return g_sticky;
  if (g_pending || !n.enabled) return 0;  // the device already failed: queued work is dropped
  switch (n.type) {
    case cudaGraphNodeTypeKernel: return run_kernel(n.k, n.dev);
    case cudaGraphNodeTypeMemcpy: return copy_slices(n.c);
    case cudaGraphNodeTypeMemset: return do_fill(n.m, n.dev);
    case cudaGraphNodeTypeHost: n.host(); return 0;
    case cudaGraphNodeTypeEventRecord: record_event(n.ev); return 0;
    default: return 0;
  }
}
static Node copy_node(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h, cudaMemcpyKind k) {
  Node n;
  n.type = cudaGraphNodeTypeMemcpy;
  n.c = {(char*)d, (const char*)s, dp, sp, 0, 0, w, h, 1, k};
  return n;
}
static Node fill_node(void* d, size_t pitch, int v, size_t w, size_t h) {
  Node n;
  n.type = cudaGraphNodeTypeMemset;
  n.m = {(char*)d, pitch, w, h, (unsigned)(v & 255), 1};
  return n;
}
// A copy to pageable host memory completes before the call returns, so it surfaces earlier errors.
static int async_copy(Node&& n, cudaStream_t s) {
  if (g_pending && !vm_find_alloc((u64)n.c.d)) return g_sticky = g_pending;
  return submit(s, std::move(n));
}
API cudaError_t cudaMemcpy(void* d, const void* s, size_t n, cudaMemcpyKind k) {
  ENTER("memcpy", F_SYNC | F_NOCAP | F_LEGACY);
  return E(copy_slices({(char*)d, (const char*)s, 0, 0, 0, 0, n, 1, 1, k}));
}
API cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, cudaMemcpyKind k, cudaStream_t st) {
  ENTER("memcpy", 0);
  return E(async_copy(copy_node(d, 0, s, 0, n, 1, k), st));
}
API cudaError_t cudaMemcpy2D(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h,
                             cudaMemcpyKind k) {
  ENTER("memcpy", F_SYNC | F_NOCAP | F_LEGACY);
  if (w > dp || w > sp) return E(cudaErrorInvalidPitchValue);
  return E(run_node(copy_node(d, dp, s, sp, w, h, k)));
}
API cudaError_t cudaMemcpy2DAsync(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h,
                                  cudaMemcpyKind k, cudaStream_t st) {
  ENTER("memcpy", 0);
  if (w > dp || w > sp) return E(cudaErrorInvalidPitchValue);
  return E(async_copy(copy_node(d, dp, s, sp, w, h, k), st));
}
API cudaError_t cudaMemset(void* p, int v, size_t n) {
  ENTER("memset", F_NOCAP | F_LEGACY);
  return E(run_node(fill_node(p, 0, v, n, 1)));
}
API cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t s) {
  ENTER("memset", 0);
  return E(submit(s, fill_node(p, 0, v, n, 1)));
}
API cudaError_t cudaMemset2D(void* p, size_t pitch, int v, size_t w, size_t h) {
  ENTER("memset", F_NOCAP | F_LEGACY);
  return E(run_node(fill_node(p, pitch, v, w, h)));
}
API cudaError_t cudaMemset2DAsync(void* p, size_t pitch, int v, size_t w, size_t h, cudaStream_t s) {
  ENTER("memset", 0);
  return E(submit(s, fill_node(p, pitch, v, w, h)));
}
static int sym_node(Node& n, void* host, const void* sym, size_t cnt, size_t off, cudaMemcpyKind k, bool to) {
  size_t z;
  u8* p = var_ptr(sym, z);
  if (!p) return cudaErrorInvalidSymbol;
  if (off + cnt > z) return cudaErrorInvalidValue;
  n = to ? copy_node(p + off, 0, host, 0, cnt, 1, k) : copy_node(host, 0, p + off, 0, cnt, 1, k);
  return 0;
}
API cudaError_t cudaMemcpyToSymbol(const void* s, const void* src, size_t n, size_t off, cudaMemcpyKind k) {
  ENTER("memcpy", F_SYNC | F_NOCAP | F_LEGACY);
  Node q;
  int r = sym_node(q, (void*)src, s, n, off, k, true);
  return E(r ? r : run_node(q));
}
API cudaError_t cudaMemcpyFromSymbol(void* d, const void* s, size_t n, size_t off, cudaMemcpyKind k) {
  ENTER("memcpy", F_SYNC | F_NOCAP | F_LEGACY);
  Node q;
  int r = sym_node(q, d, s, n, off, k, false);
  return E(r ? r : run_node(q));
}
API cudaError_t cudaMemcpyToSymbolAsync(const void* s, const void* src, size_t n, size_t off,
                                        cudaMemcpyKind k, cudaStream_t st) {
  ENTER("memcpy", 0);
  Node q;
  int r = sym_node(q, (void*)src, s, n, off, k, true);
  return E(r ? r : submit(st, std::move(q)));
}
API cudaError_t cudaMemcpyFromSymbolAsync(void* d, const void* s, size_t n, size_t off, cudaMemcpyKind k,
                                          cudaStream_t st) {
  ENTER("memcpy", 0);
  Node q;
  int r = sym_node(q, d, s, n, off, k, false);
  return E(r ? r : async_copy(std::move(q), st));
}
API cudaError_t cudaGetSymbolAddress(void** d, const void* s) {
  ENTER("", 0);
  size_t z;
  *d = var_ptr(s, z);
  return *d ? cudaSuccess : E(cudaErrorInvalidSymbol);
}
API cudaError_t cudaGetSymbolSize(size_t* d, const void* s) {
  ENTER("", 0);
  return var_ptr(s, *d) ? cudaSuccess : E(cudaErrorInvalidSymbol);
}

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
static bool is_pageable(const void* p) { return !vm_find_alloc((u64)p); }
static int check_row(const char* d, const char* s, size_t n, cudaMemcpyKind k) {
  if (!n) return 0;
  if (!d || !s || (unsigned)k > cudaMemcpyDefault)
    return !d || !s ? cudaErrorInvalidValue : cudaErrorInvalidMemcpyDirection;
  if (!inside(d, n, "copy to") || !inside(s, n, "copy from")) return cudaErrorInvalidValue;
  bool dd = is_dev(d), sd = is_dev(s), dh = is_pageable(d), sh = is_pageable(s);
  bool bad = (k == cudaMemcpyHostToDevice && (dh || sd)) || (k == cudaMemcpyDeviceToHost && (dd || sh)) ||
             (k == cudaMemcpyDeviceToDevice && (dh || sh)) || (k == cudaMemcpyHostToHost && (dd || sd));
  if (!bad) return 0;
  fprintf(stderr, "ptxvm: memcpy kind %d does not match its pointers (dst %s, src %s)\n", (int)k,
          dd ? "device" : "host", sd ? "device" : "host");
  return cudaErrorInvalidValue;
}
static int each_row(const CopyOp& c, const std::function<int(char*, const char*)>& f) {
  for (size_t z = 0; z < c.depth; z++)
    for (size_t y = 0; y < c.h; y++)
      if (int r = f(c.d + z * c.dslice + y * c.dpitch, c.s + z * c.sslice + y * c.spitch)) return r;
  return 0;
}
static int check_copy(const CopyOp& c) {
  return each_row(c, [&](char* d, const char* s) { return check_row(d, s, c.w, c.kind); });
}
static void run_copy(const CopyOp& c) {
  if (!c.w) return;
  each_row(c, [&](char* d, const char* s) { return memmove(vm_at((u64)d), vm_at((u64)s), c.w), 0; });
  for (size_t z = 0; z < c.depth && g_profile; z++)
    prof_copy(c.d + z * c.dslice, c.s + z * c.sslice, c.w, c.h, c.dpitch, c.spitch);
}
static int check_fill(const FillOp& f, int dev) {
  for (size_t y = 0; y < f.h && f.w; y++) {
    char* p = f.d + y * f.pitch;
    if (!p || !vm_find_alloc((u64)p) || !inside(p, f.w, "memset")) {
      if (p && !vm_find_alloc((u64)p)) fprintf(stderr, "ptxvm: memset of %p: not device memory\n", (void*)p);
      return cudaErrorInvalidValue;
    }
    if (const Alloc* a = vm_find_alloc((u64)p); a->kind == K_DEVICE && a->dev != dev) {
      fprintf(stderr, "ptxvm: memset of memory of device %d by device %d\n", a->dev, dev);
      return cudaErrorInvalidValue;
    }
  }
  return 0;
}
static void run_fill(const FillOp& f) {
  if (!f.w) return;
  for (size_t y = 0; y < f.h; y++) {
    u8* p = vm_at((u64)f.d + y * f.pitch);
    for (size_t x = 0; x < f.w; x += f.esz) memcpy(p + x, &f.value, f.esz);
  }
  if (g_profile) prof_fill(f.d, f.w, f.h, f.pitch);
}
int check_node(const Node& n, int& fails) {
  if (n.type == cudaGraphNodeTypeMemcpy) return check_copy(n.c);
  if (n.type == cudaGraphNodeTypeMemset) return check_fill(n.m, n.dev);
  if (n.type != cudaGraphNodeTypeKernel) return 0;
  const Injected injected = inject("", "launch");
  if (injected.code && !injected.sticky) return injected.code;
  fails = injected.code;
  return 0;
}
u64 memory_known(const Node& n) {
  auto id = [](const void* p) {
    const Alloc* a = vm_find_alloc((u64)p);
    return a ? a->id : 0;
  };
  if (n.type == cudaGraphNodeTypeMemcpy) return id(n.c.d) << 32 ^ id(n.c.s);
  return n.type == cudaGraphNodeTypeMemset ? id(n.m.d) : 0;
}
void run_node(const Node& n, int fails, EarlyLaunch* begun) {
  if (g_sticky || g_pending) return;  // the device has failed, so queued work is dropped
  int r = fails;
  switch (n.type) {
    case cudaGraphNodeTypeKernel:
      if (!r) r = begun ? vm_resume(*begun) : run_kernel(n.k, n.dev);
      break;
    case cudaGraphNodeTypeMemcpy: run_copy(n.c); break;
    case cudaGraphNodeTypeMemset: run_fill(n.m); break;
    case cudaGraphNodeTypeHost: n.host(); break;
    case cudaGraphNodeTypeEventRecord: record_event(n.ev, n.ev_id); break;
    default: break;
  }
  if (r) g_pending = r;
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
// A copy from pageable memory to the device reads its source during the call.
static void stage(CopyOp& c) {
  if (!is_pageable(c.s) || !is_dev(c.d)) return;
  auto bytes = std::make_shared<std::vector<char>>();
  bytes->reserve(c.w * c.h * c.depth);
  each_row(c, [&](char*, const char* s) { return bytes->insert(bytes->end(), s, s + c.w), 0; });
  c.s = bytes->data();
  c.spitch = c.w;
  c.sslice = c.w * c.h;
  c.staged = std::move(bytes);
}
// A copy between host memories is complete when the call returns. Any other copy, even one to
// pageable memory, can run at any time until a wait for it has ended.
static int async_copy(Node&& n, cudaStream_t s) {
  if (is_capturing(s)) return submit(s, std::move(n));
  if (int r = check_copy(n.c)) return r;
  const bool on_host = !is_dev(n.c.d) && !is_dev(n.c.s);
  stage(n.c);
  const int r = submit(s, std::move(n));
  return r || !on_host ? r : run_stream(s);
}
// A copy from pageable memory to the device waits for the stream, but not for its own completion. A copy
// within the device does not wait.
static int blocking_copy(Node&& n) {
  if (int r = check_copy(n.c)) return r;
  const bool waits = !is_dev(n.c.d) || !(is_dev(n.c.s) || is_pageable(n.c.s));
  if (int r = is_dev(n.c.s) ? 0 : run_stream(nullptr)) return r;
  stage(n.c);
  const int r = submit(nullptr, std::move(n));
  return r || !waits ? r : run_stream(nullptr);
}
API cudaError_t cudaMemcpy(void* d, const void* s, size_t n, cudaMemcpyKind k) {
  ENTER("memcpy", F_SYNC | F_NOCAP | F_LEGACY);
  return E(blocking_copy(copy_node(d, 0, s, 0, n, 1, k)));
}
API cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, cudaMemcpyKind k, cudaStream_t st) {
  ENTER("memcpy", 0);
  return E(async_copy(copy_node(d, 0, s, 0, n, 1, k), st));
}
API cudaError_t cudaMemcpy2D(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h,
                             cudaMemcpyKind k) {
  ENTER("memcpy", F_SYNC | F_NOCAP | F_LEGACY);
  if (w > dp || w > sp) return E(cudaErrorInvalidPitchValue);
  return E(blocking_copy(copy_node(d, dp, s, sp, w, h, k)));
}
API cudaError_t cudaMemcpy2DAsync(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h,
                                  cudaMemcpyKind k, cudaStream_t st) {
  ENTER("memcpy", 0);
  if (w > dp || w > sp) return E(cudaErrorInvalidPitchValue);
  return E(async_copy(copy_node(d, dp, s, sp, w, h, k), st));
}
// Waits for the fill's completion if the host can access the memory.
static int blocking_fill(Node&& n) {
  const bool waits = !is_dev(n.m.d);
  const int r = submit(nullptr, std::move(n));
  return r || !waits ? r : run_stream(nullptr);
}
API cudaError_t cudaMemset(void* p, int v, size_t n) {
  ENTER("memset", F_NOCAP | F_LEGACY);
  return E(blocking_fill(fill_node(p, 0, v, n, 1)));
}
API cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t s) {
  ENTER("memset", 0);
  return E(submit(s, fill_node(p, 0, v, n, 1)));
}
API cudaError_t cudaMemset2D(void* p, size_t pitch, int v, size_t w, size_t h) {
  ENTER("memset", F_NOCAP | F_LEGACY);
  return E(blocking_fill(fill_node(p, pitch, v, w, h)));
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
  return E(r ? r : blocking_copy(std::move(q)));
}
API cudaError_t cudaMemcpyFromSymbol(void* d, const void* s, size_t n, size_t off, cudaMemcpyKind k) {
  ENTER("memcpy", F_SYNC | F_NOCAP | F_LEGACY);
  Node q;
  int r = sym_node(q, d, s, n, off, k, false);
  return E(r ? r : blocking_copy(std::move(q)));
}
API cudaError_t cudaMemcpyToSymbolAsync(const void* s, const void* src, size_t n, size_t off,
                                        cudaMemcpyKind k, cudaStream_t st) {
  ENTER("memcpy", 0);
  Node q;
  int r = sym_node(q, (void*)src, s, n, off, k, true);
  return E(r ? r : async_copy(std::move(q), st));
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

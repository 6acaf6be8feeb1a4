// SPDX-License-Identifier: Zlib
// Keeps the allocations that kernels may access, and their addresses.
#include <sys/mman.h>

#include "vm.h"

u32 g_alloc_epoch = 1;
static std::map<u64, Alloc> g_allocs;
// The profiler's models use their own addresses. Unlike host addresses, these are the same in every
// run. They are assigned in ascending order, and the most recently released address is reused
// first.
static std::map<u64, std::vector<u64>> g_free_va;  // span -> bases
static u64 va_span(u64 lo, u64 n) { return ((lo & 127) + n + 511) & ~511ull; }
static u64 take_va(u64 lo, u64 n) {
  static u64 next = 1 << 16;
  auto& reuse = g_free_va[va_span(lo, n)];
  u64 base = next;
  if (reuse.empty()) {
    next += va_span(lo, n);
  } else {
    base = reuse.back();
    reuse.pop_back();
  }
  return base + (lo & 127);
}
void vm_add_alloc(void* p, size_t n, u8 kind, int dev, bool ro, u64 view) {
  static u64 id = 0;
  g_allocs[(u64)p] = {(u64)p, (u64)p + n, kind, ro, take_va((u64)p, n), dev, ++id, view};
  g_alloc_epoch++;
}
bool vm_del_alloc(void* p) {
  auto it = g_allocs.find((u64)p);
  if (it == g_allocs.end()) return false;
  const Alloc& a = it->second;
  g_free_va[va_span(a.lo, a.hi - a.lo)].push_back(a.va & ~127ull);
  g_allocs.erase(it);
  g_alloc_epoch++;
  return true;
}
// Inaccessible pages follow the bytes of an allocation. If the host has no access, all pages at the
// allocation's addresses are inaccessible, and its bytes are mapped after these pages.
static size_t page_up(size_t n) { return (n + 4095) & ~4095ull; }
static size_t mapped(size_t n, bool apart) { return (page_up(n) + 8192) * (apart ? 2 : 1); }
void* vm_map(size_t n, bool apart, u64& view) {
  void* q = mmap(nullptr, mapped(n, apart), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (q == MAP_FAILED) return nullptr;
  view = apart ? mapped(n, false) : 0;
  mprotect((u8*)q + view, page_up(n), PROT_READ | PROT_WRITE);
  return q;
}
void vm_unmap(void* p, size_t n, u64 view) { munmap(p, mapped(n, view)); }
const Alloc* vm_find_alloc(u64 a) {
  auto it = g_allocs.upper_bound(a);
  if (it == g_allocs.begin()) return nullptr;
  --it;
  if (a >= it->second.hi && !(a == it->second.lo)) return nullptr;
  return &it->second;
}
const Alloc* vm_near_alloc(u64 a) {
  auto it = g_allocs.upper_bound(a);
  if (it == g_allocs.begin()) return nullptr;
  --it;
  return a < it->second.hi + 8192 ? &it->second : nullptr;
}
const Alloc* vm_find_view(const void* p) {
  // If the host has no access, the bytes are mapped `view` bytes after the allocation's addresses.
  auto it = g_allocs.upper_bound((u64)p);
  if (it == g_allocs.begin()) return nullptr;
  --it;
  u64 a = (u64)p - it->second.view;
  return a >= it->second.lo && a < it->second.hi ? &it->second : nullptr;
}
u8* vm_at(u64 a) {
  const Alloc* al = vm_find_alloc(a);
  return (u8*)a + (al ? al->view : 0);
}

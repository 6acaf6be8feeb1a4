// SPDX-License-Identifier: Zlib
// The host cannot access the addresses of device memory. If it tries, it faults, and a message names the
// memory and the call that allocated it.
#include <execinfo.h>
#include <signal.h>
#include <ucontext.h>

#include <thread>
#include <utility>

#include "rt.h"

namespace {
struct Origin {
  const char* api;
  u64 call;  // number of this call of the function, counted from 1
  u64 bytes;
  int depth;
  void* frames[16];
};
std::map<u64, Origin> g_origins;  // by address; entries of released memory stay
struct sigaction g_before;

const char* access_of(void* context) {
#if defined(__x86_64__)
  return ((ucontext_t*)context)->uc_mcontext.gregs[REG_ERR] & 2 ? "writes" : "reads";
#else
  return "accesses";
#endif
}
// Handles a fault of the host: prints the message, and restores the previous handler. The fault
// then happens again and ends the program.
void on_fault(int, siginfo_t* info, void* context) {
  sigaction(SIGSEGV, &g_before, nullptr);
  const u64 a = (u64)info->si_addr;
  std::unique_lock<std::recursive_mutex> quiet(api_mutex(), std::try_to_lock);
  for (int k = 0; !quiet && k < 100; k++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    quiet.try_lock();
  }
  if (const Alloc* al = vm_find_alloc(a); al && al->kind == K_MODULE) {
    fprintf(stderr, "ptxvm: the host %s device memory at %p: byte %llu of the %llu bytes of a variable\n",
            access_of(context), info->si_addr, (unsigned long long)(a - al->lo),
            (unsigned long long)(al->hi - al->lo));
    return;
  }
  auto it = g_origins.upper_bound(a);
  if (it == g_origins.begin()) return;
  --it;
  const Origin& o = it->second;
  if (a >= it->first + o.bytes) return;
  fflush(stdout);
  fprintf(stderr,
          "ptxvm: the host %s device memory at %p: byte %llu of the %llu bytes that call %llu of %s %s\n",
          access_of(context), info->si_addr, (unsigned long long)(a - it->first), (unsigned long long)o.bytes,
          (unsigned long long)o.call, o.api, vm_find_alloc(a) ? "allocated" : "allocated, now freed");
  fprintf(stderr, "ptxvm: that call came from\n");
  backtrace_symbols_fd(o.frames, o.depth, 2);
}
}  // namespace

void watch_pages() {
  static bool watched = false;
  if (std::exchange(watched, true) || kind(PAGES)) return;
  struct sigaction ours = {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &ours, &g_before);
}
void note_origin(const void* p, size_t n) {
  watch_pages();
  static std::map<std::string, u64> calls;
  auto call = calls.emplace(g_api, 0).first;
  Origin& o = g_origins[(u64)p];
  o.api = call->first.c_str();
  o.call = ++call->second;
  o.bytes = n;
  o.depth = backtrace(o.frames, 16);
}

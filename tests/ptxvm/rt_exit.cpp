// SPDX-License-Identifier: Zlib
// Runtime API front end: what happens when the program ends
#include "rt.h"

#include <thread>

// No static object of this library is ever destroyed. When the program ends, other threads may be inside the
// library, and the program's static destructors may still call it. This function replaces libc's function for
// this library only.
extern "C" int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }
__attribute__((destructor)) static void report_at_exit() {
  bool stats = env_long("PTXVM_STATS", 0);
  if (!stats && !g_profile) return;
  std::unique_lock<std::recursive_mutex> quiet(api_mutex(), std::try_to_lock);
  for (int k = 0; !quiet && k < 100; k++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    quiet.try_lock();
  }
  if (stats)
    fprintf(stderr, "ptxvm: %llu launches, %.1f M instructions, %llu kernels loaded\n",
            (unsigned long long)g_stats.launches, g_stats.instrs / 1e6, (unsigned long long)g_stats.loads);
  if (quiet)
    prof_write();
  else if (g_profile)
    fprintf(stderr, "ptxvm: no profile: a thread was running a kernel when the program ended\n");
}

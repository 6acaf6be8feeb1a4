// SPDX-License-Identifier: Zlib
// A library to preload into a test. Makes the C library report as many cores as the environment
// variable CORES says. The test then uses as many threads as on a machine with that many cores.
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

namespace {
int cores() { return std::atoi(std::getenv("CORES")); }
}  // namespace

extern "C" {

int sched_getaffinity(pid_t, size_t bytes, cpu_set_t* set) noexcept {
  CPU_ZERO_S(bytes, set);
  for (int core = 0; core < cores(); ++core) CPU_SET_S(core, bytes, set);
  return 0;
}

// Does nothing, because oneTBB passes the set of cores that it has read. This set may contain cores
// that do not exist.
int sched_setaffinity(pid_t, size_t, const cpu_set_t*) noexcept { return 0; }

long sysconf(int name) noexcept {
  if (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF) return cores();
  static const auto original = reinterpret_cast<long (*)(int)>(dlsym(RTLD_NEXT, "sysconf"));
  return original(name);
}
}

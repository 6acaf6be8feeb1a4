// SPDX-License-Identifier: Zlib
// Macros for checks, and a function that runs cases. If the program has no arguments, the function
// runs each case in a child process with the case's environment.
#pragma once
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

static std::atomic<int> bad{0};
#define IS(expr, want)                                                                              \
  do {                                                                                              \
    long long g_ = (long long)(expr), w_ = (long long)(want);                                       \
    if (g_ != w_) printf("  line %d: %s is %lld, expected %lld\n", __LINE__, #expr, g_, w_), bad++; \
  } while (0)
#define OK(expr) IS(expr, 0)
static void elsewhere(const std::function<void()>& f) { std::thread(f).join(); }
__global__ void inc(int* p) { p[threadIdx.x] += 1; }

template <class Kernel>
static void load(Kernel* k) {  // loads the kernel, so that its launch can be captured
  cudaFuncAttributes a;
  OK(cudaFuncGetAttributes(&a, k));
}
struct Case {
  const char* name;
  void (*f)();
  std::vector<const char*> env;  // name, value, ...
};
static int run_cases(int argc, char** argv, const std::vector<Case>& cases) {
  if (argc > 1) {
    for (auto& c : cases)
      if (!strcmp(c.name, argv[1])) {
        c.f ? c.f() : (void)cudaSetDevice(0);
        fflush(stdout);
        return bad ? 1 : 0;
      }
    return 3;
  }
  int failed = 0;
  for (auto& c : cases) {
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
      for (size_t k = 0; k + 1 < c.env.size(); k += 2) setenv(c.env[k], c.env[k + 1], 1);
      alarm(60);  // ends a case that hangs
      execl("/proc/self/exe", argv[0], c.name, (char*)nullptr);
      _exit(4);
    }
    int st = 0;
    waitpid(pid, &st, 0);
    bool ok = WIFEXITED(st) && WEXITSTATUS(st) == (c.f ? 0 : 2);
    printf("%-20s %s\n", c.name, ok ? "OK" : "WRONG");
    failed += !ok;
  }
  return failed;
}

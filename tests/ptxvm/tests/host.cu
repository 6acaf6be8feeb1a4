// A host program's surroundings: several devices, other threads, captures and errors that are not ours.
// Without arguments runs every case in a child process with its environment.
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

__global__ void inc(int* p) { p[threadIdx.x] += 1; }
__global__ void both(int* p, const int* q) { p[threadIdx.x] = q[threadIdx.x]; }
static std::atomic<int> bad{0};
#define IS(expr, want)                                                                              \
  do {                                                                                              \
    long long g_ = (long long)(expr), w_ = (long long)(want);                                       \
    if (g_ != w_) printf("  line %d: %s is %lld, expected %lld\n", __LINE__, #expr, g_, w_), bad++; \
  } while (0)
#define OK(expr) IS(expr, 0)
static void elsewhere(const std::function<void()>& f) { std::thread(f).join(); }

// ---- PTXVM_DEVICES=2
static void current_device() {
  int n, d = 7;
  OK(cudaGetDeviceCount(&n));
  IS(n, 2);
  OK(cudaGetDevice(&d));
  IS(d, 0);
  for (int wrong : {-1, 2}) {
    IS(cudaSetDevice(wrong), cudaErrorInvalidDevice);
    IS(cudaInitDevice(wrong, 0, 0), cudaErrorInvalidDevice);
  }
  OK(cudaGetDevice(&d));
  IS(d, 0);
  OK(cudaSetDevice(1));
  elsewhere([] {  // each thread has its own
    int e = 7;
    OK(cudaGetDevice(&e));
    IS(e, 0);
  });
  OK(cudaInitDevice(0, 0, 0));
  OK(cudaGetDevice(&d));
  IS(d, 1);
  cudaDeviceProp p, q;
  OK(cudaGetDeviceProperties(&p, 0));
  OK(cudaGetDeviceProperties(&q, 1));
  IS(strcmp(p.name, "ptxvm (CPU PTX interpreter)"), 0);
  IS(strstr(q.name, "ptxvm") != nullptr && strstr(q.name, "device 1") != nullptr, 1);
  IS(cudaGetDeviceProperties(&p, 2), cudaErrorInvalidDevice);
  char id[20];
  OK(cudaDeviceGetPCIBusId(id, 20, 1));
  OK(cudaDeviceGetByPCIBusId(&d, id));
  IS(d, 1);
}
static void streams_of_devices() {
  cudaStream_t s[2];
  cudaEvent_t e[2];
  int *p[2], h[16];
  for (int k : {0, 1}) {
    OK(cudaSetDevice(k));
    OK(cudaMalloc(&p[k], 64));
    OK(cudaStreamCreate(&s[k]));
    OK(cudaEventCreate(&e[k]));
    OK(cudaMemset(p[k], 0, 64));
    inc<<<1, 16>>>(p[k]);
    inc<<<1, 16, 0, s[k]>>>(p[k]);
    OK(cudaGetLastError());
    OK(cudaEventRecord(e[k], s[k]));
  }
  // device 1 is current: launches need it, copies, fills and waits do not
  inc<<<1, 16, 0, s[0]>>>(p[0]);
  IS(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  OK(cudaMemcpyAsync(h, p[0], 64, cudaMemcpyDeviceToHost, s[0]));
  OK(cudaStreamSynchronize(s[0]));
  IS(h[3], 2);
  OK(cudaMemsetAsync(p[0], 0, 64, s[0]));
  OK(cudaStreamQuery(s[0]));
  OK(cudaEventRecord(e[0], s[0]));
  IS(cudaEventRecord(e[0], s[1]), cudaErrorInvalidResourceHandle);
  IS(cudaEventRecord(e[0]), cudaErrorInvalidResourceHandle);
  OK(cudaStreamWaitEvent(s[1], e[0], 0));
  OK(cudaEventQuery(e[0]));
  OK(cudaEventSynchronize(e[0]));
  float ms;
  IS(cudaEventElapsedTime(&ms, e[0], e[1]), cudaErrorInvalidResourceHandle);
  int d;
  OK(cudaStreamGetDevice(s[0], &d));
  IS(d, 0);
  OK(cudaStreamGetDevice(nullptr, &d));
  IS(d, 1);
  cudaGetLastError();
  for (int k : {0, 1}) {
    OK(cudaStreamDestroy(s[k]));
    OK(cudaEventDestroy(e[k]));
    OK(cudaFree(p[k]));
  }
}
static void memory_of_devices() {  // PTXVM_MEM_MB=16
  void *p[2], *q, *managed, *async;
  size_t f, t;
  cudaStream_t s1;
  OK(cudaMalloc(&p[0], 10 << 20));
  OK(cudaSetDevice(1));
  OK(cudaStreamCreate(&s1));
  OK(cudaMemGetInfo(&f, &t));
  IS(f, 16 << 20);
  OK(cudaMalloc(&p[1], 10 << 20));
  IS(cudaMalloc(&q, 10 << 20), cudaErrorMemoryAllocation);
  OK(cudaMallocManaged(&managed, 1 << 20));
  cudaPointerAttributes a;
  for (int k : {0, 1}) {
    OK(cudaPointerGetAttributes(&a, p[k]));
    IS(a.device, k);
  }
  OK(cudaSetDevice(0));
  OK(cudaMallocAsync(&async, 1 << 20, s1));  // from the stream's device
  OK(cudaPointerGetAttributes(&a, async));
  IS(a.device, 1);
  OK(cudaMemGetInfo(&f, &t));
  IS(f, 6 << 20);
  OK(cudaFreeAsync(async, s1));
  IS(cudaMemsetAsync(p[0], 0, 64, s1), cudaErrorInvalidValue);
  OK(cudaMemcpyAsync(p[0], p[1], 64, cudaMemcpyDefault, s1));
  OK(cudaFree(p[1]));  // whatever device is current
  OK(cudaFree(managed));
  OK(cudaSetDevice(1));
  OK(cudaMemGetInfo(&f, &t));
  IS(f, 16 << 20);
  cudaMemPool_t pool, of[2];
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location = {cudaMemLocationTypeDevice, 1};
  OK(cudaMemPoolCreate(&pool, &props));
  for (int k : {0, 1}) OK(cudaDeviceGetDefaultMemPool(&of[k], k));
  IS(of[0] != of[1], 1);
  IS(cudaDeviceSetMemPool(0, pool), cudaErrorInvalidValue);
  OK(cudaDeviceSetMemPool(1, pool));
  OK(cudaMallocAsync(&async, 1 << 20, s1));
  unsigned long long used;
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  IS(used, 1 << 20);
  OK(cudaMemPoolGetAttribute(of[1], cudaMemPoolAttrUsedMemCurrent, &used));
  IS(used, 0);
  OK(cudaFreeAsync(async, s1));
  OK(cudaMemPoolDestroy(pool));
}
static void no_peer_access() {
  int *p[2], can = 7, h[16];
  for (int k : {0, 1}) {
    OK(cudaSetDevice(k));
    OK(cudaMalloc(&p[k], 64));
    OK(cudaMemset(p[k], k, 64));
  }
  OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  IS(can, 0);
  IS(cudaDeviceCanAccessPeer(&can, 0, 2), cudaErrorInvalidDevice);
  cudaGetLastError();
  for (int k : {0, 1}) {
    OK(cudaSetDevice(k));
    both<<<1, 16>>>(p[k], p[k]);
    OK(cudaMemcpy(h, p[k], 64, cudaMemcpyDeviceToHost));
    IS(h[7], k * 0x01010101);
  }
  OK(cudaSetDevice(0));
  both<<<1, 16>>>(p[1], p[1]);  // what worked on device 1 a moment ago
  IS(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}
static void graphs_of_devices() {
  cudaStream_t s[2];
  int *p[2], h[16];
  for (int k : {0, 1}) {
    OK(cudaSetDevice(k));
    OK(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
    OK(cudaMalloc(&p[k], 64));
    OK(cudaMemset(p[k], 0, 64));
  }
  cudaGraph_t g;
  cudaGraphExec_t x;
  OK(cudaStreamBeginCapture(s[1], cudaStreamCaptureModeThreadLocal));
  inc<<<1, 16, 0, s[1]>>>(p[1]);
  OK(cudaStreamEndCapture(s[1], &g));
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaSetDevice(0));
  OK(cudaGraphLaunch(x, s[1]));
  IS(cudaGraphLaunch(x, s[0]), cudaErrorInvalidValue);
  IS(cudaGraphLaunch(x, nullptr), cudaErrorInvalidValue);
  OK(cudaMemcpy(h, p[1], 64, cudaMemcpyDeviceToHost));
  IS(h[0], 1);
  cudaGetLastError();
  // the legacy stream of one device does not meet the streams of another
  cudaStream_t blocking;
  OK(cudaStreamCreate(&blocking));
  OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeThreadLocal));
  OK(cudaSetDevice(1));
  inc<<<1, 16>>>(p[1]);
  OK(cudaGetLastError());
  OK(cudaSetDevice(0));
  inc<<<1, 16>>>(p[0]);
  IS(cudaGetLastError(), cudaErrorStreamCaptureImplicit);
  IS(cudaStreamEndCapture(blocking, &g), cudaErrorStreamCaptureInvalidated);
}

// ---- errors that wait for cudaGetLastError
static int (*control())(const char*, long) {  // not there on a real runtime
  return (int (*)(const char*, long))dlsym(RTLD_DEFAULT, "ptxvm_control");
}
static void not_ready() {
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  IS(control() != nullptr, 1);
  if (!control()) return;
  OK(control()("events_pending", 2));
  IS(cudaEventQuery(e), cudaErrorNotReady);
  IS(cudaPeekAtLastError(), cudaErrorNotReady);  // it counts as an error
  elsewhere([&] {
    OK(cudaPeekAtLastError());  // of the other thread
    IS(cudaStreamQuery(nullptr), cudaErrorNotReady);
    IS(cudaGetLastError(), cudaErrorNotReady);
    OK(cudaGetLastError());
    OK(cudaEventQuery(e));
  });
  OK(cudaEventQuery(e));
  IS(cudaGetLastError(), cudaErrorNotReady);  // a success does not clear it
  OK(cudaGetLastError());
  IS(control()("no such thing", 1), cudaErrorInvalidValue);
}
static void not_ready_injected() {  // cudaEventQuery:1=600
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  IS(cudaEventQuery(e), cudaErrorNotReady);
  OK(cudaEventQuery(e));
  IS(cudaGetLastError(), cudaErrorNotReady);
}
static void fail_next() {
  void* p = nullptr;
  OK(control()("fail_next_any", cudaErrorMemoryAllocation));
  elsewhere([] { OK(cudaDeviceSynchronize()); });
  IS(cudaMalloc(&p, 64), cudaErrorMemoryAllocation);
  IS(p == nullptr, 1);
  OK(cudaMalloc(&p, 64));
  IS(cudaGetLastError(), cudaErrorMemoryAllocation);
  OK(cudaFree(p));
}

// ---- PTXVM_DELAY
static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
static void delays() {  // cudaMalloc:2=1000,launch:2=200,sync:every3=100
  void *p, *q;
  double t, shortest = 1;
  OK(cudaMalloc(&p, 64));
  OK(cudaMemset(p, 0, 64));
  inc<<<1, 16>>>((int*)p);
  t = now();
  inc<<<1, 16>>>((int*)p);
  IS(now() - t >= 0.2, 1);
  for (int k = 1; k <= 6; k++) {
    t = now();
    OK(cudaStreamSynchronize(nullptr));
    if (k % 3 == 0)
      IS(now() - t >= 0.1, 1);
    else
      shortest = std::min(shortest, now() - t);
  }
  IS(shortest < 0.1, 1);
  std::atomic<bool> over{false};
  std::thread slow([&] {
    double b = now();
    OK(cudaMalloc(&q, 64));
    IS(now() - b >= 1, 1);
    over = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (int k = 0; k < 10; k++) inc<<<1, 16>>>((int*)p);  // others go on meanwhile
  IS(over, 0);
  slow.join();
  int h[16];
  OK(cudaMemcpy(h, p, 64, cudaMemcpyDeviceToHost));
  IS(h[2], 12);
}

struct Case {
  const char* name;
  void (*f)();
  std::vector<const char*> env;  // name, value, ...
};
static const Case cases[] = {
    {"current_device", current_device, {"PTXVM_DEVICES", "2"}},
    {"streams", streams_of_devices, {"PTXVM_DEVICES", "2"}},
    {"memory", memory_of_devices, {"PTXVM_DEVICES", "2", "PTXVM_MEM_MB", "16"}},
    {"no_peer_access", no_peer_access, {"PTXVM_DEVICES", "2"}},
    {"graphs", graphs_of_devices, {"PTXVM_DEVICES", "2"}},
    {"not_ready", not_ready, {}},
    {"not_ready_injected", not_ready_injected, {"PTXVM_FAIL", "cudaEventQuery:1=600"}},
    {"fail_next", fail_next, {}},
    {"delays", delays, {"PTXVM_DELAY", "cudaMalloc:2=1000,launch:2=200,sync:every3=100"}},
    {"bad_delay", nullptr, {"PTXVM_DELAY", "cudaMalloc:1=5:sticky"}}};
int main(int argc, char** argv) {
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
      alarm(60);  // a hang ends the case
      execl("/proc/self/exe", "host", c.name, (char*)nullptr);
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

// SPDX-License-Identifier: Zlib
// Tests the runtime API: several devices, threads, errors that queries return, slow calls, and the end of the
// program.
#include "cases.h"

__global__ void both(int* p, const int* q) { p[threadIdx.x] = q[threadIdx.x]; }
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
  elsewhere([] {  // each thread has its own current device
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
  // Device 1 is current. Launches need the stream's device to be current. Copies, fills and waits do not.
  inc<<<1, 16, 0, s[0]>>>(p[0]);
  IS(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  OK(cudaMemcpyAsync(h, p[0], 64, cudaMemcpyDeviceToHost, s[0]));
  OK(cudaStreamSynchronize(s[0]));
  IS(h[3], 2);
  OK(cudaMemsetAsync(p[0], 0, 64, s[0]));
  IS(cudaStreamQuery(s[0]), cudaErrorNotReady);
  OK(cudaStreamQuery(s[0]));
  OK(cudaEventRecord(e[0], s[0]));
  IS(cudaEventRecord(e[0], s[1]), cudaErrorInvalidResourceHandle);
  IS(cudaEventRecord(e[0]), cudaErrorInvalidResourceHandle);
  OK(cudaStreamWaitEvent(s[1], e[0], 0));
  OK(cudaEventSynchronize(e[0]));
  OK(cudaEventQuery(e[0]));
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
  OK(cudaMallocAsync(&async, 1 << 20, s1));  // allocates on the stream's device
  OK(cudaPointerGetAttributes(&a, async));
  IS(a.device, 1);
  OK(cudaMemGetInfo(&f, &t));
  IS(f, 6 << 20);
  OK(cudaFreeAsync(async, s1));
  IS(cudaMemsetAsync(p[0], 0, 64, s1), cudaErrorInvalidValue);
  OK(cudaMemcpyAsync(p[0], p[1], 64, cudaMemcpyDefault, s1));
  OK(cudaStreamSynchronize(s1));
  OK(cudaFree(p[1]));  // works for memory of any device
  OK(cudaFree(managed));
  OK(cudaSetDevice(1));
  OK(cudaStreamSynchronize(s1));
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
  both<<<1, 16>>>(p[1], p[1]);  // the same launch worked on device 1
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
    OK(cudaDeviceSynchronize());
    load(inc);
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
  OK(cudaStreamSynchronize(s[1]));
  OK(cudaMemcpy(h, p[1], 64, cudaMemcpyDeviceToHost));
  IS(h[0], 1);
  cudaGetLastError();
  // The legacy stream of one device does not affect streams of another device.
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

// ---- errors that stay until cudaGetLastError
static int (*control())(const char*, long) {  // returns null on a real runtime
  return (int (*)(const char*, long))dlsym(RTLD_DEFAULT, "ptxvm_control");
}
static void not_ready() {
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  IS(control() != nullptr, 1);
  if (!control()) return;
  OK(control()("events_pending", 2));
  IS(cudaEventQuery(e), cudaErrorNotReady);
  IS(cudaPeekAtLastError(), cudaErrorNotReady);  // cudaErrorNotReady is recorded like other errors
  elsewhere([&] {
    OK(cudaPeekAtLastError());  // the other thread has no error
    IS(cudaStreamQuery(nullptr), cudaErrorNotReady);
    IS(cudaGetLastError(), cudaErrorNotReady);
    OK(cudaGetLastError());
    OK(cudaEventQuery(e));
  });
  OK(cudaEventQuery(e));
  IS(cudaGetLastError(), cudaErrorNotReady);  // the success did not clear the error
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

static __global__ void store8(ulonglong1* p, unsigned* q) {
  p[threadIdx.x].x = 0;
  q[threadIdx.x] = 0;
}
static void spoils() {
  unsigned long long *p, got[4];
  unsigned* q;
  OK(cudaMalloc(&p, sizeof got));
  OK(cudaMalloc(&q, 16));
  for (long n : {3, 0}) {
    OK(control()("spoil store8", n));
    for (int launch = 0; launch < 2; launch++) {
      store8<<<1, 4>>>((ulonglong1*)p, q);
      OK(cudaMemcpy(got, p, sizeof got, cudaMemcpyDeviceToHost));
      for (int k = 0; k < 4; k++) IS(got[k] >> 32, n == 3 && launch == 0 && k == 2);
      for (int k = 0; k < 4; k++) IS((unsigned)got[k], 0);
    }
  }
  OK(control()("spoil no_such_kernel", 1));
  store8<<<1, 4>>>((ulonglong1*)p, q);
  OK(cudaMemcpy(got, p, sizeof got, cudaMemcpyDeviceToHost));
  for (int k = 0; k < 4; k++) IS(got[k], 0);
}

// ---- PTXVM_NO_PDL
static cudaError_t launch_early(int* p, int allowed) {
  cudaLaunchAttribute a{};
  a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  a.val.programmaticStreamSerializationAllowed = allowed;
  cudaLaunchConfig_t c{};
  c.gridDim = 1;
  c.blockDim = 16;
  c.attrs = &a;
  c.numAttrs = 1;
  return cudaLaunchKernelEx(&c, inc, p);
}
static void early(cudaError_t expected) {
  int *p, h[16];
  OK(cudaMalloc(&p, 64));
  OK(cudaMemset(p, 0, 64));
  OK(launch_early(p, 0));
  IS(launch_early(p, 1), expected);
  IS(cudaGetLastError(), expected);
  OK(cudaMemcpy(h, p, 64, cudaMemcpyDeviceToHost));
  IS(h[3], expected == cudaSuccess ? 2 : 1);
}
static void early_launch() { early(cudaSuccess); }
static void early_refused() { early(cudaErrorNotSupported); }
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
  for (int k = 0; k < 10; k++) inc<<<1, 16>>>((int*)p);  // other threads can make calls meanwhile
  IS(over, 0);
  slow.join();
  int h[16];
  OK(cudaMemcpy(h, p, 64, cudaMemcpyDeviceToHost));
  IS(h[2], 12);
}

// ---- threads
static void threads() {  // each thread has its own errors, device and captures
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaGraph_t graph;
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  OK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal));
  elsewhere([] {
    cudaStreamCaptureMode m = cudaStreamCaptureModeGlobal;
    OK(cudaThreadExchangeStreamCaptureMode(&m));
    IS(m, cudaStreamCaptureModeGlobal);
    cudaStreamCaptureStatus c;
    OK(cudaStreamIsCapturing(cudaStreamPerThread, &c));  // this is another stream
    IS(c, cudaStreamCaptureStatusNone);
    OK(cudaStreamSynchronize(cudaStreamPerThread));
  });
  OK(cudaStreamEndCapture(cudaStreamPerThread, &graph));
  OK(cudaGraphDestroy(graph));
  std::vector<std::thread> th;
  for (int k = 0; k < 6; k++)
    th.emplace_back([k] {
      int *p, h[32], d;
      cudaStream_t own, s;
      OK(cudaSetDevice(k % 3));
      OK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
      s = k % 2 ? own : cudaStreamPerThread;
      load(inc);
      OK(cudaMallocAsync((void**)&p, 128, s));
      OK(cudaMemsetAsync(p, 0, 128, s));
      for (int i = 0; i < 20; i++) {
        cudaGraph_t g;
        cudaGraphExec_t x;
        OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
        for (int n = 0; n <= k; n++) inc<<<1, 32, 0, s>>>(p);
        if (k == 1) IS(cudaSetDevice(99), cudaErrorInvalidDevice);
        IS(cudaPeekAtLastError(), k == 1 ? cudaErrorInvalidDevice : cudaSuccess);
        OK(cudaStreamEndCapture(s, &g));
        OK(cudaGraphInstantiate(&x, g, 0));
        OK(cudaGraphLaunch(x, s));
        inc<<<1, 32, 0, s>>>(p);
        OK(cudaStreamSynchronize(s));
        OK(cudaGraphExecDestroy(x));
        OK(cudaGraphDestroy(g));
      }
      IS(cudaGetLastError(), k == 1 ? cudaErrorInvalidDevice : cudaSuccess);
      OK(cudaMemcpyAsync(h, p, 128, cudaMemcpyDeviceToHost, s));
      OK(cudaStreamSynchronize(s));
      IS(h[31], 20 * (k + 2));
      OK(cudaGetDevice(&d));
      IS(d, k % 3);
      OK(cudaFreeAsync(p, s));
      OK(cudaStreamDestroy(own));
    });
  for (auto& t : th) t.join();
}

// ---- the program ends while other threads are inside the library
// Alternates between two pointers, so that every access looks up its allocation.
__global__ void endless(int* p, int* q) {
  for (volatile int k = 0;; k++) atomicAdd(k & 1 ? p : q, 1);
}
// A process flushes its files last, after all destructors. Flushing this file takes a long time.
static void leave_slowly() {
  cookie_io_functions_t io{};
  io.write = [](void*, const char*, size_t n) -> ssize_t {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return n;
  };
  fputs("x", fopencookie(nullptr, "w", io));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
}
static void exit_in_kernel() {
  static int *p, *q;
  OK(cudaMalloc(&p, 64));
  OK(cudaMalloc(&q, 64));
  std::thread([] { endless<<<1, 1>>>(p, q), cudaDeviceSynchronize(); }).detach();
  leave_slowly();
}
static void exit_in_delay() {  // cudaMalloc:every1=100
  for (int k = 0; k < 4; k++)
    std::thread([] {
      void* p;
      for (;;) cudaMalloc(&p, 64), cudaFree(p);
    }).detach();
  leave_slowly();
}
static void exit_in_calls() {
  for (int k = 0; k < 4; k++)
    std::thread([] {
      int* p;
      cudaEvent_t e[8];
      for (;;) {
        cudaMalloc(&p, 64);
        for (auto& x : e) cudaEventCreate(&x);
        inc<<<1, 16>>>(p);
        for (auto& x : e) cudaEventDestroy(x);
        cudaDeviceSynchronize();
        cudaFree(p);
      }
    }).detach();
  leave_slowly();
}

int main(int argc, char** argv) {
  return run_cases(argc, argv,
                   {{"current_device", current_device, {"PTXVM_DEVICES", "2"}},
                    {"streams", streams_of_devices, {"PTXVM_DEVICES", "2"}},
                    {"memory", memory_of_devices, {"PTXVM_DEVICES", "2", "PTXVM_MEM_MB", "16"}},
                    {"no_peer_access", no_peer_access, {"PTXVM_DEVICES", "2"}},
                    {"graphs", graphs_of_devices, {"PTXVM_DEVICES", "2"}},
                    {"not_ready", not_ready, {}},
                    {"not_ready_injected", not_ready_injected, {"PTXVM_FAIL", "cudaEventQuery:1=600"}},
                    {"fail_next", fail_next, {}},
                    {"spoils", spoils, {}},
                    {"early_launch", early_launch, {}},
                    {"early_refused", early_refused, {"PTXVM_NO_PDL", "1"}},
                    {"delays", delays, {"PTXVM_DELAY", "cudaMalloc:2=1000,launch:2=200,sync:every3=100"}},
                    {"threads", threads, {"PTXVM_DEVICES", "3"}},
                    {"exit_in_kernel", exit_in_kernel, {"PTXVM_STATS", "1"}},
                    {"exit_in_delay", exit_in_delay, {"PTXVM_DELAY", "cudaMalloc:every1=100"}},
                    {"exit_in_calls", exit_in_calls, {}},
                    {"bad_delay", nullptr, {"PTXVM_DELAY", "cudaMalloc:1=5:sticky"}}});
}

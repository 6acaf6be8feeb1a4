// SPDX-License-Identifier: Zlib
// Tests that CUDA's documented guarantees hold, although work runs only when it is waited for.
#include "cases.h"

__global__ void add(int* p, int v) { p[threadIdx.x] += v; }
__global__ void times(int* p, int v) { p[threadIdx.x] *= v; }
static cudaStream_t stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t s;
  OK(cudaStreamCreateWithFlags(&s, flags));
  return s;
}
static cudaEvent_t event() {
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  return e;
}
static int* words(int v = 1) {
  static int h[16];
  for (int& x : h) x = v;
  int* p;
  OK(cudaMalloc(&p, 64));
  OK(cudaMemcpy(p, h, 64, cudaMemcpyHostToDevice));
  OK(cudaDeviceSynchronize());
  return p;
}
static int first(const int* p) {
  int h = -1;
  OK(cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost));
  return h;
}
static void legacy_and_blocking() {  // the default stream and blocking streams wait for each other
  int* p = words();
  cudaStream_t s = stream(cudaStreamDefault), t = stream(cudaStreamDefault);
  add<<<1, 16, 0, s>>>(p, 2);
  times<<<1, 16>>>(p, 5);
  add<<<1, 16, 0, t>>>(p, 1);
  OK(cudaStreamSynchronize(t));
  IS(first(p), 16);
  add<<<1, 16, 0, cudaStreamPerThread>>>(p, 4);
  IS(first(p), 20);
  add<<<1, 16, 0, s>>>(p, 1);
  OK(cudaMemset(p, 0, 64));
  add<<<1, 16, 0, t>>>(p, 7);
  OK(cudaDeviceSynchronize());
  IS(first(p), 7);
}
static void events() {
  int* p = words();
  cudaStream_t s = stream(), t = stream(), u = stream();
  cudaEvent_t e = event(), f = event();
  add<<<1, 16, 0, s>>>(p, 2);
  OK(cudaEventRecord(e, s));
  OK(cudaStreamWaitEvent(t, e, 0));
  times<<<1, 16, 0, t>>>(p, 5);
  OK(cudaEventRecord(f, t));
  OK(cudaEventRecord(e, u));  // recording again does not change what t waits for
  OK(cudaStreamWaitEvent(u, f, 0));
  add<<<1, 16, 0, u>>>(p, 1);
  add<<<1, 16, 0, s>>>(p, 1000);  // later work, which u does not wait for
  OK(cudaStreamSynchronize(u));
  IS(first(p), 16);
  OK(cudaDeviceSynchronize());
  IS(first(p), 1016);
  float ms;
  add<<<1, 16, 0, s>>>(p, 1);
  OK(cudaEventRecord(e, s));
  IS(cudaEventElapsedTime(&ms, f, e), cudaErrorNotReady);
  OK(cudaEventSynchronize(e));
  OK(cudaEventElapsedTime(&ms, f, e));
  IS(first(p), 1017);
}
static void copies() {
  int *p = words(), *q = words(3), h[16] = {5}, *pinned;
  cudaStream_t s = stream();
  OK(cudaMemcpyAsync(p, h, 64, cudaMemcpyHostToDevice, s));
  h[0] = 6;  // the copy has already read the bytes
  OK(cudaStreamSynchronize(s));
  IS(first(p), 5);
  OK(cudaMallocHost(&pinned, 64));
  *pinned = 8;
  OK(cudaMemcpy(p, pinned, 64, cudaMemcpyHostToDevice));  // the copy is complete when the call returns
  *pinned = 9;
  add<<<1, 16, 0, s>>>(p, 1);
  OK(cudaStreamSynchronize(s));
  IS(first(p), 9);
  OK(cudaMemcpyAsync(pinned, h, 64, cudaMemcpyHostToHost, s));
  IS(*pinned, 6);
  OK(cudaMemcpy(p, q, 64, cudaMemcpyDeviceToDevice));
  add<<<1, 16>>>(p, 1);
  OK(cudaMemcpy2D(pinned, 8, p, 8, 8, 2, cudaMemcpyDeviceToHost));
  IS(*pinned, 4);
  OK(cudaMemset(pinned, 0, 64));  // a fill of host memory is complete when the call returns
  IS(*pinned, 0);
}
static void memory() {
  int* p;
  void* q;
  cudaStream_t s = stream();
  OK(cudaMallocAsync((void**)&p, 10 << 20, s));
  OK(cudaMemsetAsync(p, 0, 64, s));
  add<<<1, 16, 0, s>>>(p, 1);
  OK(cudaFreeAsync(p, s));  // takes effect after the kernel
  IS(cudaFreeAsync(p, s), cudaErrorInvalidValue);
  IS(cudaFree(p), cudaErrorInvalidValue);
  OK(cudaMallocAsync(&q, 10 << 20, s));  // with PTXVM_MEM_MB=16 this needs the memory that the stream frees
  OK(cudaFreeAsync(q, s));
  OK(cudaStreamSynchronize(s));
  size_t free, all;
  OK(cudaMemGetInfo(&free, &all));
  IS(free, all);
}
static void destroyed_with_work() {
  int* p = words();
  cudaStream_t s = stream();
  cudaEvent_t e = event();
  add<<<1, 16, 0, s>>>(p, 2);
  OK(cudaEventRecord(e, s));
  OK(cudaEventDestroy(e));
  OK(cudaStreamDestroy(s));
  OK(cudaDeviceSynchronize());
  IS(first(p), 3);
}
static int calls;
static void host_functions() {
  int* p = words();
  cudaStream_t s = stream();
  add<<<1, 16, 0, s>>>(p, 2);
  OK(cudaLaunchHostFunc(
      s, [](void*) { calls++; }, nullptr));
  OK(cudaStreamAddCallback(
      s, [](cudaStream_t, cudaError_t e, void*) { calls += e ? 100 : 10; }, nullptr, 0));
  IS(calls, 0);
  OK(cudaStreamSynchronize(s));
  IS(calls, 11);
}
static void graphs() {
  int* p = words();
  cudaStream_t s = stream(), t = stream();
  cudaEvent_t e = event();
  cudaGraph_t g, h;
  cudaGraphExec_t x;
  auto record = [&](int v) {
    cudaGraph_t made;
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    add<<<1, 16, 0, s>>>(p, v);
    OK(cudaEventRecordWithFlags(e, s, cudaEventRecordExternal));
    times<<<1, 16, 0, s>>>(p, 10);
    OK(cudaStreamEndCapture(s, &made));
    return made;
  };
  load(add);
  load(times);
  g = record(1);
  h = record(2);
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphLaunch(x, s));
  cudaGraphExecUpdateResultInfo info;
  OK(cudaGraphExecUpdate(x, h, &info));  // takes effect for later launches
  OK(cudaEventSynchronize(e));           // the event is recorded inside the graph
  IS(first(p), 2);
  OK(cudaGraphLaunch(x, s));
  OK(cudaStreamWaitEvent(t, e, 0));
  add<<<1, 16, 0, t>>>(p, 100);  // races with the last kernel of the graph, which no call waits for yet
  OK(cudaGraphExecDestroy(x));
  OK(cudaStreamSynchronize(t));
  IS(first(p), 122);
  OK(cudaStreamSynchronize(s));
  IS(first(p), 1220);
}
static void reset() {
  int *p = words(), *h;
  void *q, *r;
  cudaStream_t s = stream();
  cudaEvent_t e = event();
  cudaGraph_t g;
  size_t free, all;
  load(times);
  OK(cudaMallocHost(&h, 64));
  OK(cudaMallocAsync(&q, 64, s));
  OK(cudaMallocAsync(&r, 64, s));
  OK(cudaFreeAsync(r, s));
  add<<<1, 16, 0, s>>>(p, 1);
  OK(cudaEventRecord(e, s));
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  OK(cudaDeviceReset());
  IS(cudaStreamEndCapture(s, &g), cudaErrorInvalidResourceHandle);
  IS(cudaEventQuery(e), cudaErrorInvalidResourceHandle);
  for (void* gone : {(void*)p, q, r}) IS(cudaFree(gone), cudaErrorInvalidValue);
  IS(cudaFreeHost(h), cudaErrorInvalidValue);
  OK(cudaMemGetInfo(&free, &all));
  IS(free, all);
  cudaGetLastError();
  p = words(5);  // the device can be used again
  s = stream();
  add<<<1, 16, 0, s>>>(p, 1);
  OK(cudaStreamSynchronize(s));
  IS(first(p), 6);
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  times<<<1, 16, 0, s>>>(p, 1);  // the kernel must be loaded again
  IS(cudaGetLastError(), cudaErrorStreamCaptureUnsupported);
}
static void busy() {  // PTXVM_BUSY=1
  int n = 0, v = 0;
  void* p;
  cudaDeviceProp d;
  OK(cudaGetDeviceCount(&n));
  IS(n, 1);
  OK(cudaGetDeviceProperties(&d, 0));
  OK(cudaDeviceGetAttribute(&v, cudaDevAttrComputeMode, 0));
  IS(v, cudaComputeModeExclusiveProcess);
  IS(cudaSetDevice(0), cudaErrorDevicesUnavailable);
  IS(cudaFree(nullptr), cudaErrorDevicesUnavailable);
  IS(cudaMalloc(&p, 4), cudaErrorDevicesUnavailable);
  add<<<1, 1>>>(nullptr, 1);
  IS(cudaGetLastError(), cudaErrorDevicesUnavailable);
}
static void loads() {
  int* p = words();
  cudaStream_t s = stream();
  cudaGraph_t g;
  cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
  OK(cudaThreadExchangeStreamCaptureMode(&relaxed));  // allows the first use of a kernel in a capture
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  add<<<1, 16, 0, s>>>(p, 1);
  OK(cudaStreamEndCapture(s, &g));
  auto control = (int (*)(const char*, long))dlsym(RTLD_DEFAULT, "ptxvm_control");
  OK(control("loads_forbidden", 1));
  add<<<1, 16>>>(p, 1);
  OK(cudaGetLastError());
  times<<<1, 16>>>(p, 1);
  IS(cudaGetLastError(), cudaErrorNotPermitted);
  OK(control("loads_forbidden", 0));
  times<<<1, 16>>>(p, 10);  // PTXVM_FAIL=load:2=2
  IS(cudaGetLastError(), cudaErrorMemoryAllocation);
  times<<<1, 16>>>(p, 10);
  IS(first(p), 20);
}
// With a seed, some work runs although no call waits for it.
static void some_queued_work_runs() {
  int* p;
  OK(cudaMallocHost(&p, 64));
  *p = 0;
  add<<<1, 16>>>(p, 1);
  int d;
  for (int k = 0; k < 100; k++) OK(cudaGetDevice(&d));
  IS(*p, getenv("PTXVM_SEED") ? 1 : 0);
}
int main(int argc, char** argv) {
  return run_cases(argc, argv,
                   {{"legacy_and_blocking", legacy_and_blocking, {}},
                    {"events", events, {}},
                    {"copies", copies, {}},
                    {"memory", memory, {"PTXVM_MEM_MB", "16"}},
                    {"destroyed_with_work", destroyed_with_work, {}},
                    {"host_functions", host_functions, {}},
                    {"graphs", graphs, {}},
                    {"reset", reset, {}},
                    {"busy", busy, {"PTXVM_BUSY", "1"}},
                    {"loads", loads, {"PTXVM_FAIL", "load:2=2"}},
                    {"no_queued_work_runs", some_queued_work_runs, {}},
                    {"some_queued_work_runs", some_queued_work_runs, {"PTXVM_SEED", "1"}}});
}

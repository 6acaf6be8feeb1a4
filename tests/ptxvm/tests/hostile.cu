// SPDX-License-Identifier: Zlib
// Tests that violations of CUDA's documented rules are detected. Each violation runs in two child
// processes. In the first, without kindnesses (PTXVM_KIND), it must be detected. In the second,
// with the kindness that hides it, it must not be detected.
#include "cases.h"

#include <csignal>
#include <string>

// Each of these functions returns 0 if its violation is not detected.
static __device__ int variable[4];
static int host_reads() {
  int* p;
  OK(cudaMalloc(&p, 64));
  OK(cudaMemset(p, 0, 64));
  OK(cudaDeviceSynchronize());
  return *(volatile int*)(p + 3);
}
static int host_writes() {
  char* p;
  OK(cudaMallocAsync((void**)&p, 100, 0));
  OK(cudaMallocAsync((void**)&p, 1000, 0));
  OK(cudaDeviceSynchronize());
  return *(volatile char*)(p + 999) = 0;
}
static int host_reads_during_a_call() {  // while another thread is inside the library
  int* p;
  OK(cudaMalloc(&p, 64));
  OK(cudaMemset(p, 0, 64));
  OK(cudaLaunchHostFunc(
      0, [](void* q) { elsewhere([q] { (void)*(volatile int*)q; }); }, p));
  OK(cudaDeviceSynchronize());
  return 0;
}
static int host_reads_a_variable() {
  int* p;
  OK(cudaGetSymbolAddress((void**)&p, variable));
  return *(volatile int*)(p + 1);
}

// ---- missing waits
static int wrong(bool is, const char* what) {
  if (is) puts(what);
  return is;
}
static cudaStream_t stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t s;
  OK(cudaStreamCreateWithFlags(&s, flags));
  return s;
}
static int* zeros() {
  int* p;
  OK(cudaMalloc(&p, 64));
  OK(cudaMemset(p, 0, 64));
  OK(cudaDeviceSynchronize());
  return p;
}
static int* pinned() {
  int* p;
  OK(cudaMallocHost(&p, 64));
  memset(p, 0, 64);
  return p;
}
static int of_device(const int* p) {  // returns the first word after all work has run
  int h = -1;
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost));
  return h;
}
static int result_read_too_early() {
  int* h = pinned();
  inc<<<1, 16>>>(h);
  return wrong(*h != 1, "old data");
}
static int source_reused_too_early() {
  int *p = zeros(), *h = pinned();
  cudaStream_t s = stream();
  *h = 1;
  OK(cudaMemcpyAsync(p, h, 64, cudaMemcpyHostToDevice, s));
  *h = 2;
  return wrong(of_device(p) != 1, "the copy read later data");
}
static int download_read_too_early() {
  static int h[16];
  int* p = zeros();
  cudaStream_t s = stream();
  OK(cudaMemsetAsync(p, 1, 64, s));
  OK(cudaMemcpyAsync(h, p, 64, cudaMemcpyDeviceToHost, s));
  return wrong(*h != 0x01010101, "old data");
}
static int streams_without_event() {
  int* p = zeros();
  cudaStream_t s = stream(), t = stream();
  static int h[16];
  inc<<<1, 16, 0, s>>>(p);
  OK(cudaMemcpyAsync(h, p, 64, cudaMemcpyDeviceToHost, t));
  OK(cudaStreamSynchronize(t));
  return wrong(*h != 1, "old data");
}
static int order_of_streams() {  // cudaDeviceSynchronize waits for both streams, in any order
  int* p = zeros();
  cudaStream_t s = stream(), t = stream();
  OK(cudaMemsetAsync(p, 0, 64, s));
  inc<<<1, 16, 0, t>>>(p);
  return wrong(of_device(p) != 1, "the other order");
}
static int freed_too_early() {
  int* p = zeros();
  inc<<<1, 16>>>(p);
  OK(cudaFree(p));
  return wrong(cudaDeviceSynchronize() == cudaErrorIllegalAddress, "used after its release");
}
static int pinned_freed_too_early() {
  int *p = zeros(), *h = pinned();
  cudaStream_t s = stream();
  OK(cudaMemcpyAsync(p, h, 64, cudaMemcpyHostToDevice, s));
  OK(cudaFreeHost(h));
  return wrong(cudaStreamSynchronize(s) == cudaErrorIllegalAddress, "copied after its release");
}
static int queried_once() {
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  inc<<<1, 16>>>(zeros());
  OK(cudaEventRecord(e));
  return wrong(cudaEventQuery(e) == cudaErrorNotReady, "not ready");
}
// ---- streams that do not wait for the legacy stream
static int uploaded_for_another_stream() {
  int *p = zeros(), h[16] = {1};
  cudaStream_t s = stream();
  // The memory is pageable, so its bytes have been staged when the call returns.
  OK(cudaMemcpy(p, h, 64, cudaMemcpyHostToDevice));
  inc<<<1, 16, 0, s>>>(p);
  OK(cudaStreamSynchronize(s));
  return wrong(of_device(p) != 2, "the upload came later");
}
static int cleared_for_another_stream() {
  int* p = zeros();
  cudaStream_t s = stream();
  OK(cudaMemset(p, 1, 64));
  inc<<<1, 16, 0, s>>>(p);
  OK(cudaStreamSynchronize(s));
  return wrong(of_device(p) != 0x01010102, "the fill came later");
}
static int downloaded_from_another_stream() {
  int *p = zeros(), h[16];
  cudaStream_t s = stream();
  inc<<<1, 16, 0, s>>>(p);
  OK(cudaMemcpy(h, p, 64, cudaMemcpyDeviceToHost));
  return wrong(*h != 1, "old data");
}
// ---- programmatic serialization
__global__ void produce(int* p) {
  for (int k = 0; k < 7; k++) atomicAdd(p + (blockIdx.x * blockDim.x + threadIdx.x), 1);
}
__global__ void consume(volatile int* p, int* q, bool early) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  int v = early ? p[k] : 0;
  __syncthreads();
  cudaGridDependencySynchronize();
  q[k] = early ? v : p[k];
}
static cudaError_t launch_early(int blocks, int* p, int* q, bool early) {
  cudaLaunchAttribute a{};
  a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  a.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t c{};
  c.gridDim = blocks;
  c.blockDim = 64;
  c.attrs = &a;
  c.numAttrs = 1;
  return cudaLaunchKernelEx(&c, consume, (volatile int*)p, q, early);
}
// Runs three kernels. The second and the third read the data of the previous kernel. Returns the number of
// wrong values.
static int chain(bool early) {
  const int blocks = 40, n = 64 * blocks;
  int *p, h[n], bad_ones = 0;
  OK(cudaMalloc(&p, 3 * sizeof h));
  OK(cudaMemset(p, 0, 3 * sizeof h));
  OK(cudaDeviceSynchronize());
  produce<<<blocks, 64>>>(p);
  OK(launch_early(blocks, p, p + n, early));
  OK(launch_early(blocks, p + n, p + 2 * n, early));
  OK(cudaMemcpy(h, p + 2 * n, sizeof h, cudaMemcpyDeviceToHost));
  for (int v : h) bad_ones += v != 7;
  return bad_ones;
}
static int reads_before_it_waits() {
  IS(chain(false), 0);
  return wrong(chain(true), "read before the data were there");
}
// ---- loading
static int first_use_in_capture() {
  cudaStream_t s = stream();
  int* p = zeros();
  cudaGraph_t g;
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  inc<<<1, 16, 0, s>>>(p);
  const cudaError_t launch = cudaGetLastError(), end = cudaStreamEndCapture(s, &g);
  cudaGetLastError();
  IS(end, launch ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
  return launch == cudaErrorStreamCaptureUnsupported;
}
// ---- memory
static int used_after_reset() {
  int* p = zeros();
  cudaStream_t s = stream();
  OK(cudaDeviceReset());
  const cudaError_t waits = cudaStreamSynchronize(s), fills = cudaMemset(p, 0, 64);
  IS(cudaGetLastError(), fills);
  IS(waits, fills ? cudaErrorInvalidResourceHandle : cudaSuccess);
  return fills == cudaErrorInvalidValue;
}
static int returned_at_once() {
  size_t before, after, all;
  void* p;
  OK(cudaMemGetInfo(&before, &all));
  OK(cudaMallocAsync(&p, 1 << 20, 0));
  OK(cudaFreeAsync(p, 0));
  OK(cudaMemGetInfo(&after, &all));
  return wrong(before != after, "still held");
}

static int destroyed_in_capture() {
  cudaStream_t s;
  cudaEvent_t e;
  OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  OK(cudaEventCreate(&e));
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  elsewhere([&] { cudaEventDestroy(e); });
  cudaGraph_t g;
  return wrong(cudaStreamEndCapture(s, &g) != cudaSuccess, "the capture is lost");
}

struct Slip {
  const char* name;
  int (*f)();
  const char* kindness;
  const char* says;  // the output must contain this text if the violation is detected
};
static const Slip slips[] = {
    {"host_reads", host_reads, "pages", "reads device memory"},
    {"host_writes", host_writes, "pages",
     "byte 999 of the 1000 bytes that call 2 of cudaMallocAsync allocated"},
    {"host_reads_during_a_call", host_reads_during_a_call, "pages", "call 1 of cudaMalloc allocated"},
    {"host_reads_a_variable", host_reads_a_variable, "pages", "byte 4 of the 16 bytes of a variable"},
    {"result_read_too_early", result_read_too_early, "prompt", "old data"},
    {"source_reused_too_early", source_reused_too_early, "prompt", "read later data"},
    {"download_read_too_early", download_read_too_early, "prompt", "old data"},
    {"streams_without_event", streams_without_event, "prompt", "old data"},
    {"order_of_streams", order_of_streams, "prompt", "the other order"},
    {"freed_too_early", freed_too_early, "freeing", "not in any allocation"},
    {"pinned_freed_too_early", pinned_freed_too_early, "freeing", "uses memory that was released"},
    {"queried_once", queried_once, "prompt", "not ready"},
    {"uploaded_for_another_stream", uploaded_for_another_stream, "blocking", "the upload came later"},
    {"cleared_for_another_stream", cleared_for_another_stream, "blocking", "the fill came later"},
    {"downloaded_from_another_stream", downloaded_from_another_stream, "blocking", "old data"},
    {"reads_before_it_waits", reads_before_it_waits, "ordered", "before the data were there"},
    {"first_use_in_capture", first_use_in_capture, "loaded",
     "the first use of kernel _Z3incPi is not permitted"},
    {"destroyed_in_capture", destroyed_in_capture, "destroying", "the capture is lost"},
    {"used_after_reset", used_after_reset, "reset", "is not a live stream"},
    {"returned_at_once", returned_at_once, "freed", "still held"},
};

struct Outcome {
  int status;
  std::string output;
};
static Outcome run(const Slip& s, const char* kindness) {
  int fd[2];
  if (pipe(fd)) return {-1, ""};
  fflush(stdout);
  pid_t pid = fork();
  if (!pid) {
    if (kindness) setenv("PTXVM_KIND", kindness, 1);
    dup2(fd[1], 1), dup2(fd[1], 2), close(fd[0]), close(fd[1]);
    alarm(60);
    execl("/proc/self/exe", "hostile", s.name, (char*)nullptr);
    _exit(4);
  }
  close(fd[1]);
  Outcome o{};
  char b[4096];
  for (ssize_t n; (n = read(fd[0], b, sizeof b)) > 0;) o.output.append(b, n);
  close(fd[0]);
  waitpid(pid, &o.status, 0);
  return o;
}
int main(int argc, char** argv) {
  if (argc > 1) {
    for (auto& s : slips)
      if (!strcmp(s.name, argv[1])) {
        int wrong = s.f();
        fflush(stdout);
        return bad ? 5 : wrong ? 1 : 0;
      }
    return 3;
  }
  int failed = 0;
  for (auto& s : slips) {
    Outcome slip = run(s, nullptr), kind = run(s, s.kindness);
    bool crashed = WIFSIGNALED(slip.status) && WTERMSIG(slip.status) == SIGSEGV;
    bool shows = (crashed || (WIFEXITED(slip.status) && WEXITSTATUS(slip.status) == 1)) &&
                 slip.output.find(s.says) != std::string::npos;
    bool hidden = WIFEXITED(kind.status) && WEXITSTATUS(kind.status) == 0;
    printf("%-28s %s%s\n", s.name, shows ? "shows, " : "WRONG: does not show, ",
           hidden ? "hidden by its kindness" : "WRONG: not hidden by its kindness");
    if (!shows) printf("  status %x\n%s", slip.status, slip.output.c_str());
    if (!hidden) printf("  status %x\n%s", kind.status, kind.output.c_str());
    failed += !shows || !hidden;
  }
  return failed;
}

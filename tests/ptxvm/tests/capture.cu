// SPDX-License-Identifier: Zlib
// Tests which calls break a stream capture, for each thread and mode.
#include "cases.h"

static const cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                              cudaStreamCaptureModeRelaxed};
// Begins a capture, runs 'f' on this or another thread with that thread's capture mode set to
// 'mine', and ends the capture.
static cudaError_t captured(cudaStream_t s, cudaStreamCaptureMode mode, bool elsewhere_,
                            cudaStreamCaptureMode mine, const std::function<void()>& f) {
  OK(cudaStreamBeginCapture(s, mode));
  auto run = [&] {
    cudaStreamCaptureMode m = mine;
    OK(cudaThreadExchangeStreamCaptureMode(&m));
    IS(m, cudaStreamCaptureModeGlobal);
    f();
    OK(cudaThreadExchangeStreamCaptureMode(&m));
    IS(m, mine);
  };
  elsewhere_ ? elsewhere(run) : run();
  cudaGraph_t g;
  cudaError_t r = cudaStreamEndCapture(s, &g);
  IS(g != nullptr, r == cudaSuccess);
  if (g) OK(cudaGraphDestroy(g));
  return r;
}
static void unsafe_calls() {
  cudaStream_t s, other;
  cudaEvent_t e;
  static int host[16];
  void *p = nullptr, *q = nullptr;
  OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  OK(cudaEventCreate(&e));
  OK(cudaEventRecord(e, other));
  OK(cudaMalloc(&p, 64));
  load(inc);
  const std::function<cudaError_t()> unsafe[] = {
      [&] { return cudaMalloc(&q, 64); },
      [&] { return cudaFree(q); },
      [&] { return cudaMallocHost(&q, 64); },
      [&] { return cudaFreeHost(q); },
      [&] { return cudaHostAlloc(&q, 64, 0); },
      [&] { return cudaFreeHost(q); },
      [&] { return cudaHostRegister(host, sizeof host, 0); },
      [&] { return cudaHostUnregister(host); },
      [&] { return cudaMemcpy(p, host, 64, cudaMemcpyHostToDevice); },
      [&] { return cudaMemset(p, 0, 64); },
      [&] { return cudaEventQuery(e); },
      [&] { return cudaEventSynchronize(e); }};
  for (auto mode : modes)
    for (auto mine : modes)
      for (bool there : {false, true})
        for (auto& call : unsafe) {
          bool allowed =
              mode == cudaStreamCaptureModeRelaxed || mine == cudaStreamCaptureModeRelaxed ||
              (there && (mode != cudaStreamCaptureModeGlobal || mine != cudaStreamCaptureModeGlobal));
          cudaError_t end = captured(s, mode, there, mine, [&] {
            IS(call(), allowed ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
            // Asynchronous calls in a stream that is not captured always work.
            inc<<<1, 16, 0, other>>>((int*)p);
            IS(cudaPeekAtLastError(), allowed ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
            void* r;
            OK(cudaMallocAsync(&r, 64, other));
            OK(cudaMemsetAsync(r, 0, 64, other));
            OK(cudaFreeAsync(r, other));
            OK(cudaEventRecord(e, other));
            OK(cudaStreamSynchronize(other));
            OK(cudaStreamQuery(other));
            cudaGetLastError();
          });
          IS(end, allowed ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
          cudaGetLastError();
          if (!allowed) OK(call());  // some later calls need this one: cudaFree needs cudaMalloc
        }
}
static void waiting_breaks_captures() {
  cudaStream_t s;
  cudaEvent_t e;
  OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  OK(cudaEventCreate(&e));
  for (auto mode : modes)
    for (auto mine : modes)
      for (bool there : {false, true}) {
        auto broken = [&](const std::function<cudaError_t()>& call, cudaError_t want) {
          IS(captured(s, mode, there, mine, [&] { IS(call(), want); }), cudaErrorStreamCaptureInvalidated);
        };
        broken([] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported);
        broken([&] { return cudaStreamSynchronize(s); }, cudaErrorStreamCaptureUnsupported);
        broken([&] { return cudaStreamQuery(s); }, cudaErrorStreamCaptureUnsupported);
        broken([&] { return cudaEventRecord(e, s), cudaEventQuery(e); }, cudaErrorCapturedEvent);
        broken([&] { return cudaEventRecord(e, s), cudaEventSynchronize(e); }, cudaErrorCapturedEvent);
        // The capture is already broken at the second call.
        broken([&] { return cudaStreamQuery(s), cudaStreamSynchronize(s); },
               cudaErrorStreamCaptureInvalidated);
        broken([&] { return cudaStreamQuery(s), cudaEventRecord(e, s); }, cudaErrorStreamCaptureInvalidated);
        OK(captured(s, mode, there, mine, [&] {  // waiting for another device breaks nothing
          OK(cudaSetDevice(1));
          OK(cudaDeviceSynchronize());
          OK(cudaSetDevice(0));
        }));
      }
  OK(cudaDeviceSynchronize());
  OK(cudaStreamQuery(s));
}
static void legacy_stream() {
  cudaStream_t s, other;
  cudaEvent_t e;
  void *p, *q;
  static int h[16];
  OK(cudaStreamCreate(&s));
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  OK(cudaEventCreate(&e));
  OK(cudaMalloc(&p, 64));
  OK(cudaMallocAsync(&q, 64, other));
  load(inc);
  auto launch = [&] { return inc<<<1, 16>>>((int*)p), cudaGetLastError(); };
  const std::function<cudaError_t()> calls[] = {
      launch,
      [&] { return cudaMemcpy(h, p, 64, cudaMemcpyDeviceToHost); },
      [&] { return cudaMemset(p, 0, 64); },
      [&] { return cudaMemcpyAsync(h, p, 64, cudaMemcpyDeviceToHost); },
      [&] { return cudaStreamSynchronize(nullptr); },
      [&] { return cudaStreamQuery(nullptr); },
      [&] { return cudaEventRecord(e); },
      [&] { return cudaStreamWaitEvent(nullptr, e, 0); },
      [&] { return cudaFreeAsync(q, nullptr); }};
  for (auto& call : calls)
    for (auto mode : modes)
      IS(captured(s, mode, true, cudaStreamCaptureModeRelaxed,
                  [&] { IS(call(), cudaErrorStreamCaptureImplicit); }),
         cudaErrorStreamCaptureInvalidated);
  OK(captured(s, cudaStreamCaptureModeRelaxed, true, cudaStreamCaptureModeRelaxed, [&] {
    cudaStreamCaptureStatus c;
    IS(cudaStreamIsCapturing(nullptr, &c), cudaErrorStreamCaptureImplicit);  // the query breaks nothing
    OK(cudaStreamIsCapturing(s, &c));
    IS(c, cudaStreamCaptureStatusActive);
    OK(cudaStreamIsCapturing(other, &c));
    IS(c, cudaStreamCaptureStatusNone);
    OK(cudaSetDevice(1));
    OK(cudaStreamSynchronize(nullptr));  // waits for the legacy stream of another device
  }));
  for (auto& call : calls)  // while a non-blocking stream is captured
    OK(captured(other, cudaStreamCaptureModeRelaxed, true, cudaStreamCaptureModeGlobal, [&] { OK(call()); }));
}
static void captured_events() {
  cudaStream_t s, t, u;
  cudaEvent_t e, f;
  cudaGraph_t g;
  for (auto* x : {&s, &t, &u}) OK(cudaStreamCreateWithFlags(x, cudaStreamNonBlocking));
  for (auto* x : {&e, &f}) OK(cudaEventCreateWithFlags(x, cudaEventDisableTiming));
  OK(cudaEventRecord(e, u));
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  IS(cudaStreamWaitEvent(s, e, 0), cudaErrorStreamCaptureIsolation);
  IS(cudaStreamWaitEvent(s, e, 0), cudaErrorStreamCaptureInvalidated);
  IS(cudaStreamEndCapture(s, &g), cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  OK(cudaStreamBeginCapture(t, cudaStreamCaptureModeThreadLocal));
  OK(cudaEventRecord(f, s));
  IS(cudaStreamWaitEvent(t, f, 0), cudaErrorStreamCaptureMerge);  // breaks both captures
  IS(cudaStreamWaitEvent(u, f, 0), cudaErrorInvalidValue);
  IS(cudaStreamEndCapture(s, &g), cudaErrorStreamCaptureInvalidated);
  IS(cudaStreamEndCapture(t, &g), cudaErrorStreamCaptureInvalidated);
  IS(cudaEventQuery(f), cudaErrorCapturedEvent);
  OK(cudaEventRecord(f, s));
  OK(cudaEventSynchronize(f));
  OK(cudaEventQuery(f));
}
static void freeing_waits() {  // PTXVM_FREE_SYNCS=1
  cudaStream_t s;
  static int host[16];
  void *p, *q;
  OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (auto mode : modes) {
    OK(cudaMalloc(&p, 64));
    OK(cudaMallocHost(&q, 64));
    OK(cudaHostRegister(host, 64, 0));
    const std::function<cudaError_t()> calls[] = {[&] { return cudaFree(p); },
                                                  [&] { return cudaFreeHost(q); },
                                                  [&] { return cudaHostUnregister(host); }};
    for (auto& call : calls) {
      for (auto mine : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal})
        IS(captured(s, mode, true, mine, [&] { IS(call(), cudaErrorStreamCaptureUnsupported); }),
           cudaErrorStreamCaptureInvalidated);
      OK(captured(s, mode, true, cudaStreamCaptureModeRelaxed, [&] { OK(call()); }));
    }
  }
}

int main(int argc, char** argv) {
  return run_cases(argc, argv,
                   {{"unsafe_calls", unsafe_calls, {}},
                    {"waiting", waiting_breaks_captures, {"PTXVM_DEVICES", "2"}},
                    {"legacy_stream", legacy_stream, {"PTXVM_DEVICES", "2"}},
                    {"captured_events", captured_events, {}},
                    {"freeing_waits", freeing_waits, {"PTXVM_FREE_SYNCS", "1"}}});
}

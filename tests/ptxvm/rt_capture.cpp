// SPDX-License-Identifier: Zlib
// Runtime API front end: stream capture, and the calls that it forbids
#include <algorithm>

#include "rt_stream.h"

std::vector<Capture*> g_caps;
static unsigned long long g_capid = 0;
static thread_local cudaStreamCaptureMode tl_mode = cudaStreamCaptureModeGlobal;

bool is_capturing(cudaStream_t s) {
  Stream* st = stream_of(s);
  return st && st->cap;
}
// A capture forbids unsafe calls in the capturing thread. It forbids them in another thread only if
// the modes of both the capture and that thread are global. If either mode is relaxed, the calls
// are allowed.
bool capture_blocks(const char* api) {
  bool hit = false;
  for (Capture* c : g_caps) {
    bool mine = c->thread == std::this_thread::get_id();
    if (tl_mode == cudaStreamCaptureModeRelaxed || c->mode == cudaStreamCaptureModeRelaxed) continue;
    if (mine || (c->mode == cudaStreamCaptureModeGlobal && tl_mode == cudaStreamCaptureModeGlobal)) {
      invalidate(c);
      hit = true;
    }
  }
  if (hit) fprintf(stderr, "ptxvm: %s is not permitted during stream capture\n", api);
  return hit;
}
// A wait for the device invalidates all captures in its streams, whatever their mode.
bool capture_blocks_wait(const char* api) {
  bool hit = false;
  for (Capture* c : g_caps)
    for (Stream* q : c->streams)
      if (q->dev == current_device()) {
        invalidate(c);
        hit = true;
      }
  if (hit) fprintf(stderr, "ptxvm: %s waits for a device with a capturing stream\n", api);
  return hit;
}
// On real devices some calls that release memory wait for the device. So they may break captures, too.
bool capture_blocks_free(const char* api) {
  static bool waits = env_long("PTXVM_FREE_SYNCS", 0);
  return waits && tl_mode != cudaStreamCaptureModeRelaxed && capture_blocks_wait(api);
}
// The legacy stream would wait for the blocking streams of its device, including those that are captured.
static bool blocks_legacy(Capture* c, int dev) {
  for (Stream* q : c->streams)
    if (!(q->flags & cudaStreamNonBlocking) && q->dev == dev) return true;
  return false;
}
bool capture_blocks_legacy(const char* api) {
  bool hit = false;
  for (Capture* c : g_caps)
    if (blocks_legacy(c, current_device())) {
      invalidate(c);
      hit = true;
    }
  if (hit) fprintf(stderr, "ptxvm: %s uses the legacy stream while a blocking stream is captured\n", api);
  return hit;
}
int use_stream(Stream* st, const char* api) {
  return st->kind == LEGACY && capture_blocks_legacy(api) ? cudaErrorStreamCaptureImplicit : 0;
}
int wait_stream(Stream* st, const char* api) {
  if (int r = use_stream(st, api)) return r;
  if (!st->cap) return 0;
  if (st->cap->invalid) return cudaErrorStreamCaptureInvalidated;
  invalidate(st->cap);
  return cudaErrorStreamCaptureUnsupported;
}
int record(Stream* st, Node&& n) {
  Capture* c = st->cap;
  if (c->invalid) return cudaErrorStreamCaptureInvalidated;
  n.deps = st->tail;
  st->tail.assign(1, c->graph->add(std::move(n)));
  return 0;
}
int submit(cudaStream_t s, Node&& n) {
  Stream* st = stream_of(s);
  if (!st) return cudaErrorInvalidResourceHandle;
  if (n.type == cudaGraphNodeTypeKernel && n.dev != st->dev) {
    fprintf(stderr, "ptxvm: launch in a stream of device %d while device %d is current\n", st->dev, n.dev);
    return cudaErrorInvalidResourceHandle;
  }
  n.dev = st->dev;
  if (st->cap) return record(st, std::move(n));
  if (int r = use_stream(st, "work")) return r;
  return enqueue(st, std::make_shared<const Node>(std::move(n)));
}
void drop_capture(Capture* c) {
  for (Stream* q : c->streams) {
    q->cap = nullptr;
    q->tail.clear();
  }
  g_caps.erase(std::find(g_caps.begin(), g_caps.end(), c));
  delete c;
}

API cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  ENTER("graph", 0);
  GET_STREAM(q, s);
  if (q->kind == LEGACY) return E(cudaErrorStreamCaptureUnsupported);
  if (q->cap) return E(cudaErrorIllegalState);
  auto* c = new Capture{q, new Graph, mode, ++g_capid, std::this_thread::get_id(), false, {q}};
  g_caps.push_back(c);
  q->cap = c;
  q->tail.clear();
  return cudaSuccess;
}
API cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* g) {
  ENTER("graph", 0);
  GET_STREAM(q, s);
  if (g) *g = nullptr;
  Capture* c = q->cap;
  if (!c) return E(cudaErrorIllegalState);
  if (c->origin != q) {
    invalidate(c);
    return E(cudaErrorStreamCaptureUnmatched);
  }
  if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id())
    return E(cudaErrorStreamCaptureWrongThread);
  int r = c->invalid ? (int)cudaErrorStreamCaptureInvalidated : 0;
  if (!r) {  // the last node of every forked stream must lead to the origin's tail
    std::set<Node*> reach;
    std::vector<Node*> todo = q->tail;
    while (!todo.empty()) {
      Node* n = todo.back();
      todo.pop_back();
      if (reach.insert(n).second) todo.insert(todo.end(), n->deps.begin(), n->deps.end());
    }
    for (Stream* o : c->streams)
      for (Node* n : o->tail)
        if (!reach.count(n)) r = cudaErrorStreamCaptureUnjoined;
  }
  Graph* graph = c->graph;
  drop_capture(c);
  if (r || !g) {
    delete graph;
    return E(r);
  }
  g_handles[graph] = current_device();
  *g = (cudaGraph_t)graph;
  return cudaSuccess;
}
static int cap_status(Stream* q, cudaStreamCaptureStatus* status) {
  if (q->kind == LEGACY)  // if a capture forbids this stream, the query fails, but no capture is invalidated
    for (Capture* c : g_caps)
      if (blocks_legacy(c, q->dev)) return cudaErrorStreamCaptureImplicit;
  *status = !q->cap           ? cudaStreamCaptureStatusNone
            : q->cap->invalid ? cudaStreamCaptureStatusInvalidated
                              : cudaStreamCaptureStatusActive;
  return 0;
}
API cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* c) {
  ENTER("", 0);
  GET_STREAM(q, s);
  return E(cap_status(q, c));
}
API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus* c, unsigned long long* id,
                                         cudaGraph_t* g, const cudaGraphNode_t** d,
                                         const cudaGraphEdgeData** e, size_t* n) {
  ENTER("", 0);
  GET_STREAM(q, s);
  if (int r = cap_status(q, c)) return E(r);
  if (!q->cap) return cudaSuccess;
  if (id) *id = q->cap->id;
  if (g) *g = (cudaGraph_t)q->cap->graph;
  if (d) *d = (const cudaGraphNode_t*)q->tail.data();
  if (e) *e = nullptr;
  if (n) *n = q->tail.size();
  return cudaSuccess;
}
API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* m) {
  ENTER("", F_NOCTX);
  std::swap(*m, tl_mode);
  return cudaSuccess;
}

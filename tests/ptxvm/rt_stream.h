// SPDX-License-Identifier: Zlib
// Streams, events, captures and graphs as the files rt_stream.cpp, rt_capture.cpp and rt_graph.cpp see them.
// Streams execute in submission order on the calling thread; capture and graph rules are checked all the
// same.
#pragma once
#include <thread>

#include "rt.h"

typedef std::chrono::steady_clock Clock;
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  Node* add(Node&& n) {
    nodes.push_back(std::make_unique<Node>(std::move(n)));
    return nodes.back().get();
  }
};
struct GraphExec {
  std::vector<Node> plan;                         // in execution order
  std::unordered_map<const Node*, size_t> index;  // source graph's node -> plan
  unsigned long long flags = 0;
  int dev = current_device();
};
struct Capture;
enum StreamKind : u8 { NAMED, LEGACY, PER_THREAD };
struct Stream {
  StreamKind kind = NAMED;
  int dev = 0;
  unsigned flags = 0;
  int prio = 0;
  unsigned long long id = 0;
  Capture* cap = nullptr;
  std::vector<Node*> tail;  // nodes the next captured operation depends on
};
struct Capture {
  Stream* origin;
  Graph* graph;
  cudaStreamCaptureMode mode;
  unsigned long long id;
  std::thread::id thread;
  bool invalid = false;
  std::set<Stream*> streams;
};
struct Event {
  Clock::time_point t;
  bool recorded = false, timing = true;
  int dev = current_device();
  unsigned long long capid = 0;  // recorded inside this capture
  std::vector<Node*> tail;
};
extern std::set<void*> g_handles;     // live streams, events, graphs, executable graphs
extern std::vector<Capture*> g_caps;  // begun and not ended
bool live(const void* h, const char* what);
Stream* stream_of(cudaStream_t s);
#define GET_STREAM(q, s)    \
  Stream* q = stream_of(s); \
  if (!q) return E(cudaErrorInvalidResourceHandle)
inline void invalidate(Capture* c) { c->invalid = true; }
void drop_capture(Capture* c);
int use_stream(Stream* st, const char* api);   // error when a capture forbids work in the stream
int wait_stream(Stream* st, const char* api);  // ... or to wait for it; invalidates the capture
int record(Stream* st, Node&& n);              // as the capture's next node

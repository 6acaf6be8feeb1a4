// SPDX-License-Identifier: Zlib
// Declares streams, events, captures and graphs, for rt_stream.cpp, rt_capture.cpp and rt_graph.cpp. A stream
// is a queue of work. Work runs when a thread waits for it, and in that thread.
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
typedef std::vector<Node> Plan;  // in execution order
struct GraphExec {
  std::shared_ptr<Plan> plan = std::make_shared<Plan>();
  Plan& edit() {  // launches that have not run keep their plan
    if (plan.use_count() > 1) plan = std::make_shared<Plan>(*plan);
    return *plan;
  }
  std::unordered_map<const Node*, size_t> index;  // by node of the source graph: its index in the plan
  unsigned long long flags = 0;
  int dev = current_device();
};
struct Queue;
struct Mark {  // a position in a queue, after the work with the number 'at'
  std::shared_ptr<Queue> q;
  u64 at = 0;
  bool reached() const;
};
struct Op {
  u64 number;                        // number in the order of submission, across all queues
  std::shared_ptr<const Node> node;  // null: the entry only waits
  std::vector<Mark> after;           // work that must run before this work
  int fails = 0;                     // error that is injected when the work runs
  u64 known = 0;                     // memory_known() when it was submitted
};
struct Queue {  // lives as long as its stream, or an event or work that refers to it
  int dev = 0;
  bool blocking = true;  // whether the queue and the legacy stream wait for each other
  std::deque<Op> ops;
  // The number of the work that was submitted last, and of the work that ran last.
  u64 last = 0, done = 0;
  std::shared_ptr<EarlyLaunch> begun;  // the first kernel in ops, if it has begun early
};
inline bool Mark::reached() const { return !q || q->done >= at; }
struct Capture;
enum StreamKind : u8 { NAMED, LEGACY, PER_THREAD };
struct Stream {
  StreamKind kind = NAMED;
  int dev = 0;
  unsigned flags = 0;
  int prio = 0;
  unsigned long long id = 0;
  std::shared_ptr<Queue> queue = std::make_shared<Queue>();
  Capture* cap = nullptr;
  std::vector<Node*> tail;  // nodes on which the next captured operation depends
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
  Mark at;  // the position at which it was last recorded
  bool timing = true;
  u64 id = 0;
  int dev = current_device();
  unsigned long long capid = 0;  // id of the capture in which it was recorded
  std::vector<Node*> tail;
};
// Live streams, events, graphs and executable graphs, with their device.
extern std::map<void*, int> g_handles;
extern std::vector<Capture*> g_caps;  // captures that have begun and not ended
bool live(const void* h, const char* what);
Stream* stream_of(cudaStream_t s);
#define GET_STREAM(q, s)    \
  Stream* q = stream_of(s); \
  if (!q) return E(cudaErrorInvalidResourceHandle)
inline void invalidate(Capture* c) { c->invalid = true; }
void drop_capture(Capture* c);
int use_stream(Stream* st, const char* api);  // returns an error if a capture forbids work in the stream
// Returns an error if a capture forbids waiting, and invalidates this capture.
int wait_stream(Stream* st, const char* api);
int record(Stream* st, Node&& n);  // adds n to the capture as its next node
Stream* legacy_stream(int dev);
// Moves the event that n records to m, the position of n. Must be called after the submission of n.
void place_event(const Node& n, const Mark& m);
int enqueue(Stream* st, std::shared_ptr<const Node> n);
Mark mark_of(Stream* st);          // the end of the stream's work
void wait_in(Stream* st, Mark m);  // makes the stream's later work wait for m
void run_to(Mark m);
void drop_work(int dev);
bool run_all_of(Stream* st);  // returns false if there was no work

// SPDX-License-Identifier: Zlib
// Queues work that was submitted but has not run. Work runs only when it is waited for, so after a missing
// wait the program sees old data.
#include <algorithm>
#include <random>

#include "rt_stream.h"

namespace {
std::vector<std::shared_ptr<Queue>> g_busy;  // queues with work
u64 g_number = 0;
bool g_running = false;

bool prompt() {  // whether work runs at once; a profile counts it in the order of submission
  static const bool is = g_profile || kind(PROMPT);
  return is;
}
// The legacy stream and the blocking streams of its device wait for each other.
std::vector<Mark> implicit_waits(Stream* st) {
  std::vector<Mark> after;
  if (st->kind == LEGACY) {
    for (auto& q : g_busy)
      if (q->dev == st->dev && q->blocking && q != st->queue) after.push_back({q, q->last});
  } else if (st->queue->blocking) {
    Stream* legacy = legacy_stream(st->dev);
    if (!legacy->queue->ops.empty()) after.push_back(mark_of(legacy));
  }
  return after;
}
void push(Stream* st, Op&& op) {
  std::shared_ptr<Queue> q = st->queue;
  op.number = q->last = ++g_number;
  q->ops.push_back(std::move(op));
  if (std::find(g_busy.begin(), g_busy.end(), q) == g_busy.end()) g_busy.push_back(q);
}
// If the next kernel was launched with programmatic serialization, begins it before `ahead` runs. The next
// kernel then stops at its wait for `ahead`.
void begin_next(Queue& q, const Op& ahead) {
  if (kind(ORDERED) || g_race || cc() < 90 || q.ops.empty() || g_pending) return;
  const Op& next = q.ops.front();
  auto is_kernel = [](const Op& op) {
    return op.node && op.node->type == cudaGraphNodeTypeKernel && !op.fails;
  };
  if (is_kernel(ahead) && is_kernel(next) && next.node->k.early &&
      std::all_of(next.after.begin(), next.after.end(), [](auto& m) { return m.reached(); }))
    q.begun = begin_kernel(next.node->k, next.node->dev);
}
void step(std::shared_ptr<Queue> q) {
  Op op = std::move(q->ops.front());
  q->ops.pop_front();
  const bool outer = std::exchange(g_running, true);
  const std::shared_ptr<EarlyLaunch> begun = std::exchange(q->begun, nullptr);
  begin_next(*q, op);
  if (op.node && op.known != memory_known(*op.node)) {
    fprintf(stderr, "ptxvm: a copy or fill that has not run yet uses memory that was released\n");
    if (!g_pending) g_pending = cudaErrorIllegalAddress;
  }
  if (op.node) run_node(*op.node, op.fails, begun.get());
  g_running = outer;
  q->done = op.number;
  if (q->ops.empty()) g_busy.erase(std::remove(g_busy.begin(), g_busy.end(), q), g_busy.end());
}
// Runs the marked work, and the work that it waits for, in the order of submission.
void run_marked(std::vector<Mark> todo) {
  std::map<Queue*, Mark> want;
  while (!todo.empty()) {
    Mark m = std::move(todo.back());
    todo.pop_back();
    if (m.reached() || m.at <= want[m.q.get()].at) continue;
    Mark& w = want[m.q.get()];
    for (auto& op : m.q->ops)
      if (op.number > w.at && op.number <= m.at) todo.insert(todo.end(), op.after.begin(), op.after.end());
    w = m;
  }
  for (;;) {
    const Mark* next = nullptr;
    for (auto& [q, m] : want)
      if (!q->ops.empty() && q->ops.front().number <= m.at &&
          (!next || q->ops.front().number < next->q->ops.front().number))
        next = &m;
    if (!next) return;
    step(next->q);
  }
}
}  // namespace

Mark mark_of(Stream* st) { return {st->queue, st->queue->last}; }
int enqueue(Stream* st, std::shared_ptr<const Node> n) {
  if (g_sticky) return g_sticky;
  Op op{};
  if (!g_pending && n->enabled) {  // after an error the node is dropped
    if (int r = check_node(*n, op.fails)) return r;
    op.known = memory_known(*n);
    op.after = implicit_waits(st);
    op.node = n;
    push(st, std::move(op));
  }
  if (n->type == cudaGraphNodeTypeEventRecord) place_event(*n, mark_of(st));
  static const bool blocking = env_long("CUDA_LAUNCH_BLOCKING", 0);
  const bool blocks = blocking && n->type == cudaGraphNodeTypeKernel;
  if (prompt() || blocks) run_to(mark_of(st));
  return blocks ? surfaced() : 0;
}
void wait_in(Stream* st, Mark m) {
  if (m.reached()) return;
  Op op{};
  op.after = implicit_waits(st);
  op.after.push_back(std::move(m));
  push(st, std::move(op));
}
void run_to(Mark m) { run_marked({std::move(m)}); }
bool run_all_of(Stream* st) {
  std::vector<Mark> all;
  if (st->kind == LEGACY) all = implicit_waits(st);
  all.push_back(mark_of(st));
  const bool busy = std::any_of(all.begin(), all.end(), [](auto& m) { return !m.reached(); });
  run_marked(std::move(all));
  return busy;
}
int run_stream(cudaStream_t s) {
  Stream* st = stream_of(s);
  if (!st) return cudaErrorInvalidResourceHandle;
  run_all_of(st);
  return surfaced();
}
// Runs independent streams newest first, deliberately not in the order of submission.
void run_device(int d) {
  for (;;) {
    std::shared_ptr<Queue> newest;
    for (auto& q : g_busy)
      if (q->dev == d && (!newest || q->last > newest->last)) newest = q;
    if (!newest) return;
    run_to({newest, newest->last});
  }
}
void drop_work(int dev) {
  for (auto& q : g_busy)
    if (q->dev == dev) {
      q->ops.clear();
      q->begun = nullptr;
      q->done = q->last;
    }
  g_busy.erase(std::remove_if(g_busy.begin(), g_busy.end(), [](auto& q) { return q->ops.empty(); }),
               g_busy.end());
}
void run_some() {
  static const long seed = env_long("PTXVM_SEED", 0);
  static std::mt19937_64 rng(seed);
  if (!seed || g_running || g_busy.empty() || rng() % 4) return;
  const std::shared_ptr<Queue> q = g_busy[rng() % g_busy.size()];
  run_to({q, q->ops.front().number});
}

// SPDX-License-Identifier: Zlib
// Runtime API front end: graphs
#include <algorithm>

#include "rt_stream.h"

API cudaError_t cudaGraphCreate(cudaGraph_t* g, unsigned) {
  ENTER("graph", 0);
  auto* q = new Graph;
  g_handles[q] = current_device();
  *g = (cudaGraph_t)q;
  return cudaSuccess;
}
API cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  ENTER("graph", 0);
  if (!live(g, "graph")) return E(cudaErrorInvalidValue);
  g_handles.erase(g);
  delete (Graph*)g;
  return cudaSuccess;
}
static cudaError_t add_node(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps, size_t nd,
                            Node&& n) {
  bool capturing = false;
  for (Capture* c : g_caps) capturing |= (void*)c->graph == (void*)g;
  if (!capturing && !live(g, "graph")) return E(cudaErrorInvalidValue);
  Graph* q = (Graph*)g;
  for (size_t k = 0; k < nd; k++) {
    bool ok = false;
    for (auto& x : q->nodes) ok |= x.get() == (Node*)deps[k];
    if (!ok) return E(cudaErrorInvalidValue);
    n.deps.push_back((Node*)deps[k]);
  }
  *out = (cudaGraphNode_t)q->add(std::move(n));
  return cudaSuccess;
}
static int kernel_params(Node& n, const cudaKernelNodeParams* p) {
  if (!p || p->extra) return cudaErrorInvalidValue;
  return make_kernel(n, p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes, false);
}
static int memcpy_params(Node& n, const cudaMemcpy3DParms* p) {
  if (!p || p->srcArray || p->dstArray) return cudaErrorNotSupported;
  n.type = cudaGraphNodeTypeMemcpy;
  auto at = [](const cudaPitchedPtr& q, const cudaPos& o) {
    return (char*)q.ptr + (o.z * q.ysize + o.y) * q.pitch + o.x;
  };
  n.c = {at(p->dstPtr, p->dstPos),
         at(p->srcPtr, p->srcPos),
         p->dstPtr.pitch,
         p->srcPtr.pitch,
         p->dstPtr.pitch * p->dstPtr.ysize,
         p->srcPtr.pitch * p->srcPtr.ysize,
         p->extent.width,
         p->extent.height,
         p->extent.depth,
         p->kind};
  return 0;
}
static void memcpy_1d(Node& n, void* d, const void* s, size_t cnt, cudaMemcpyKind k) {
  n.type = cudaGraphNodeTypeMemcpy;
  n.c = {(char*)d, (const char*)s, 0, 0, 0, 0, cnt, 1, 1, k};
}
static int memset_params(Node& n, const cudaMemsetParams* p) {
  if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)) return cudaErrorInvalidValue;
  n.type = cudaGraphNodeTypeMemset;
  n.m = {(char*)p->dst, p->pitch, p->width * p->elementSize, p->height, p->value, p->elementSize};
  return 0;
}
static int host_params(Node& n, const cudaHostNodeParams* p) {
  if (!p || !p->fn) return cudaErrorInvalidValue;
  n.type = cudaGraphNodeTypeHost;
  n.hostp = *p;
  n.host = [h = *p] { h.fn(h.userData); };
  return 0;
}
#define ADD_NODE(fill)             \
  ENTER("graph", 0);               \
  Node n;                          \
  if (int r = (fill)) return E(r); \
  return add_node(out, g, deps, nd, std::move(n))
API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps,
                                       size_t nd, const cudaKernelNodeParams* p) {
  ADD_NODE(kernel_params(n, p));
}
API cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps,
                                       size_t nd, const cudaMemcpy3DParms* p) {
  ADD_NODE(memcpy_params(n, p));
}
API cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps,
                                         size_t nd, void* d, const void* s, size_t cnt, cudaMemcpyKind k) {
  ADD_NODE((memcpy_1d(n, d, s, cnt, k), 0));
}
API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps,
                                       size_t nd, const cudaMemsetParams* p) {
  ADD_NODE(memset_params(n, p));
}
API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps,
                                     size_t nd, const cudaHostNodeParams* p) {
  ADD_NODE(host_params(n, p));
}
static int event_params(Node& n, cudaEvent_t e) {
  if (!live(e, "event")) return cudaErrorInvalidResourceHandle;
  n.type = cudaGraphNodeTypeEventRecord;
  n.ev = e;
  n.ev_id = ((Event*)e)->id;
  return 0;
}
API cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps,
                                            size_t nd, cudaEvent_t e) {
  ADD_NODE(event_params(n, e));
}
API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps,
                                      size_t nd) {
  ADD_NODE(0);
}
API cudaError_t cudaGraphAddDependencies(cudaGraph_t g, const cudaGraphNode_t* from,
                                         const cudaGraphNode_t* to, const cudaGraphEdgeData*, size_t n) {
  ENTER("graph", 0);
  if (!live(g, "graph")) return E(cudaErrorInvalidValue);
  for (size_t k = 0; k < n; k++) ((Node*)to[k])->deps.push_back((Node*)from[k]);
  return cudaSuccess;
}
API cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t* out, size_t* cnt) {
  ENTER("graph", 0);
  if (!live(g, "graph") || !cnt) return E(cudaErrorInvalidValue);
  Graph* q = (Graph*)g;
  if (out)
    for (size_t k = 0; k < *cnt; k++)
      out[k] = k < q->nodes.size() ? (cudaGraphNode_t)q->nodes[k].get() : nullptr;
  *cnt = out ? std::min(*cnt, q->nodes.size()) : q->nodes.size();
  return cudaSuccess;
}
API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t n, cudaGraphNodeType* t) {
  ENTER("graph", 0);
  *t = ((Node*)n)->type;
  return cudaSuccess;
}
API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t h, cudaKernelNodeParams* p) {
  ENTER("graph", 0);
  Node* n = (Node*)h;
  if (n->type != cudaGraphNodeTypeKernel) return E(cudaErrorInvalidValue);
  static thread_local std::vector<void*> ptrs;  // valid until this thread's next call
  ptrs.clear();
  for (auto& d : func_of(n->k.k)->params) ptrs.push_back(&n->k.params[d.off]);
  *p = {};
  p->func = (void*)n->k.k;
  p->gridDim = n->k.g;
  p->blockDim = n->k.b;
  p->sharedMemBytes = n->k.sh;
  p->kernelParams = ptrs.data();
  return cudaSuccess;
}
API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t h, const cudaKernelNodeParams* p) {
  ENTER("graph", 0);
  Node* n = (Node*)h;
  return E(n->type != cudaGraphNodeTypeKernel ? (int)cudaErrorInvalidValue : kernel_params(*n, p));
}

// Orders a graph's nodes so that dependencies come first. Returns false if the dependencies form a cycle.
static bool topo(Graph* g, std::vector<Node*>& order) {
  std::unordered_map<Node*, int> state;
  std::function<bool(Node*)> visit = [&](Node* n) {
    int& s = state[n];
    if (s) return s == 2;
    s = 1;
    for (Node* d : n->deps)
      if (!visit(d)) return false;
    state[n] = 2;
    order.push_back(n);
    return true;
  };
  for (auto& n : g->nodes)
    if (!visit(n.get())) return false;
  return true;
}
static cudaError_t instantiate(cudaGraphExec_t* x, cudaGraph_t g, unsigned long long flags) {
  if (!x) return E(cudaErrorInvalidValue);
  *x = nullptr;
  if (!live(g, "graph")) return E(cudaErrorInvalidValue);
  std::vector<Node*> order;
  if (!topo((Graph*)g, order)) return E(cudaErrorInvalidValue);
  auto* e = new GraphExec;
  e->flags = flags;
  for (Node* n : order) {
    e->index[n] = e->plan->size();
    e->plan->push_back(*n);
  }
  g_handles[e] = current_device();
  *x = (cudaGraphExec_t)e;
  return cudaSuccess;
}
API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* x, cudaGraph_t g, unsigned long long f) {
  ENTER("graph", 0);
  return instantiate(x, g, f);
}
API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* x, cudaGraph_t g, unsigned long long f) {
  ENTER("graph", 0);
  return instantiate(x, g, f);
}
API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* x, cudaGraph_t g,
                                               cudaGraphInstantiateParams* p) {
  ENTER("graph", 0);
  cudaError_t r = instantiate(x, g, p->flags);
  p->errNode_out = nullptr;
  p->result_out = r ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
  return r;
}
API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t x, unsigned long long* f) {
  ENTER("graph", 0);
  if (!live(x, "graph exec")) return E(cudaErrorInvalidValue);
  *f = ((GraphExec*)x)->flags;
  return cudaSuccess;
}
API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t x, cudaGraph_t g, cudaGraphExecUpdateResultInfo* info) {
  ENTER("graph", 0);
  if (info) memset(info, 0, sizeof *info);
  if (!live(x, "graph exec") || !live(g, "graph")) return E(cudaErrorInvalidValue);
  auto* e = (GraphExec*)x;
  Plan& plan = e->edit();
  std::vector<Node*> order;
  if (!topo((Graph*)g, order)) return E(cudaErrorInvalidValue);
  auto differ = [&](cudaGraphExecUpdateResult r, Node* n) {
    if (info) {
      info->result = r;
      info->errorNode = (cudaGraphNode_t)n;
    }
    return E(cudaErrorGraphExecUpdateFailure);
  };
  if (order.size() != plan.size()) return differ(cudaGraphExecUpdateErrorTopologyChanged, nullptr);
  std::unordered_map<const Node*, size_t> index;
  for (size_t k = 0; k < order.size(); k++) {
    index[order[k]] = k;
    if (order[k]->type != plan[k].type) return differ(cudaGraphExecUpdateErrorNodeTypeChanged, order[k]);
    if (order[k]->deps.size() != plan[k].deps.size())
      return differ(cudaGraphExecUpdateErrorTopologyChanged, order[k]);
    if (order[k]->type == cudaGraphNodeTypeKernel && order[k]->k.coop != plan[k].k.coop)
      return differ(cudaGraphExecUpdateErrorAttributesChanged, order[k]);
  }
  for (size_t k = 0; k < order.size(); k++) {
    bool on = plan[k].enabled;
    plan[k] = *order[k];
    plan[k].enabled = on;
  }
  for (auto& i : index) e->index[i.first] = i.second;
  return cudaSuccess;
}
static Node* exec_node(cudaGraphExec_t x, cudaGraphNode_t n, cudaGraphNodeType t) {
  if (!live(x, "graph exec")) return nullptr;
  auto* e = (GraphExec*)x;
  auto it = e->index.find((Node*)n);
  if (it == e->index.end()) return nullptr;
  Node* q = &e->edit()[it->second];
  return t != cudaGraphNodeTypeCount && q->type != t ? nullptr : q;
}
#define EXEC_SET(type, fill)               \
  ENTER("graph", 0);                       \
  Node* q = exec_node(x, node, type);      \
  if (!q) return E(cudaErrorInvalidValue); \
  Node n = *q;                             \
  if (int r = (fill)) return E(r);         \
  *q = std::move(n);                       \
  return cudaSuccess
API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                                                 const cudaKernelNodeParams* p) {
  EXEC_SET(cudaGraphNodeTypeKernel, kernel_params(n, p));
}
API cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                                                 const cudaMemcpy3DParms* p) {
  EXEC_SET(cudaGraphNodeTypeMemcpy, memcpy_params(n, p));
}
API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t x, cudaGraphNode_t node, void* d,
                                                   const void* s, size_t cnt, cudaMemcpyKind k) {
  EXEC_SET(cudaGraphNodeTypeMemcpy, (memcpy_1d(n, d, s, cnt, k), 0));
}
API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                                                 const cudaMemsetParams* p) {
  EXEC_SET(cudaGraphNodeTypeMemset, memset_params(n, p));
}
API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                                               const cudaHostNodeParams* p) {
  EXEC_SET(cudaGraphNodeTypeHost, host_params(n, p));
}
API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t x, cudaGraphNode_t node, unsigned on) {
  EXEC_SET(cudaGraphNodeTypeCount, (n.enabled = on, 0));
}
API cudaError_t cudaGraphUpload(cudaGraphExec_t x, cudaStream_t) {
  ENTER("graph", 0);
  return E(live(x, "graph exec") ? 0 : cudaErrorInvalidValue);
}
API cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) {
  ENTER("graph", 0);
  GET_STREAM(q, s);
  if (!live(x, "graph exec")) return E(cudaErrorInvalidValue);
  if (int r = use_stream(q, __func__)) return E(r);
  if (q->cap) {
    fprintf(stderr, "ptxvm: child graphs are not implemented\n");
    invalidate(q->cap);
    return E(cudaErrorNotSupported);
  }
  if (((GraphExec*)x)->dev != q->dev) {
    fprintf(stderr, "ptxvm: graph of device %d launched in a stream of device %d\n", ((GraphExec*)x)->dev,
            q->dev);
    return E(cudaErrorInvalidValue);
  }
  const std::shared_ptr<Plan> plan = ((GraphExec*)x)->plan;
  prof_graph_begin(plan->size());  // when profiling, work runs when it is submitted
  int r = 0;
  for (size_t k = 0; k < plan->size() && !r; k++) r = enqueue(q, {plan, &(*plan)[k]});
  prof_graph_end();
  return E(r);
}
API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) {
  ENTER("graph", F_DESTROY);
  if (!live(x, "graph exec")) return E(cudaErrorInvalidValue);
  g_handles.erase(x);
  delete (GraphExec*)x;
  return cudaSuccess;
}

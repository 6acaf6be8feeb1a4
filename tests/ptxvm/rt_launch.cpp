// SPDX-License-Identifier: Zlib
// Runtime API front end: kernel launches, attributes of kernels, occupancy
#include "rt.h"

#include <algorithm>

static thread_local struct {
  dim3 g, b;
  size_t sh;
  cudaStream_t s;
} tl_cfg;
API unsigned __cudaPushCallConfiguration(dim3 g, dim3 b, size_t sh, cudaStream_t s) {
  tl_cfg = {g, b, sh, s};
  return 0;
}
API cudaError_t __cudaPopCallConfiguration(dim3* g, dim3* b, size_t* sh, void* s) {
  *g = tl_cfg.g;
  *b = tl_cfg.b;
  *sh = tl_cfg.sh;
  *(cudaStream_t*)s = tl_cfg.s;
  return cudaSuccess;
}

// The first use of a kernel on a device loads the kernel. The load may wait for the device.
static int load(Kern* k, Func*& f) {
  if (!k) return cudaErrorInvalidDeviceFunction;
  f = func_of(k);
  if (!f) return cudaErrorNoKernelImageForDevice;
  char& loaded = k->loaded[current_device()];
  if (loaded) return 0;
  if (g_loads_forbidden) {
    fprintf(stderr, "ptxvm: first use of kernel %s\n", k->name.c_str());
    if (g_loads_forbidden == 2) abort();
    return cudaErrorNotPermitted;
  }
  if (!kind(LOADED) && capture_blocks(("the first use of kernel " + k->name).c_str()))
    return cudaErrorStreamCaptureUnsupported;
  const Injected injected = inject("", "load");
  if (injected.sticky) g_sticky = injected.code;
  if (injected.code) return injected.code;
  loaded = true;
  g_stats.loads++;
  return 0;
}
// Checks a launch and packs its parameters. Returns the launch call's error.
int make_kernel(Node& n, const void* func, dim3 g, dim3 b, void** args, size_t sh, bool coop) {
  Kern* k = kern_of(func);
  Func* f = nullptr;
  if (int r = load(k, f)) return r;
  u64 nt = (u64)b.x * b.y * b.z;
  if (!g.x || !g.y || !g.z || !nt || nt > 1024 || b.z > 64 || g.y > 65535 || g.z > 65535 || g.x > 2147483647u)
    return cudaErrorInvalidConfiguration;
  if (f->maxntid && nt > f->maxntid) return cudaErrorInvalidValue;
  int maxdyn = k->maxdyn[n.dev];
  if (sh + f->shsize > (size_t)std::max(maxdyn + (int)f->shsize, 48 * 1024) ||
      (sh + f->shsize > 48 * 1024 && maxdyn < (int)sh))
    return cudaErrorInvalidValue;
  if (coop && (u64)g.x * g.y * g.z > 64) return cudaErrorCooperativeLaunchTooLarge;
  if (!args && !f->params.empty()) return cudaErrorInvalidValue;
  n.type = cudaGraphNodeTypeKernel;
  n.k.k = k;
  n.k.g = g;
  n.k.b = b;
  n.k.sh = sh;
  n.k.coop = coop;
  n.k.params.assign(f->psize + 16, 0);
  for (size_t q = 0; q < f->params.size(); q++)
    memcpy(&n.k.params[f->params[q].off], args[q], f->params[q].size);
  return 0;
}
static int launch(const void* func, dim3 g, dim3 b, void** args, size_t sh, cudaStream_t s, bool coop,
                  bool early = false) {
  Node n;
  int r = make_kernel(n, func, g, b, args, sh, coop);
  n.k.early = early && !coop;
  return r ? r : submit(s, std::move(n));
}
int run_kernel(const KernelCall& k, int dev) {
  return vm_launch(func_of(k.k), {k.g.x, k.g.y, k.g.z}, {k.b.x, k.b.y, k.b.z}, k.params.data(), k.sh, k.coop,
                   dev);
}
std::shared_ptr<EarlyLaunch> begin_kernel(const KernelCall& k, int dev) {
  return vm_launch_early(func_of(k.k), {k.g.x, k.g.y, k.g.z}, {k.b.x, k.b.y, k.b.z}, k.params.data(), k.sh,
                         dev);
}
API cudaError_t __cudaGetKernel(cudaKernel_t* k, const void* f) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  Kern* q = kern_of(f);
  *k = (cudaKernel_t)q;
  return q ? cudaSuccess : E(cudaErrorInvalidDeviceFunction);
}
static cudaError_t api_launch(const char* api, const void* f, dim3 g, dim3 b, void** a, size_t sh,
                              cudaStream_t s, bool coop) {
  ApiCall call(api, "", 0);
  return E(call.err ? call.err : launch(f, g, b, a, sh, s, coop));
}
API cudaError_t __cudaLaunchKernel(cudaKernel_t k, dim3 g, dim3 b, void** a, size_t sh, cudaStream_t s) {
  return api_launch("cudaLaunchKernel", k, g, b, a, sh, s, false);
}
API cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t k, dim3 g, dim3 b, void** a, size_t sh, cudaStream_t s) {
  return api_launch("cudaLaunchKernel", k, g, b, a, sh, s ? s : cudaStreamPerThread, false);
}
API cudaError_t cudaLaunchKernel(const void* f, dim3 g, dim3 b, void** a, size_t sh, cudaStream_t s) {
  return api_launch("cudaLaunchKernel", f, g, b, a, sh, s, false);
}
API cudaError_t cudaLaunchCooperativeKernel(const void* f, dim3 g, dim3 b, void** a, size_t sh,
                                            cudaStream_t s) {
  return api_launch("cudaLaunchCooperativeKernel", f, g, b, a, sh, s, true);
}
API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* f, void** a) {
  ENTER("", 0);
  if (!c) return E(cudaErrorInvalidValue);
  bool coop = false, early = false;
  for (unsigned k = 0; k < c->numAttrs; k++) {
    auto& at = c->attrs[k];
    if (at.id == cudaLaunchAttributeCooperative && at.val.cooperative) coop = true;
    if (at.id == cudaLaunchAttributeClusterDimension &&
        at.val.clusterDim.x * at.val.clusterDim.y * at.val.clusterDim.z > 1) {
      fprintf(stderr, "ptxvm: thread block clusters are not implemented\n");
      return E(cudaErrorNotSupported);
    }
    static bool refuses = env_long("PTXVM_NO_PDL", 0);
    if (at.id != cudaLaunchAttributeProgrammaticStreamSerialization ||
        !at.val.programmaticStreamSerializationAllowed)
      continue;
    early = true;
    if (refuses) {
      Kern* q = kern_of(f);
      fprintf(stderr, "ptxvm: programmatic dependent launch of %s refused\n", q ? q->name.c_str() : "?");
      return E(cudaErrorNotSupported);
    }
  }
  return E(launch(f, c->gridDim, c->blockDim, a, c->dynamicSmemBytes, c->stream, coop, early));
}
API cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* u) {
  ENTER("", 0);
  if (!f) return E(cudaErrorInvalidValue);
  Node n;
  n.type = cudaGraphNodeTypeHost;
  n.hostp = {f, u};
  n.host = [f, u] { f(u); };
  return E(submit(s, std::move(n)));
}
API cudaError_t cudaGetFuncBySymbol(cudaFunction_t* o, const void* f) {
  ENTER("", 0);
  Kern* k = kern_of(f);
  *o = (cudaFunction_t)k;
  return k ? cudaSuccess : E(cudaErrorInvalidDeviceFunction);
}
API cudaError_t cudaFuncGetName(const char** name, const void* f) {
  ENTER("", 0);
  Kern* k = kern_of(f);
  if (!k) return E(cudaErrorInvalidDeviceFunction);
  *name = k->name.c_str();
  return cudaSuccess;
}
API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void* f) {
  ENTER("", 0);
  Kern* k = kern_of(f);
  Func* F = nullptr;
  if (int r = load(k, F)) return E(r);
  memset(a, 0, sizeof *a);
  a->sharedSizeBytes = F->shsize;
  a->localSizeBytes = F->localsize;
  a->maxThreadsPerBlock = F->maxntid ? F->maxntid : 1024;
  a->numRegs = 64;
  a->ptxVersion = F->mod->target;
  a->binaryVersion = cc();
  a->maxDynamicSharedSizeBytes = k->maxdyn[current_device()];
  return cudaSuccess;
}
API cudaError_t cudaFuncSetAttribute(const void* f, cudaFuncAttribute at, int v) {
  ENTER("", 0);
  Kern* k = kern_of(f);
  Func* F = nullptr;
  if (int r = load(k, F)) return E(r);
  if (at == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (v < 0 || v + (int)F->shsize > arch().smem_optin) return E(cudaErrorInvalidValue);
    k->maxdyn[current_device()] = v;
  } else if (at == cudaFuncAttributePreferredSharedMemoryCarveout) {
    if (v < -1 || v > 100) return E(cudaErrorInvalidValue);
  } else {
    return E(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
API cudaError_t cudaFuncSetCacheConfig(const void* f, cudaFuncCache) {
  ENTER("", 0);
  return kern_of(f) ? cudaSuccess : E(cudaErrorInvalidDeviceFunction);
}
static int occupancy(int* n, const void* f, int bs, size_t sh) {
  Kern* k = kern_of(f);
  Func* F = nullptr;
  if (int r = load(k, F)) return r;
  if (!n || bs <= 0) return cudaErrorInvalidValue;
  Arch a = arch();
  int warps = (bs + 31) / 32, blocks = bs > 1024 ? 0 : a.threads_sm / 32 / warps;
  if (F->maxntid && bs > (int)F->maxntid) blocks = 0;
  if (size_t t = sh + F->shsize) blocks = std::min<size_t>(blocks, a.smem_sm / t);
  *n = std::min(blocks, a.blocks_sm);
  return 0;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, const void* f, int bs,
                                                                       size_t sh, unsigned) {
  ENTER("", 0);
  return E(occupancy(n, f, bs, sh));
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void* f, int bs, size_t sh) {
  ENTER("", 0);
  return E(occupancy(n, f, bs, sh));
}
API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* v, const void* f, int blocks, int bs) {
  ENTER("", 0);
  Kern* k = kern_of(f);
  Func* F = nullptr;
  if (int r = load(k, F)) return E(r);
  if (blocks <= 0 || bs <= 0) return E(cudaErrorInvalidValue);
  int per = arch().smem_sm / blocks - (int)F->shsize;
  *v = (size_t)std::max(0, std::min(per, arch().smem_optin - (int)F->shsize));
  return cudaSuccess;
}

// SPDX-License-Identifier: Zlib
// Runtime API front end: devices, their properties and limits
#include <algorithm>

#include "rt.h"

int cc() {
  static int c = (int)env_long("PTXVM_CC", 90);
  return c;
}
// Programs choose grid sizes by the number of SMs, so a profile needs the modelled device's number.
int sm_count() { return g_profile ? (int)prof_sms() : 4; }
Arch arch() {
  int c = cc();
  if (c >= 90) return {2048, 32, 228 << 10, 227 << 10};
  if (c == 86 || c == 89) return {1536, c == 86 ? 16 : 24, 100 << 10, 99 << 10};
  if (c >= 80) return {2048, 32, 164 << 10, 163 << 10};
  return {1024, 16, 64 << 10, 64 << 10};
}

// ---------------------------------------------------------------- which device
int device_count() {
  static int n = (int)std::max(0l, std::min<long>(MAX_DEVICES, env_long("PTXVM_DEVICES", 1)));
  return n;
}
static thread_local int tl_device = 0;
int current_device() { return tl_device; }
bool no_such_device(int d) { return d < 0 || d >= device_count(); }
API cudaError_t cudaGetDeviceCount(int* n) {
  ApiCall call("cudaGetDeviceCount", "", F_NODEV);
  *n = call.err ? 0 : device_count();
  return E(call.err ? call.err : *n ? 0 : cudaErrorNoDevice);
}
API cudaError_t cudaGetDevice(int* d) {
  ENTER("", F_NOCTX);
  *d = tl_device;
  return cudaSuccess;
}
API cudaError_t cudaSetDevice(int d) {
  ENTER("", F_OTHERCTX);
  if (no_such_device(d)) return E(cudaErrorInvalidDevice);
  tl_device = d;
  start_device(d);
  return cudaSuccess;
}
API cudaError_t cudaInitDevice(int d, unsigned, unsigned) {
  ENTER("", 0);
  return E(no_such_device(d) ? cudaErrorInvalidDevice : 0);
}
API cudaError_t cudaChooseDevice(int* d, const cudaDeviceProp*) {
  ENTER("", F_NOCTX);
  *d = 0;
  return cudaSuccess;
}
static unsigned g_devflags[MAX_DEVICES];
API cudaError_t cudaSetDeviceFlags(unsigned f) {
  ENTER("", F_NODEV);
  g_devflags[tl_device] = f;
  return cudaSuccess;
}
API cudaError_t cudaGetDeviceFlags(unsigned* f) {
  ENTER("", F_NODEV);
  *f = g_devflags[tl_device];
  return cudaSuccess;
}
API cudaError_t cudaDeviceSynchronize() {
  ENTER("sync", F_SYNC | F_WAIT);
  run_device(current_device());
  return E(surfaced());
}
API cudaError_t cudaDeviceReset() {
  ENTER("", F_SYNC);
  if (kind(RESET)) return cudaSuccess;
  reset_handles(current_device());
  reset_memory(current_device());
  reset_kernels(current_device());
  return cudaSuccess;
}
API cudaError_t cudaDriverGetVersion(int* v) {
  ENTER("", F_NODEV | F_QUIET);
  *v = device_count() ? CUDART_VERSION : 0;
  return cudaSuccess;
}
API cudaError_t cudaRuntimeGetVersion(int* v) {
  ENTER("", F_NODEV | F_QUIET);
  *v = CUDART_VERSION;
  return cudaSuccess;
}
static std::map<int, size_t> g_limits = {{cudaLimitStackSize, 1024},
                                         {cudaLimitPrintfFifoSize, 1 << 20},
                                         {cudaLimitMallocHeapSize, 8 << 20},
                                         {cudaLimitMaxL2FetchGranularity, 64},
                                         {cudaLimitPersistingL2CacheSize, 0}};
API cudaError_t cudaDeviceSetLimit(cudaLimit l, size_t v) {
  ENTER("", 0);
  if (!g_limits.count(l)) return E(cudaErrorUnsupportedLimit);
  g_limits[l] = v;
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetLimit(size_t* v, cudaLimit l) {
  ENTER("", 0);
  if (!g_limits.count(l)) return E(cudaErrorUnsupportedLimit);
  *v = g_limits[l];
  return cudaSuccess;
}
API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  ENTER("", 0);
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* c) {
  ENTER("", 0);
  *c = cudaFuncCachePreferNone;
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  ENTER("", 0);
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetPCIBusId(char* s, int len, int d) {
  ENTER("", F_NOCTX);
  if (no_such_device(d)) return E(cudaErrorInvalidDevice);
  if (len < 13) return E(cudaErrorInvalidValue);
  snprintf(s, len, "0000:00:%02x.0", d);
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetByPCIBusId(int* d, const char* s) {
  ENTER("", F_NOCTX);
  const char* slot = strrchr(s, ':');
  *d = slot ? (int)strtol(slot + 1, nullptr, 16) : -1;
  return E(no_such_device(*d) ? cudaErrorInvalidDevice : 0);
}
API cudaError_t cudaDeviceCanAccessPeer(int* v, int a, int b) {
  ENTER("", F_NOCTX);
  if (no_such_device(a) || no_such_device(b)) return E(cudaErrorInvalidDevice);
  *v = 0;
  return cudaSuccess;
}
API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int d) {
  ENTER("", F_NOCTX);
  if (no_such_device(d)) return E(cudaErrorInvalidDevice);
  Arch a = arch();
  memset(p, 0, sizeof *p);
  strcpy(p->name, "ptxvm (CPU PTX interpreter)");
  if (d) snprintf(p->name, sizeof p->name, "ptxvm (CPU PTX interpreter), device %d", d);
  memset(&p->uuid, 0x5A + d, sizeof p->uuid);
  p->pciDeviceID = d;
  p->totalGlobalMem = mem_limit();
  p->sharedMemPerBlock = 48 << 10;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->warpSize = 32;
  p->memPitch = 2147483647;
  p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->totalConstMem = 65536;
  p->major = cc() / 10;
  p->minor = cc() % 10;
  p->textureAlignment = 512;
  p->multiProcessorCount = sm_count();
  p->maxThreadsPerMultiProcessor = a.threads_sm;
  p->sharedMemPerMultiprocessor = a.smem_sm;
  p->sharedMemPerBlockOptin = a.smem_optin;
  p->maxBlocksPerMultiProcessor = a.blocks_sm;
  p->unifiedAddressing = p->managedMemory = p->cooperativeLaunch = p->concurrentManagedAccess = 1;
  p->memoryPoolsSupported = p->canMapHostMemory = p->concurrentKernels = p->asyncEngineCount = 1;
  p->streamPrioritiesSupported = p->hostRegisterSupported = 1;
  p->l2CacheSize = 4 << 20;
  p->memoryBusWidth = 256;
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr at, int d) {
  ENTER("", F_NOCTX);
  if (no_such_device(d)) return E(cudaErrorInvalidDevice);
  Arch a = arch();
  switch (at) {
    case cudaDevAttrPciDeviceId: *v = d; break;
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: *v = 1024; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *v = a.threads_sm; break;
    case cudaDevAttrMaxBlockDimZ: *v = 64; break;
    case cudaDevAttrMaxGridDimX:
    case cudaDevAttrMaxPitch: *v = 2147483647; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *v = 65535; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *v = 48 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = a.smem_optin; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *v = a.smem_sm; break;
    case cudaDevAttrWarpSize: *v = 32; break;
    case cudaDevAttrMultiProcessorCount: *v = sm_count(); break;
    case cudaDevAttrComputeCapabilityMajor: *v = cc() / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *v = cc() % 10; break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrTotalConstantMemory:
    case cudaDevAttrMaxRegistersPerMultiprocessor: *v = 65536; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *v = a.blocks_sm; break;
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrAsyncEngineCount:
    case cudaDevAttrCanMapHostMemory: *v = 1; break;
    case cudaDevAttrL2CacheSize: *v = 4 << 20; break;
    case cudaDevAttrTextureAlignment: *v = 512; break;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate: *v = 1000000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *v = 256; break;
    case cudaDevAttrPageableMemoryAccess: *v = (int)g_reads_pageable; break;
    case cudaDevAttrComputeMode:
      *v = env_long("PTXVM_BUSY", 0) ? cudaComputeModeExclusiveProcess : cudaComputeModeDefault;
      break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *v = cc() >= 80 ? 1024 : 0; break;
    default: *v = 0;
  }
  return cudaSuccess;
}
API cudaError_t cudaProfilerStart() { return cudaSuccess; }
API cudaError_t cudaProfilerStop() { return cudaSuccess; }
// This library has no driver, so every lookup returns "symbol not found".
API cudaError_t cudaGetDriverEntryPoint(const char*, void** f, unsigned long long,
                                        cudaDriverEntryPointQueryResult* r) {
  ENTER("", F_NODEV);
  *f = nullptr;
  if (r) *r = cudaDriverEntryPointSymbolNotFound;
  return r ? cudaSuccess : E(cudaErrorSymbolNotFound);
}
API cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** f, unsigned, unsigned long long,
                                                 cudaDriverEntryPointQueryResult* r) {
  ENTER("", F_NODEV);
  *f = nullptr;
  if (r) *r = cudaDriverEntryPointSymbolNotFound;
  return r ? cudaSuccess : E(cudaErrorSymbolNotFound);
}

// SPDX-License-Identifier: Zlib
// Runtime API front end: fat binaries, and the kernels and variables that a program registers
#include "rt.h"

#include <dlfcn.h>

#include <algorithm>

namespace {
struct VarReg {
  Fatbin* fb;
  std::string name;
  size_t size;
  bool constant;
};
std::unordered_map<const void*, std::unique_ptr<Kern>> g_kerns;
std::unordered_map<const void*, VarReg> g_vars;
}  // namespace

static bool unpack_entry(const char* q, u64 size, u32 csize, u64 raw, u64 flags, std::string& t) {
  if (flags & 0x8000) {  // zstd
    static void* z = dlopen("libzstd.so.1", RTLD_NOW);
    auto dec = z ? (size_t(*)(void*, size_t, const void*, size_t))dlsym(z, "ZSTD_decompress") : nullptr;
    t.resize(raw);
    size_t r = dec ? dec(&t[0], raw, q, csize) : ~0ull;
    if (r <= raw) {
      t.resize(r);
      return true;
    }
    fprintf(stderr, "ptxvm: cannot decompress PTX (zstd %s)\n",
            z ? "failed" : "absent: build with -Xfatbin -no-compress");
    return false;
  }
  if (flags & 0x2000) {
    fprintf(stderr, "ptxvm: LZ4-compressed PTX: build with -Xfatbin -no-compress\n");
    return false;
  }
  t.assign(q, size);
  return true;
}
// A fat binary is a header followed by entries. This function uses the PTX entry for the
// highest compute capability up to cc().
static void load_fatbin(Fatbin& fb) {
  if (fb.loaded) return;
  fb.loaded = true;
  watch_pages();
  const u8* p = (const u8*)fb.data;
  auto rd = [](const u8* q, auto v) {
    memcpy(&v, q, sizeof v);
    return v;
  };
  if (rd(p, u32()) != 0xBA55ED50u) {
    fprintf(stderr, "ptxvm: bad fatbin magic\n");
    return;
  }
  u16 hs = rd(p + 6, u16());
  const u8* end = p + hs + rd(p + 8, u64());
  p += hs;
  int best = -1, lowest = 9999, machine = -1;
  std::string text;
  std::map<std::string, u32> registers;
  while (p < end) {
    u16 kind = rd(p, u16());
    u32 head = rd(p + 4, u32()), csize = rd(p + 16, u32()), arch = rd(p + 28, u32());
    u64 size = rd(p + 8, u64()), flags = rd(p + 40, u64()), raw = rd(p + 56, u64());
    if (kind == 1) lowest = std::min(lowest, (int)arch);
    if (kind == 1 && (int)arch <= cc() && (int)arch > best) {
      std::string t;
      if (unpack_entry((const char*)p + head, size, csize, raw, flags, t)) {
        while (!t.empty() && t.back() == '\0') t.pop_back();
        best = arch;
        text = std::move(t);
      }
    }
    if (kind == 2 && g_profile && (int)arch > machine) {  // machine code is used only for its register counts
      std::string t;
      if (unpack_entry((const char*)p + head, size, csize, raw, flags, t)) {
        machine = arch;
        registers = cubin_registers((const u8*)t.data(), t.size());
      }
    }
    p += head + size;
  }
  if (best < 0) {
    if (lowest < 9999)
      fprintf(stderr, "ptxvm: the binary holds PTX for sm_%d only, PTXVM_CC is %d\n", lowest, cc());
    else
      fprintf(stderr, "ptxvm: the binary holds no PTX\n");
    return;
  }
  fb.module = std::make_unique<Module>();
  fb.module->text = std::move(text);
  try {
    fb.module->parse();
  } catch (std::exception& x) {
    fprintf(stderr, "ptxvm: %s\n", x.what());
    abort();
  }
  for (auto& r : registers) {
    auto f = fb.module->funcs.find(r.first);
    if (f != fb.module->funcs.end()) f->second->hwregs = r.second;
  }
}
Func* func_of(Kern* k) {
  if (!k->f) {
    load_fatbin(*k->fb);
    if (k->fb->module) {
      auto it = k->fb->module->funcs.find(k->name);
      if (it != k->fb->module->funcs.end() && it->second->defined) k->f = it->second.get();
    }
  }
  return k->f;
}
Kern* kern_of(const void* p) {
  auto it = g_kerns.find(p);
  if (it != g_kerns.end()) return it->second.get();
  for (auto& q : g_kerns)
    if (q.second.get() == p) return q.second.get();
  return nullptr;
}
void reset_kernels(int dev) {
  for (auto& k : g_kerns) k.second->loaded[dev] = false;
}
u8* var_ptr(const void* s, size_t& size) {
  auto it = g_vars.find(s);
  if (it == g_vars.end()) return nullptr;
  Fatbin& fb = *it->second.fb;
  load_fatbin(fb);
  if (!fb.module) return nullptr;
  auto v = fb.module->vars.find(it->second.name);
  if (v == fb.module->vars.end()) return nullptr;
  size = it->second.size;
  return v->second.p;
}

// nvcc inserts calls to these functions into every object file.
API void** __cudaRegisterFatBinary(void* w) {
  struct Wrapper {
    int magic, version;
    const void* data;
    void* file;
  };
  auto* fb = new Fatbin;
  fb->data = ((Wrapper*)w)->data;
  return (void**)fb;
}
API void __cudaRegisterFatBinaryEnd(void**) {}
API void __cudaUnregisterFatBinary(void**) {}
API char __cudaInitModule(void**) { return 1; }
API void __cudaRegisterFunction(void** h, const char* hf, char*, const char* dn, int, uint3*, uint3*, dim3*,
                                dim3*, int*) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  auto k = std::make_unique<Kern>();
  k->fb = (Fatbin*)h;
  k->name = dn;
  g_kerns[hf] = std::move(k);
}
API void __cudaRegisterVar(void** h, char* hv, char*, const char* dn, int, size_t sz, int c, int) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  g_vars[hv] = {(Fatbin*)h, dn, sz, c != 0};
}
API void __cudaRegisterHostVar(void** h, const char* hv, char*, const char* dn, size_t sz) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  g_vars[hv] = {(Fatbin*)h, dn, sz, false};
}
API void __cudaRegisterManagedVar(void** h, void** hv, char*, const char* dn, int, size_t sz, int c, int) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  g_vars[hv] = {(Fatbin*)h, dn, sz, c != 0};
  size_t n;
  if (u8* p = var_ptr(hv, n)) *hv = p;
}

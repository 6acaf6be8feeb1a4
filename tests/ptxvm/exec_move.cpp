// SPDX-License-Identifier: Zlib
// Instruction semantics: comparison, selection, moves, and addresses of state spaces.
#include "exec_build.h"
#include "exec_operands.h"
#include "exec_round.h"
using std::string;

enum CMP { C_EQ, C_NE, C_LT, C_LE, C_GT, C_GE, C_EQU, C_NEU, C_LTU, C_LEU, C_GTU, C_GEU, C_NUM, C_NAN };
template <class T>
static inline bool cmp(int op, T a, T b) {
  if constexpr (!std::is_integral_v<T>) {
    bool n = (a != a) || (b != b);
    switch (op) {
      case C_EQU: return n || a == b;
      case C_NEU: return n || a != b;
      case C_LTU: return n || a < b;
      case C_LEU: return n || a <= b;
      case C_GTU: return n || a > b;
      case C_GEU: return n || a >= b;
      case C_NUM: return !n;
      case C_NAN: return n;
      case C_NE: return !n && a != b;
      default: break;
    }
  }
  switch (op) {
    case C_EQ: return a == b;
    case C_NE: return a != b;
    case C_LT: return a < b;
    case C_LE: return a <= b;
    case C_GT: return a > b;
    case C_GE: return a >= b;
  }
  return false;
}
template <class T>
static void x_setp(Thread& t, const Instr& i) {
  T a = ftzv(G(0), i.ftz), b = ftzv(G(1), i.ftz);
  bool r = cmp<T>(i.op, a, b), q = !r;
  if (i.op2) {
    bool c = getp(t, i.s[2]);
    switch (i.op2) {
      case 1:
        r = r && c;
        q = q && c;
        break;
      case 2:
        r = r || c;
        q = q || c;
        break;
      case 3:
        r = r != c;
        q = q != c;
        break;
    }
  }
  setr(t, i.d, r);
  setr(t, i.d2, q);
}
template <class T>
static void x_set(Thread& t, const Instr& i) {
  bool r = cmp<T>(i.op, ftzv(G(0), i.ftz), ftzv(G(1), i.ftz));
  if (i.op2) {
    bool c = getp(t, i.s[2]);
    r = i.op2 == 1 ? r && c : i.op2 == 2 ? r || c : r != c;
  }
  if (i.ty == T_F32)
    set<f32>(t, i.d, r ? 1.f : 0.f);
  else
    setr(t, i.d, r ? 0xffffffffu : 0);
}
static void x_selp(Thread& t, const Instr& i) {
  setr(t, i.d, getp(t, i.s[2]) ? raw(t, i.s[0]) : raw(t, i.s[1]));
}
template <class T>
static void x_slct(Thread& t, const Instr& i) {
  T c = get<T>(t, i.s[2]);
  setr(t, i.d, c >= (T)0 ? raw(t, i.s[0]) : raw(t, i.s[1]));
}
static void x_mov(Thread& t, const Instr& i) { setr(t, i.d, raw(t, i.s[0])); }
static void x_pack(Thread& t, const Instr& i) {
  u32 eb = i.esz * 8 / i.nv;
  u64 r = 0, m = eb == 64 ? ~0ull : ((1ull << eb) - 1);
  for (int k = 0; k < i.nv; k++) r |= (raw(t, i.v[k]) & m) << (eb * k);
  setr(t, i.d, r);
}
static void x_unpack(Thread& t, const Instr& i) {
  u32 eb = i.esz * 8 / i.nv;
  u64 v = raw(t, i.s[0]), m = eb == 64 ? ~0ull : ((1ull << eb) - 1);
  for (int k = 0; k < i.nv; k++) setr(t, i.v[k], (v >> (eb * k)) & m);
}
static void x_pmov(Thread& t, const Instr& i) { setr(t, i.d, getp(t, i.s[0])); }
static void x_cvta_to_shared(Thread& t, const Instr& i) {
  u64 a = raw(t, i.s[0]);
  setr(t, i.d, a - (u64)t.blk->sh);
}
static void x_cvta_shared(Thread& t, const Instr& i) { setr(t, i.d, (u64)t.blk->sh + (u32)raw(t, i.s[0])); }
static void x_isspacep(Thread& t, const Instr& i) {
  u64 a = raw(t, i.s[0]);
  Block& b = *t.blk;
  bool sh = a >= (u64)b.sh && a < (u64)b.sh + std::max(b.shsize, 1u);
  bool lo = t.fn->localsize && a >= (u64)t.local && a < (u64)t.local + t.fn->localsize;
  for (auto& f : t.frames) lo |= a >= (u64)f.local && a < (u64)f.local + f.fn->localsize;
  bool r = false;
  switch (i.op) {
    case SP_SHARED: r = sh; break;
    case SP_LOCAL: r = lo; break;
    case SP_GLOBAL: r = !sh && !lo; break;
    case SP_CONST: {
      auto* al = vm_find_alloc(a);
      r = al && al->ro;
      break;
    }
  }
  setr(t, i.d, r);
}

// ---------- selection of functions
#define ALLSEL(f)                \
  [&]() -> Fn {                  \
    switch (ty) {                \
      case T_F16: return f<f16>; \
      case T_F32: return f<f32>; \
      case T_F64: return f<f64>; \
      default: return INTSEL(f); \
    }                            \
  }()
static bool build_comparison(OpCtx& c, bool predicate) {
  Instr& I = c.I;
  auto H = [&](const char* s) { return c.has(s); };
  if (!c.dsrc(2)) return false;
  Ty ty = !predicate && c.tys.size() > 1 ? c.tys[1] : c.ty();
  static const char* cn[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                             "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  int op = -1;
  for (int k = 0; k < 14; k++)
    if (H(cn[k])) op = k;
  if (H("lo")) op = C_LT;
  if (H("ls")) op = C_LE;
  if (H("hi")) op = C_GT;
  if (H("hs")) op = C_GE;
  if (op < 0) return false;
  I.op = op;
  I.op2 = H("and") ? 1 : H("or") ? 2 : H("xor") ? 3 : 0;
  if (I.op2 && c.ops.size() < 4) return false;
  return c.use(predicate ? ALLSEL(x_setp) : ALLSEL(x_set));
}
static bool build_mov(OpCtx& c) {
  Instr& I = c.I;
  Ty ty = c.ty();
  I.esz = ty_size(ty);
  if (ty == T_B128) return false;
  if (c.vecpos.size() == 1) {
    if (c.vecpos[0] == 0) {
      I.s[0] = c.ops.at(1);
      return c.use(x_unpack);
    }
    I.d = c.ops.at(0);
    return c.use(x_pack);
  }
  return c.use(1, ty == T_PRED ? x_pmov : x_mov);
}
static bool build_cvta(OpCtx& c) {
  bool sh = false;
  for (auto& m : c.mods)
    if (m.substr(0, m.find("::")) == "shared") sh = true;
  return c.use(1, sh ? (c.has("to") ? x_cvta_to_shared : x_cvta_shared) : x_mov);
}
bool build_move(OpCtx& c) {
  Instr& I = c.I;
  const string& b = c.base;
  if (b == "mov") return build_mov(c);
  if (b == "cvta") return build_cvta(c);
  if (b == "isspacep") {
    if (!c.dsrc(1)) return false;
    c.space();
    I.op = I.space;
    I.space = SP_GEN;
    return c.use(x_isspacep);
  }
  if (b == "setp" || b == "set") return build_comparison(c, b == "setp");
  if (b == "selp") return c.use(3, x_selp);
  if (b == "slct") {
    bool flt = c.tys.size() > 1 && c.tys[1] == T_F32;
    return c.use(3, flt ? (Fn)x_slct<f32> : (Fn)x_slct<s32>);
  }
  if (b == "createpolicy") {  // a cache policy is an opaque 64-bit value
    I.d = c.ops.at(0);
    I.s[0].r = R_IMM;
    return c.use(x_mov);
  }
  return false;
}

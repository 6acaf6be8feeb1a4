// SPDX-License-Identifier: Zlib
// Instruction semantics: integer arithmetic.
#include <limits>

#include "exec_build.h"
#include "exec_operands.h"
using std::string;

template <class T>
static T isat(__int128 v) {
  if (v > (__int128)std::numeric_limits<T>::max()) return std::numeric_limits<T>::max();
  if (v < (__int128)std::numeric_limits<T>::min()) return std::numeric_limits<T>::min();
  return (T)v;
}
template <class T>
static void x_add(Thread& t, const Instr& i) {
  T a = G(0), b = G(1);
  if (i.sat) {
    set<T>(t, i.d, isat<T>((__int128)a + b));
    return;
  }
  set<T>(t, i.d, (T)(a + b));
}
template <class T>
static void x_sub(Thread& t, const Instr& i) {
  T a = G(0), b = G(1);
  if (i.sat) {
    set<T>(t, i.d, isat<T>((__int128)a - b));
    return;
  }
  set<T>(t, i.d, (T)(a - b));
}
// Carry chain. If bit 0 of op is set, uses the carry. If bit 1 is set, writes the carry.
template <class T>
static void x_addc(Thread& t, const Instr& i) {
  typedef std::make_unsigned_t<T> U;
  unsigned __int128 r = (unsigned __int128)(U)G(0) + (U)G(1) + ((i.op & 1) && t.cf ? 1 : 0);
  if (i.op & 2) t.cf = (r >> (sizeof(T) * 8)) & 1;
  set<T>(t, i.d, (T)(U)r);
}
template <class T>
static void x_subc(Thread& t, const Instr& i) {
  typedef std::make_unsigned_t<T> U;
  U a = (U)G(0), b = (U)G(1);
  unsigned __int128 s = (unsigned __int128)b + ((i.op & 1) && t.cf ? 1 : 0);
  if (i.op & 2) t.cf = (unsigned __int128)a < s;
  set<T>(t, i.d, (T)(U)(a - (U)s));
}
template <class T>
static void x_mullo(Thread& t, const Instr& i) {
  set<T>(t, i.d, (T)(G(0) * G(1)));
}
template <class T>
static T mulhi(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    return (T)(((__int128)a * b) >> (sizeof(T) * 8));
  else
    return (T)(((unsigned __int128)a * b) >> (sizeof(T) * 8));
}
template <class T>
static void x_mulhi(Thread& t, const Instr& i) {
  set<T>(t, i.d, mulhi<T>(G(0), G(1)));
}
template <class T>
static void x_mulwide(Thread& t, const Instr& i) {
  if constexpr (std::is_signed_v<T>)
    setr(t, i.d, (u64)((s64)G(0) * (s64)G(1)));
  else
    setr(t, i.d, (u64)G(0) * (u64)G(1));
}
template <class T>
static void x_madlo(Thread& t, const Instr& i) {
  set<T>(t, i.d, (T)(G(0) * G(1) + G(2)));
}
template <class T>
static void x_madhi(Thread& t, const Instr& i) {
  T r = mulhi<T>(G(0), G(1));
  if (i.sat)
    set<T>(t, i.d, isat<T>((__int128)r + G(2)));
  else
    set<T>(t, i.d, (T)(r + G(2)));
}
template <class T>
static void x_madwide(Thread& t, const Instr& i) {
  u64 c = raw(t, i.s[2]);
  if constexpr (std::is_signed_v<T>)
    setr(t, i.d, (u64)((s64)G(0) * (s64)G(1)) + c);
  else
    setr(t, i.d, (u64)G(0) * (u64)G(1) + c);
}
template <class T>
static void x_madc(Thread& t, const Instr& i) {
  typedef std::make_unsigned_t<T> U;
  U m = i.op2 ? (U)mulhi<T>(G(0), G(1)) : (U)(G(0) * G(1));
  unsigned __int128 r = (unsigned __int128)m + (U)G(2) + ((i.op & 1) && t.cf ? 1 : 0);
  if (i.op & 2) t.cf = (r >> (sizeof(T) * 8)) & 1;
  set<T>(t, i.d, (T)(U)r);
}
template <class T>
static void x_div(Thread& t, const Instr& i) {
  T a = G(0), b = G(1);
  if (b == 0) {
    set<T>(t, i.d, (T) ~(T)0);
    return;
  }
  if constexpr (std::is_signed_v<T>)
    if (b == (T)-1) {
      set<T>(t, i.d, (T)(0 - a));
      return;
    }
  set<T>(t, i.d, (T)(a / b));
}
template <class T>
static void x_rem(Thread& t, const Instr& i) {
  T a = G(0), b = G(1);
  if (b == 0) {
    set<T>(t, i.d, a);
    return;
  }
  if constexpr (std::is_signed_v<T>)
    if (b == (T)-1) {
      set<T>(t, i.d, 0);
      return;
    }
  set<T>(t, i.d, (T)(a % b));
}
template <class T>
static void x_min(Thread& t, const Instr& i) {
  T a = G(0), b = G(1);
  set<T>(t, i.d, a < b ? a : b);
}
template <class T>
static void x_max(Thread& t, const Instr& i) {
  T a = G(0), b = G(1);
  set<T>(t, i.d, a > b ? a : b);
}
template <class T>
static void x_neg(Thread& t, const Instr& i) {
  set<T>(t, i.d, (T)(0 - G(0)));
}
template <class T>
static void x_abs(Thread& t, const Instr& i) {
  T a = G(0);
  set<T>(t, i.d, a < 0 ? (T)(0 - a) : a);
}
template <class T>
static void x_sad(Thread& t, const Instr& i) {
  T a = G(0), b = G(1), c = G(2);
  set<T>(t, i.d, (T)(c + (a < b ? b - a : a - b)));
}
template <class T>
static void x_mul24(Thread& t, const Instr& i) {
  T a = G(0), b = G(1);
  if (std::is_signed_v<T>) {
    a = (T)((s32)((u32)a << 8) >> 8);
    b = (T)((s32)((u32)b << 8) >> 8);
  } else {
    a &= 0xffffff;
    b &= 0xffffff;
  }
  s64 p = (s64)a * (s64)b;
  T r = i.op ? (T)(p >> 16) : (T)p;
  if (i.op2) r = r + G(2);
  set<T>(t, i.d, r);
}
static void x_dp4a(Thread& t, const Instr& i) {
  u32 a = get<u32>(t, i.s[0]), b = get<u32>(t, i.s[1]);
  s32 c = get<s32>(t, i.s[2]);
  for (int k = 0; k < 4; k++) {
    s32 x = i.op ? (s8)(a >> (8 * k)) : (u8)(a >> (8 * k)),
        y = i.op2 ? (s8)(b >> (8 * k)) : (u8)(b >> (8 * k));
    c += x * y;
  }
  set<s32>(t, i.d, c);
}

static void x_dp2a(Thread& t, const Instr& i) {
  u32 a = get<u32>(t, i.s[0]), b = get<u32>(t, i.s[1]);
  s32 c = get<s32>(t, i.s[2]);
  for (int k = 0; k < 2; k++) {
    s32 x = i.op ? (s32)(s16)(a >> (16 * k)) : (s32)(u16)(a >> (16 * k));
    int sh = 8 * (k + (i.flag ? 2 : 0));
    s32 y = i.op2 ? (s32)(s8)(b >> sh) : (s32)(u8)(b >> sh);
    c += x * y;
  }
  set<s32>(t, i.d, c);
}

// ---------- selection of functions
#define W32SEL(f)                \
  [&]() -> Fn {                  \
    switch (ty) {                \
      case T_B16:                \
      case T_U16: return f<u16>; \
      case T_S16: return f<s16>; \
      case T_B32:                \
      case T_U32: return f<u32>; \
      case T_S32: return f<s32>; \
      default: return nullptr;   \
    }                            \
  }()
// for the carry chain, which also exists for 64-bit types
#define CARRYSEL(f)                               \
  [&]() -> Fn {                                   \
    if (Fn g = W32SEL(f)) return g;               \
    return ty == T_S64 ? (Fn)f<s64> : (Fn)f<u64>; \
  }()
// opcodes that also exist for floating-point types
static bool build_arithmetic(OpCtx& c) {
  Instr& I = c.I;
  const string& b = c.base;
  Ty ty = c.ty();
  bool cc = c.has("cc"), wide = c.has("wide"), hi = c.has("hi");
  if (b == "add" || b == "sub") {
    if (cc) I.op = 2;
    if (b == "add") return c.use(2, cc ? CARRYSEL(x_addc) : INTSEL(x_add));
    return c.use(2, cc ? CARRYSEL(x_subc) : INTSEL(x_sub));
  }
  if (b == "mul") return c.use(2, wide ? W32SEL(x_mulwide) : hi ? INTSEL(x_mulhi) : INTSEL(x_mullo));
  if (b == "madc" || ((b == "mad" || b == "fma") && cc)) {
    I.op = (b == "madc" ? 1 : 0) | (cc ? 2 : 0);
    I.op2 = hi;
    return c.use(3, CARRYSEL(x_madc));
  }
  if (b == "mad" || b == "fma")
    return c.use(3, wide ? W32SEL(x_madwide) : hi ? INTSEL(x_madhi) : INTSEL(x_madlo));
  if (b == "div") return c.use(2, INTSEL(x_div));
  if (b == "min" || b == "max") {
    I.flag = c.has("NaN");
    return c.use(2, b == "min" ? INTSEL(x_min) : INTSEL(x_max)) && I.nsrc == 2;
  }
  if (b == "neg") return c.use(1, INTSEL(x_neg));
  if (b == "abs") return c.use(1, INTSEL(x_abs));
  return false;
}
static bool build_dot(OpCtx& c) {
  Instr& I = c.I;
  bool two = c.base == "dp2a";
  if (two && c.tys.size() < 2) return false;
  I.op = c.ty() == T_S32;
  I.op2 = c.tys.size() > 1 && c.tys[1] == T_S32;
  if (two) I.flag = c.has("hi");
  return c.use(3, two ? x_dp2a : x_dp4a);
}
bool build_int(OpCtx& c) {
  Instr& I = c.I;
  const string& b = c.base;
  Ty ty = c.ty();
  if (!c.flt() && build_arithmetic(c)) return true;
  if (b == "addc" || b == "subc") {
    I.op = 1 | (c.has("cc") ? 2 : 0);
    return c.use(2, b == "addc" ? CARRYSEL(x_addc) : CARRYSEL(x_subc));
  }
  if (b == "mul24" || b == "mad24") {
    I.op = c.has("hi");
    I.op2 = b == "mad24";
    return c.use(2, ty == T_S32 ? (Fn)x_mul24<s32> : (Fn)x_mul24<u32>);
  }
  if (b == "rem") return c.use(2, INTSEL(x_rem));
  if (b == "sad") return c.use(3, INTSEL(x_sad));
  if (b == "dp2a" || b == "dp4a") return build_dot(c);
  return false;
}

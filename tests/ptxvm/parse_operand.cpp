// SPDX-License-Identifier: Zlib
// PTX parser: operands of instructions.
#include "parser.h"
template <class T>
static u64 bits(T x) {
  u64 v = 0;
  memcpy(&v, &x, sizeof x);
  return v;
}
// The bits of a literal as an operand of type t.
static u64 literal(const Tok& k, Ty t, bool negative) {
  u64 v = k.v;
  if (k.s == "f") {
    if (t == T_F64) {
      float f;
      memcpy(&f, &v, 4);
      v = bits((double)f);
    }
    if (negative) v ^= 0x80000000u;
    return v;
  }
  if (k.s == "d") {
    if (negative) v ^= 1ull << 63;
    if (t == T_F32) {
      double d;
      memcpy(&d, &v, 8);
      v = bits((float)d);
    }
    return v;
  }
  if (k.s.size() && k.s[0] == 'D') {
    double d = atof(k.s.c_str() + 1);
    if (negative) d = -d;
    return t == T_F64 ? bits(d) : bits((float)d);
  }
  if (negative) v = (u64) - (s64)v;
  if (t == T_F64) return bits((double)(s64)v);
  if (t == T_F32) return bits((float)(s64)v);
  return v;
}
void Parser::symbol(const Sym& s, Opnd& o) {
  switch (s.k) {
    case Sym::REG: o.r = (s32)s.v; break;
    case Sym::SHARED:
    case Sym::GLOBAL:
    case Sym::FUNC:
    case Sym::TABLE:
      o.r = R_IMM;
      o.imm = s.v;
      break;
    case Sym::DYNSH: o.r = R_DYNSH; break;
    case Sym::LOCAL:
      o.r = R_LOCAL;
      o.imm = s.v;
      break;
    case Sym::PARAM:
      o.r = R_PARAM;
      o.imm = s.v;
      break;
    default: break;
  }
  if (L.is("+") && o.r != R_SINK && L.peek().k == 'n' && s.k != Sym::REG) {
    L.skip();
    o.imm += L.num();
  }
}
Opnd Parser::opnd(Ty t) {
  Opnd o;
  if (L.eat("!")) o.neg = true;
  bool ng = L.eat("-");
  if (L.cur().k == 'n') {
    o.r = R_IMM;
    o.imm = literal(L.cur(), t, ng);
    L.skip();
    return o;
  }
  string n = L.ident();
  if (n == "_") {
    o.r = R_SINK;
    return o;
  }
  if (n == "WARP_SZ") {
    o.r = R_IMM;
    o.imm = 32;
    return o;
  }
  if (Sym* s = find(n)) {
    symbol(*s, o);
    return o;
  }
  int sr = sreg_id(n);
  if (sr < 0) L.fail("unknown operand " + n);
  o.r = R_SREG;
  o.imm = sr;
  return o;
}
std::pair<Opnd, s64> Parser::memop() {
  std::pair<Opnd, s64> m;
  m.second = 0;
  if (L.cur().k == 'n' || L.is("-")) {
    m.first.r = R_IMM;
    m.first.imm = (u64)L.num();
  } else
    m.first = opnd(T_B64);
  if (L.eat("+") || L.is("-")) m.second += L.num();
  L.need("]");
  return m;
}
void Parser::operands(OpCtx& c, Ty t) {
  int ngrp = 0;
  while (!L.eat(";")) {
    if (L.eat("[")) {
      c.mems.push_back(memop());
      if (c.mems.size() == 1) {
        c.I.s[0] = c.mems[0].first;
        c.I.off = c.mems[0].second;
      }
      c.mem = true;
      c.mempos = ngrp;
    } else if (L.eat("{")) {
      c.vecpos.push_back(ngrp);
      while (!L.eat("}")) {
        if (c.I.nv >= 8) L.fail("vector too long");
        c.I.v[c.I.nv++] = opnd(t);
        L.eat(",");
      }
      Opnd o;
      o.r = R_SINK;
      o.imm = 0xBEC;
      c.ops.push_back(o);
    } else {
      Opnd o = opnd(t);
      if (L.eat("|")) {
        c.I.d2 = opnd(T_PRED);
        c.pair = true;
      }
      c.ops.push_back(o);
    }
    ngrp++;
    L.eat(",");
  }
}

// SPDX-License-Identifier: Zlib
// PTX text to functions: the body of a function, instructions and their operands.
#include "parser.h"
#include "prof.h"

void Parser::body() {
  for (;;) {
    if (L.eat("}")) {
      close();
      return;
    }
    if (L.eat("{")) {
      sc.emplace_back();
      body();
      continue;
    }
    if (L.eat(";")) continue;
    if (L.cur().k == 'e') L.fail("eof in body");
    if (L.is(".reg")) {
      L.p++;
      string ty = L.ident();
      if (ty == ".v2" || ty == ".v4") ty = L.ident();
      do {
        string n = L.ident();
        if (L.eat("<")) {
          u32 c = (u32)L.num();
          L.need(">");
          for (u32 i = 0; i < c; i++) {
            Sym s;
            s.k = Sym::REG;
            s.v = F->nregs++;
            sc.back().sy[n + std::to_string(i)] = s;
          }
        } else {
          Sym s;
          s.k = Sym::REG;
          s.v = F->nregs++;
          sc.back().sy[n] = s;
        }
      } while (L.eat(","));
      L.need(";");
      continue;
    }
    if (L.is(".shared") || L.is(".local") || L.is(".param") || L.is(".global") || L.is(".const")) {
      string k = L.ident();
      var(k, false);
      continue;
    }
    if (L.is(".pragma")) {
      while (!L.eat(";")) L.p++;
      continue;
    }
    if (L.cur().k == 'i' && L.peek().k == 'p' && L.peek().s == ":") {
      string n = L.ident();
      L.p++;
      if (L.eat(".branchtargets")) {
        M.tables.emplace_back();
        size_t ti = M.tables.size() - 1;
        int k = 0;
        do {
          string l = L.ident();
          M.tables[ti].push_back(-1);
          sc.back().tpend.push_back({l, {ti, k++}});
        } while (L.eat(","));
        L.need(";");
        Sym s;
        s.k = Sym::TABLE;
        s.v = (u64)&M.tables[ti];
        sc.front().sy[n] = s;
        continue;
      }
      if (L.is(".callprototype")) {
        while (!L.eat(";")) L.p++;
        Sym s;
        s.k = Sym::PROTO;
        sc.back().sy[n] = s;
        continue;
      }
      sc.back().labels[n] = (s32)F->code.size();
      continue;
    }
    instr();
  }
}
Opnd Parser::opnd(const string& ctx_base, Ty t) {
  Opnd o;
  bool ng = false;
  if (L.eat("!")) {
    o.neg = true;
  }
  if (L.eat("-")) ng = true;
  if (L.cur().k == 'n') {
    Tok& k = L.cur();
    u64 v = k.v;
    if (k.s == "f") {
      if (t == T_F64) {
        float f;
        u32 w = (u32)v;
        memcpy(&f, &w, 4);
        double d = f;
        memcpy(&v, &d, 8);
      }
      if (ng) v ^= 0x80000000u;
    } else if (k.s == "d") {
      if (ng) v ^= 1ull << 63;
      if (t == T_F32) {
        double d;
        memcpy(&d, &v, 8);
        float f = (float)d;
        u32 w;
        memcpy(&w, &f, 4);
        v = w;
      }
    } else if (k.s.size() && k.s[0] == 'D') {
      double d = atof(k.s.c_str() + 1);
      if (ng) d = -d;
      if (t == T_F64)
        memcpy(&v, &d, 8);
      else {
        float f = (float)d;
        u32 w;
        memcpy(&w, &f, 4);
        v = w;
      }
    } else {
      if (ng) v = (u64) - (s64)v;
      if (t == T_F64) {
        double d = (double)(s64)v;
        memcpy(&v, &d, 8);
      } else if (t == T_F32) {
        float f = (float)(s64)v;
        u32 w;
        memcpy(&w, &f, 4);
        v = w;
      }
    }
    L.p++;
    o.r = R_IMM;
    o.imm = v;
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
  Sym* s = find(n);
  if (s) {
    switch (s->k) {
      case Sym::REG: o.r = (s32)s->v; break;
      case Sym::SHARED:
      case Sym::GLOBAL:
      case Sym::FUNC:
      case Sym::TABLE:
        o.r = R_IMM;
        o.imm = s->v;
        break;
      case Sym::DYNSH: o.r = R_DYNSH; break;
      case Sym::LOCAL:
        o.r = R_LOCAL;
        o.imm = s->v;
        break;
      case Sym::PARAM:
        o.r = R_PARAM;
        o.imm = s->v;
        break;
      default: break;
    }
    if (L.is("+") && o.r != R_SINK && L.peek().k == 'n' && s->k != Sym::REG) {
      L.p++;
      o.imm += L.num();
    }
    return o;
  }
  int sr = sreg_id(n);
  if (sr >= 0) {
    o.r = R_SREG;
    o.imm = sr;
    return o;
  }
  (void)ctx_base;
  L.fail("unknown operand " + n);
}
std::pair<Opnd, s64> Parser::memop() {
  std::pair<Opnd, s64> m;
  m.second = 0;
  if (L.cur().k == 'n' || L.is("-")) {
    m.first.r = R_IMM;
    m.first.imm = (u64)L.num();
  } else
    m.first = opnd("", T_B64);
  if (L.eat("+") || L.is("-")) m.second += L.num();
  L.need("]");
  return m;
}
void Parser::instr() {
  Instr I;
  I.line = L.cur().line;
  if (L.eat("@")) {
    I.gneg = L.eat("!");
    string p = L.ident();
    Sym* s = find(p);
    if (!s || s->k != Sym::REG) L.fail("guard");
    I.guard = (s32)s->v;
  }
  string full = L.ident();
  vector<string> m;
  {
    size_t a = 0;
    for (;;) {
      size_t b = full.find('.', a);
      string x = full.substr(a, b == string::npos ? b : b - a);  // re-join "::" parts untouched
      m.push_back(x);
      if (b == string::npos) break;
      a = b + 1;
    }
  }
  string base = m[0];
  vector<string> mods(m.begin() + 1, m.end());
  vector<Ty> tys;
  for (auto& x : mods) {
    Ty t = parse_ty(x);
    if (t != T_NONE) tys.push_back(t);
  }
  if (tys.size()) I.ty = tys[0];
  if (tys.size() > 1) I.ty2 = tys[1];
  if (base == "call") {
    call(I, mods);
    return;
  }
  if (base == "bra") {
    string l = L.ident();
    L.need(";");
    I.fn = op_bra();
    prof_classify(I, base, mods);
    F->code.push_back(I);
    sc.back().pend.push_back({l, (s32)F->code.size() - 1});
    return;
  }
  if (base == "brx") {
    I.s[0] = opnd("", T_U32);
    L.need(",");
    string l = L.ident();
    L.need(";");
    Sym* s = find(l);
    if (!s) L.fail("brx table");
    I.table = (vector<s32>*)s->v;
    I.fn = op_brx();
    prof_classify(I, base, mods);
    F->code.push_back(I);
    return;
  }
  // generic operand list
  Ty it = I.ty;
  if (base == "setp" || base == "set" || base == "slct") it = tys.size() > 1 ? tys[1] : I.ty;
  if (base == "setp") it = I.ty;
  if (base == "cvt" && tys.size() > 1) it = tys[1];
  if (base == "set" && tys.size() > 1) it = tys[1];
  vector<Opnd> ops;
  int ngrp = 0;
  vector<int> vecpos;
  bool memseen = false;
  Opnd pairq;
  bool haspair = false;
  int mempos = -1;
  vector<std::pair<Opnd, s64>> mems;
  while (!L.eat(";")) {
    if (L.eat("[")) {
      mems.push_back(memop());
      if (mems.size() == 1) {
        I.s[0] = mems[0].first;
        I.off = mems[0].second;
      }
      memseen = true;
      mempos = ngrp;
      ngrp++;
    } else if (L.eat("{")) {
      vecpos.push_back(ngrp);
      while (!L.eat("}")) {
        if (I.nv >= 8) L.fail("vector too long");
        I.v[I.nv++] = opnd(base, it);
        L.eat(",");
      }
      ngrp++;
      Opnd o;
      o.r = R_SINK;
      o.imm = 0xBEC;
      ops.push_back(o);
    } else {
      Opnd o = opnd(base, it);
      if (L.eat("|")) {
        pairq = opnd(base, T_PRED);
        haspair = true;
      }
      ops.push_back(o);
      ngrp++;
    }
    L.eat(",");
  }
  if (haspair) I.d2 = pairq;
  OpCtx c{base, mods, tys, ops, I, memseen, mempos, vecpos, haspair, full, mems};
  if (!build_op(c)) {
    I.fn = op_unsupported();
  }
  prof_classify(I, base, mods);
  F->code.push_back(I);
}
void Parser::call(Instr I, const vector<string>&) {
  M.calls.emplace_back();
  Call& c = M.calls.back();
  I.call = &c;
  I.fn = op_call();
  I.kind = IK_CONTROL;
  F->calls = true;
  auto plist = [&](bool ret) {
    while (!L.eat(")")) {
      if (L.cur().k == 'n' || L.is("-")) {
        Opnd o = opnd("", T_B64);
        c.regargs.push_back(o);
      } else {
        string n = L.ident();
        Sym* s = find(n);
        if (!s) L.fail("call arg");
        if (s->k == Sym::PARAM) {
          if (ret) {
            c.hasret = true;
            c.retoff = s->v;
            c.retsize = s->size;
          } else
            c.args.push_back({(u32)s->v, s->size});
        } else
          L.fail("call with register args unsupported");
      }
      L.eat(",");
    }
  };
  if (L.eat("(")) {
    plist(true);
    L.need(",");
  }
  string n = L.ident();
  Sym* s = find(n);
  c.name = n;
  if (s && s->k == Sym::REG) {
    c.indirect = true;
    c.ind.r = (s32)s->v;
  } else if (s && s->k == Sym::FUNC)
    c.callee = s->f;
  if (L.eat(",")) {
    if (L.eat("("))
      plist(false);
    else if (L.cur().k == 'i')
      L.p++;
  }
  if (L.eat(",")) {
    L.p++;
  }
  L.need(";");
  F->code.push_back(I);
}

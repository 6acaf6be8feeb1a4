// SPDX-License-Identifier: Zlib
// PTX parser: function bodies and instructions.
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
    if (L.eat(".reg")) {
      registers();
      continue;
    }
    if (L.is(".shared") || L.is(".local") || L.is(".param") || L.is(".global") || L.is(".const")) {
      string k = L.ident();
      var(k, false);
      continue;
    }
    if (L.is(".pragma")) {
      L.skip_past(";");
      continue;
    }
    if (L.cur().k == 'i' && L.peek().k == 'p' && L.peek().s == ":") {
      label();
      continue;
    }
    instr();
  }
}
void Parser::registers() {  // '.reg' already eaten
  string ty = L.ident();
  if (ty == ".v2" || ty == ".v4") ty = L.ident();
  do {
    string n = L.ident();
    if (L.eat("<")) {
      u32 c = (u32)L.num();
      L.need(">");
      for (u32 i = 0; i < c; i++) sc.back().sy[n + std::to_string(i)] = {Sym::REG, F->nregs++};
    } else
      sc.back().sy[n] = {Sym::REG, F->nregs++};
  } while (L.eat(","));
  L.need(";");
}
void Parser::label() {  // the label of an instruction, a table or a prototype
  string n = L.ident();
  L.skip();
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
    sc.front().sy[n] = {Sym::TABLE, (u64)&M.tables[ti]};
    return;
  }
  if (L.is(".callprototype")) {
    L.skip_past(";");
    sc.back().sy[n] = {Sym::PROTO};
    return;
  }
  sc.back().labels[n] = (s32)F->code.size();
}
static vector<string> split(const string& s) {  // splits at each dot
  vector<string> m;
  size_t a = 0;
  for (;;) {
    size_t b = s.find('.', a);
    m.push_back(s.substr(a, b == string::npos ? b : b - a));
    if (b == string::npos) return m;
    a = b + 1;
  }
}
void Parser::guard(Instr& I) {  // '@' already eaten
  I.gneg = L.eat("!");
  string p = L.ident();
  Sym* s = find(p);
  if (!s || s->k != Sym::REG) L.fail("guard");
  I.guard = (s32)s->v;
}
void Parser::instr() {
  Instr I;
  I.line = L.cur().line;
  if (L.eat("@")) guard(I);
  string full = L.ident();
  vector<string> mods = split(full);
  string base = mods[0];
  mods.erase(mods.begin());
  vector<Ty> tys;
  for (auto& x : mods) {
    Ty t = parse_ty(x);
    if (t != T_NONE) tys.push_back(t);
  }
  if (tys.size()) I.ty = tys[0];
  if (tys.size() > 1) I.ty2 = tys[1];
  if (base == "call") {
    call(I);
    return;
  }
  if (base == "bra") {
    branch(I);
  } else if (base == "brx") {
    branch_table(I);
  } else {
    // literals have the source's type
    bool second = (base == "set" || base == "slct" || base == "cvt") && tys.size() > 1;
    vector<Opnd> ops;
    OpCtx c{base, mods, tys, ops, I, false, -1, {}, false, full, {}};
    operands(c, second ? tys[1] : I.ty);
    try {
      if (!build_op(c)) I.fn = op_unsupported();
    } catch (const std::out_of_range&) {
      L.fail("too few operands for " + full);
    }
  }
  prof_classify(I, base, mods);
  F->code.push_back(I);
}
void Parser::branch(Instr& I) {
  string l = L.ident();
  L.need(";");
  I.fn = op_bra();
  sc.back().pend.push_back({l, (s32)F->code.size()});
}
void Parser::branch_table(Instr& I) {
  I.s[0] = opnd(T_U32);
  L.need(",");
  string l = L.ident();
  L.need(";");
  Sym* s = find(l);
  if (!s) L.fail("brx table");
  I.table = (vector<s32>*)s->v;
  I.fn = op_brx();
}
void Parser::arguments(Call& c, bool ret) {  // '(' already eaten
  while (!L.eat(")")) {
    if (L.cur().k == 'n' || L.is("-")) {
      c.regargs.push_back(opnd(T_B64));
    } else {
      string n = L.ident();
      Sym* s = find(n);
      if (!s) L.fail("call arg");
      if (s->k != Sym::PARAM) L.fail("call with register args unsupported");
      if (ret) {
        c.hasret = true;
        c.retoff = s->v;
        c.retsize = s->size;
      } else
        c.args.push_back({(u32)s->v, s->size});
    }
    L.eat(",");
  }
}
void Parser::call(Instr I) {
  M.calls.emplace_back();
  Call& c = M.calls.back();
  I.call = &c;
  I.fn = op_call();
  I.kind = IK_CONTROL;
  F->calls = true;
  if (L.eat("(")) {
    arguments(c, true);
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
      arguments(c, false);
    else if (L.cur().k == 'i')
      L.skip();
  }
  if (L.eat(",")) {
    L.skip();
  }
  L.need(";");
  F->code.push_back(I);
}

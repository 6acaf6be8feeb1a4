// SPDX-License-Identifier: Zlib
// PTX parser: variables with their initial values, and parameters.
#include "parser.h"

void Parser::readinit(vector<u8>& b, u32 es, Ty t, vector<AddressAt>& fx) {
  if (L.eat("{")) {
    while (!L.eat("}")) {
      readinit(b, es, t, fx);
      L.eat(",");
    }
    return;
  }
  bool ng = L.eat("-");
  if (L.cur().k == 'n') {
    u64 v = L.cur().v;
    if (L.cur().s.size() && L.cur().s[0] == 'D' && t == T_F32) {
      float f = (float)atof(L.cur().s.c_str() + 1);
      u32 w;
      memcpy(&w, &f, 4);
      v = w;
    }
    L.skip();
    if (ng) v = (u64) - (s64)v;
    size_t o = b.size();
    b.resize(o + es);
    memcpy(&b[o], &v, std::min(es, 8u));
    return;
  }
  string n = L.ident();
  if (n == "generic") {
    L.need("(");
    n = L.ident();
  }
  s64 add = 0;
  if (L.eat("+")) add = L.num();
  if (L.is(")")) L.skip();
  if (L.eat("+")) add += L.num();
  size_t o = b.size();
  b.resize(o + es);
  fx.push_back({o, n, add});
}
VarHead Parser::var_head() {
  VarHead h;
  while (L.cur().k == 'i' && L.cur().s[0] == '.') {
    if (L.eat(".align")) {
      h.align = (u32)L.num();
      continue;
    }
    if (L.eat(".attribute")) {
      L.need("(");
      while (!L.eat(")")) {
        if (L.is(".managed")) h.managed = true;
        L.skip();
      }
      continue;
    }
    if (L.eat(".v2")) {
      h.vec = 2;
      continue;
    }
    if (L.eat(".v4")) {
      h.vec = 4;
      continue;
    }
    if (L.eat(".ptr")) {
      continue;
    }
    h.t = parse_ty(L.ident().substr(1));
    if (h.t == T_NONE) h.t = T_B64;
  }
  return h;
}
u64 Parser::dimensions(bool& unsized) {  // the product of the numbers in [..][..]
  u64 cnt = 1;
  while (L.eat("[")) {
    if (L.eat("]")) {
      unsized = true;
      continue;
    }
    cnt *= L.num();
    L.need("]");
  }
  return cnt;
}
Sym Parser::place_shared(u64 size, u32 al, bool dynamic) {
  if (dynamic) return {Sym::DYNSH, 0};
  bool own = F && F->entry;  // true: a kernel's variable; false: the module's
  u32& used = own ? F->shsize : commonsh;
  used = alignup(used, al);
  Sym s{Sym::SHARED, own ? used : (128u << 10) + used};
  used += size;
  return s;
}
Sym Parser::place_global(const string& n, u64 size, bool managed, bool constant, const vector<u8>& init) {
  u8*& p = M.vars[n].p;
  if (!p) {
    u64 view = 0;
    p = (u8*)vm_map(std::max<u64>(size, 1), !managed && !kind(PAGES), view);
    if (!p) L.fail("no memory for a variable");
    vm_add_alloc(p, std::max<u64>(size, 1), managed ? 1 : 3, 0, constant, view);
    M.vars[n].size = size;
  }
  if (init.size()) memcpy(vm_at((u64)p), init.data(), std::min<size_t>(size, init.size()));
  return {Sym::GLOBAL, (u64)p};
}
// Parses one variable of a declaration: its name, dimensions and initial value.
void Parser::declare(const string& space, bool ext, const VarHead& h) {
  string n = L.ident();
  bool unsized = false;
  u64 cnt = dimensions(unsized);
  u32 es = ty_size(h.t);
  u32 al = h.align ? h.align : es * h.vec;
  u64 size = unsized ? 0 : cnt * es * h.vec;
  Sym s;
  vector<u8> init;
  vector<AddressAt> fx;
  if (L.eat("=")) {
    readinit(init, es, h.t, fx);
    if (unsized) size = init.size();
  }
  if (space == ".shared") {
    s = place_shared(size, al, unsized || (ext && size == 0));
  } else if (space == ".local" && F) {
    F->localsize = alignup(F->localsize, al);
    s = {Sym::LOCAL, F->localsize};
    F->localsize += size;
  } else if (space == ".param" && F) {
    F->pmem = alignup(F->pmem, std::max(al, 8u));
    s = {Sym::PARAM, F->pmem};
    F->pmem += size;
  } else {
    s = place_global(n, size, h.managed, space == ".const", init);
    for (auto& f : fx) fix.push_back({vm_at(s.v) + std::get<0>(f), std::get<1>(f), std::get<2>(f)});
  }
  s.size = size;
  (F ? sc.back().sy : gs)[n] = s;
}
void Parser::var(const string& space, bool ext) {
  VarHead h = var_head();
  do declare(space, ext, h);
  while (L.eat(","));
  L.need(";");
}
ParamDef Parser::param() {
  ParamDef d;
  u32 align = 0;
  Ty t = T_NONE;
  if (!L.eat(".param") && !L.eat(".reg")) L.fail("param");
  while (L.cur().k == 'i' && L.cur().s[0] == '.') {
    if (L.eat(".align")) {
      u32 a = (u32)L.num();
      if (!align) align = a;
      continue;
    }
    if (L.eat(".ptr")) {  // attributes of the pointee follow, including its .align
      while (L.is(".global") || L.is(".const") || L.is(".shared") || L.is(".local") || L.is(".align")) {
        if (L.eat(".align"))
          L.num();
        else
          L.skip();
      }
      continue;
    }
    t = parse_ty(L.ident().substr(1));
  }
  if (L.cur().k == 'i') d.name = L.ident();
  u64 cnt = 1;
  while (L.eat("[")) {
    if (L.eat("]")) {
      cnt = 0;
      continue;
    }
    cnt *= L.num();
    L.need("]");
  }
  d.size = cnt * ty_size(t);
  d.align = align ? align : ty_size(t);
  return d;
}

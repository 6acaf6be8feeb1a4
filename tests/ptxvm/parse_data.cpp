// SPDX-License-Identifier: Zlib
// PTX text to functions: variables with their initial values, parameters.
#include "parser.h"

void Parser::readinit(vector<u8>& b, u32 es, Ty t, vector<std::tuple<size_t, string, s64>>& fx) {
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
    L.p++;
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
  if (L.is(")")) L.p++;
  if (L.eat("+")) add += L.num();
  size_t o = b.size();
  b.resize(o + es);
  fx.push_back({o, n, add});
}
void Parser::var(const string& space, bool ext) {
  u32 align = 0;
  Ty t = T_NONE;
  u32 vec = 1;
  bool managed = false;
  while (L.cur().k == 'i' && L.cur().s[0] == '.') {
    if (L.eat(".align")) {
      align = (u32)L.num();
      continue;
    }
    if (L.eat(".attribute")) {
      L.need("(");
      while (!L.eat(")")) {
        if (L.is(".managed")) managed = true;
        L.p++;
      }
      continue;
    }
    if (L.eat(".v2")) {
      vec = 2;
      continue;
    }
    if (L.eat(".v4")) {
      vec = 4;
      continue;
    }
    if (L.eat(".ptr")) {
      continue;
    }
    t = parse_ty(L.ident().substr(1));
    if (t == T_NONE) t = T_B64;
  }
  do {
    string n = L.ident();
    u64 cnt = 1;
    bool unsized = false;
    while (L.eat("[")) {
      if (L.eat("]")) {
        unsized = true;
        continue;
      }
      cnt *= L.num();
      L.need("]");
    }
    u32 es = ty_size(t);
    u32 al = align ? align : es * vec;
    u64 size = unsized ? 0 : cnt * es * vec;
    Sym s;
    vector<u8> init;
    vector<std::tuple<size_t, string, s64>> fx;
    if (L.eat("=")) {
      readinit(init, es, t, fx);
      if (unsized) size = init.size();
    }
    if (space == ".shared") {
      if (unsized || (ext && size == 0)) {
        s.k = Sym::DYNSH;
        s.v = 0;
      } else if (F && F->entry) {
        F->shsize = alignup(F->shsize, al);
        s.k = Sym::SHARED;
        s.v = F->shsize;
        F->shsize += size;
      } else {
        commonsh = alignup(commonsh, al);
        s.k = Sym::SHARED;
        s.v = (128u << 10) + commonsh;
        commonsh += size;
      }
    } else if (space == ".local" && F) {
      F->localsize = alignup(F->localsize, al);
      s.k = Sym::LOCAL;
      s.v = F->localsize;
      F->localsize += size;
    } else if (space == ".param" && F) {
      F->pmem = alignup(F->pmem, std::max(al, 8u));
      s.k = Sym::PARAM;
      s.v = F->pmem;
      s.size = size;
      F->pmem += size;
    } else {
      u8* p = nullptr;
      auto it = M.vars.find(n);
      if (it != M.vars.end() && it->second.p)
        p = it->second.p;
      else {
        p = (u8*)aligned_alloc(256, alignup(std::max<u64>(size, 1), 256));
        memset(p, 0, alignup(std::max<u64>(size, 1), 256));
        vm_add_alloc(p, std::max<u64>(size, 1), managed ? 1 : 3, 0, space == ".const");
        M.vars[n] = {p, size};
      }
      if (init.size()) memcpy(p, init.data(), std::min<size_t>(size, init.size()));
      for (auto& f : fx) fix.push_back({p + std::get<0>(f), std::get<1>(f), std::get<2>(f)});
      s.k = Sym::GLOBAL;
      s.v = (u64)p;
    }
    s.size = size;
    if (F)
      sc.back().sy[n] = s;
    else
      gs[n] = s;
  } while (L.eat(","));
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
    if (L.eat(".ptr")) {  // pointee attributes follow; their .align is not the parameter's
      while (L.is(".global") || L.is(".const") || L.is(".shared") || L.is(".local") || L.is(".align")) {
        if (L.eat(".align"))
          L.num();
        else
          L.p++;
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

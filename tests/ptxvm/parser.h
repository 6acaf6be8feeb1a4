// SPDX-License-Identifier: Zlib
// The parser of a module: state and declarations of parse.cpp, parse_data.cpp, parse_instr.cpp.
#pragma once
#include <tuple>

#include "ops.h"
#include "parse_lexer.h"

struct Sym {
  enum K { REG, SHARED, DYNSH, LOCAL, PARAM, GLOBAL, FUNC, TABLE, PROTO } k;
  u64 v = 0;
  u32 size = 0;
  Func* f = nullptr;
};
struct Scope {
  std::unordered_map<string, Sym> sy;
  std::unordered_map<string, s32> labels;
  vector<std::pair<string, s32>> pend;
  vector<std::pair<string, std::pair<size_t, int>>> tpend;
};
inline u32 alignup(u32 v, u32 a) { return (v + a - 1) / a * a; }

struct Parser {
  Module& M;
  Lexer L;
  std::unordered_map<string, Sym> gs;
  vector<Scope> sc;
  Func* F = nullptr;
  u32 commonsh = 0;
  vector<std::tuple<u8*, string, s64>> fix;
  Parser(Module& m) : M(m), L(m.text) {}

  // parse.cpp
  Sym* find(const string& n);
  Func* func(const string& n);
  void module();
  void function(bool ext);
  void close();

  // parse_data.cpp
  void readinit(vector<u8>& b, u32 es, Ty t, vector<std::tuple<size_t, string, s64>>& fx);
  void var(const string& space, bool ext);
  ParamDef param();

  // parse_instr.cpp
  void body();  // after '{', until matching '}'
  Opnd opnd(const string& ctx_base, Ty t);
  std::pair<Opnd, s64> memop();  // '[' already eaten
  void instr();
  void call(Instr I, const vector<string>&);
};

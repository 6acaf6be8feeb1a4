// SPDX-License-Identifier: Zlib
// Declares the state of a module's parser, and its functions. parse.cpp, parse_data.cpp, parse_instr.cpp and
// parse_operand.cpp define the functions.
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
// A symbol in an initial value: its offset there, its name and its addend.
typedef std::tuple<size_t, string, s64> AddressAt;
struct VarHead {  // the part of a declaration that all its variables share
  u32 align = 0;
  Ty t = T_NONE;
  u32 vec = 1;
  bool managed = false;
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
  void link();
  u32 parameters(Func* f);
  void bounds(Func* f);
  void function();
  void define(Func* f);
  void close();

  // parse_data.cpp
  void readinit(vector<u8>& b, u32 es, Ty t, vector<AddressAt>& fx);
  VarHead var_head();
  u64 dimensions(bool& unsized);
  Sym place_shared(u64 size, u32 al, bool dynamic);
  Sym place_global(const string& n, u64 size, bool managed, bool constant, const vector<u8>& init);
  void declare(const string& space, bool ext, const VarHead& h);
  void var(const string& space, bool ext);
  ParamDef param();

  // parse_instr.cpp
  void body();  // from after '{' to the matching '}'
  void registers();
  void label();
  void guard(Instr& I);
  void instr();
  void branch(Instr& I);
  void branch_table(Instr& I);
  void arguments(Call& c, bool ret);
  void call(Instr I);

  // parse_operand.cpp
  void symbol(const Sym& s, Opnd& o);
  Opnd opnd(Ty t);
  std::pair<Opnd, s64> memop();  // '[' already eaten
  void operands(OpCtx& c, Ty t);
};

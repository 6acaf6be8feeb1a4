// SPDX-License-Identifier: Zlib
// Tokens of PTX text, and a cursor over them.
#pragma once
#include <cctype>
#include <stdexcept>

#include "ptxvm.h"
using std::string;
using std::vector;

struct Tok {
  char k;
  string s;
  u64 v = 0;
  u32 line = 0;
};  // k: i identifier, n number, s string, p punctuation, e end of the text
struct Lexer {
  vector<Tok> t;
  size_t p = 0;
  static bool id0(char c) {
    return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
  }
  static bool idc(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
  }
  explicit Lexer(const string& s);
  Tok& cur() { return t[p]; }
  Tok& peek(int n = 1) { return t[std::min(p + n, t.size() - 1)]; }
  bool is(const char* s) { return (cur().k == 'p' || cur().k == 'i') && cur().s == s; }
  bool eat(const char* s) {
    if (is(s)) {
      p++;
      return true;
    }
    return false;
  }
  [[noreturn]] void fail(const string& m) {
    throw std::runtime_error("ptx line " + std::to_string(cur().line) + ": " + m + " near '" + cur().s + "'");
  }
  void skip() {
    if (cur().k == 'e') fail("unexpected end");
    p++;
  }
  void skip_past(const char* s) {
    while (!eat(s)) skip();
  }
  void need(const char* s) {
    if (!eat(s)) fail(string("expected ") + s);
  }
  string ident() {
    if (cur().k != 'i') fail("expected identifier");
    return t[p++].s;
  }
  s64 num() {
    bool ng = eat("-");
    if (cur().k != 'n') fail("expected number");
    s64 v = (s64)t[p++].v;
    return ng ? -v : v;
  }
};

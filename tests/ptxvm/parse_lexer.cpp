// SPDX-License-Identifier: Zlib
// Splits PTX text into tokens.
#include "parse_lexer.h"

namespace {
// Reads the text at i. Line numbers begin at 1.
struct Scanner {
  const string& s;
  size_t i = 0, n = s.size();
  u32 line = 1;
  bool bol = true;  // only blanks have been read on this line

  bool at(size_t j, char a, char b) { return j < n && (s[j] == a || s[j] == b); }
  bool digit(size_t j) { return j < n && isdigit((unsigned char)s[j]); }
  void skip_line() {
    while (i < n && s[i] != '\n') i++;
  }
  void skip_comment() {
    i += 2;
    while (i + 1 < n && !(s[i] == '*' && s[i + 1] == '/')) {
      if (s[i] == '\n') line++;
      i++;
    }
    i += 2;
  }
  bool at_line_directive() {
    return s.compare(i, 5, ".loc ") == 0 || s.compare(i, 5, ".loc\t") == 0 ||
           s.compare(i, 6, ".file ") == 0 || s.compare(i, 6, ".file\t") == 0;
  }
  void skip_section() {  // skips to the closing brace of a section
    int d = 0;
    while (i < n) {
      if (s[i] == '{') d++;
      if (s[i] == '\n') line++;
      if (s[i] == '}') {
        d--;
        if (!d) {
          i++;
          break;
        }
      }
      i++;
    }
  }
  // Skips a blank, a comment, a directive or a section. Returns false if there is none.
  bool skip() {
    char c = s[i];
    if (c == '\n') {
      line++;
      i++;
      bol = true;
      return true;
    }
    if (isspace((unsigned char)c)) {
      i++;
      return true;
    }
    if (c == '/' && i + 1 < n && s[i + 1] == '/') {
      skip_line();
      return true;
    }
    if (c == '/' && i + 1 < n && s[i + 1] == '*') {
      skip_comment();
      return true;
    }
    if (bol && c == '.' && at_line_directive()) {
      skip_line();
      return true;
    }
    bol = false;
    if (c == '.' && s.compare(i, 8, ".section") == 0) {
      skip_section();
      return true;
    }
    return false;
  }

  void quoted(Tok& k) {
    size_t j = i + 1;
    while (j < n && s[j] != '"') {
      if (s[j] == '\\') j++;
      j++;
    }
    k.k = 's';
    k.s = s.substr(i + 1, j - i - 1);
    i = j + 1;
  }
  // Reads 0f or 0d, and then the bits of a floating-point number in hexadecimal.
  bool float_bits(Tok& k) {
    if (s[i] != '0') return false;
    if (at(i + 1, 'f', 'F') && i + 9 < n + 1 && isxdigit((unsigned char)s[i + 2])) {
      k.v = strtoull(s.substr(i + 2, 8).c_str(), 0, 16);
      k.s = "f";
      i += 10;
      return true;
    }
    if (at(i + 1, 'd', 'D')) {
      k.v = strtoull(s.substr(i + 2, 16).c_str(), 0, 16);
      k.s = "d";
      i += 18;
      return true;
    }
    return false;
  }
  // Reads a number such as 1.5. j is the index of its decimal point.
  void decimal(Tok& k, size_t j) {
    size_t e = j + 1;
    while (digit(e)) e++;
    double dv = strtod(s.substr(i, e - i).c_str(), 0);
    memcpy(&k.v, &dv, 8);
    k.s = "D" + s.substr(i, e - i);
    i = e;
  }
  void number(Tok& k) {
    k.k = 'n';
    if (float_bits(k)) return;
    size_t j = i;
    bool hex = s[i] == '0' && at(i + 1, 'x', 'X'), bin = s[i] == '0' && at(i + 1, 'b', 'B');
    if (hex || bin) j = i + 2;
    if (hex)
      while (j < n && isxdigit((unsigned char)s[j])) j++;
    else if (bin)
      while (at(j, '0', '1')) j++;
    else
      while (digit(j)) j++;
    if (!hex && !bin && j < n && s[j] == '.' && digit(j + 1)) {
      decimal(k, j);
      return;
    }
    string num = s.substr(i, j - i);
    k.v = hex                                 ? strtoull(num.c_str() + 2, 0, 16)
          : bin                               ? strtoull(num.c_str() + 2, 0, 2)
          : (num.size() > 1 && num[0] == '0') ? strtoull(num.c_str(), 0, 8)
                                              : strtoull(num.c_str(), 0, 10);
    if (at(j, 'u', 'U')) j++;
    i = j;
  }
  // Reads a name or an opcode with its modifiers, such as ld.shared::cta.u32.
  void identifier(Tok& k) {
    size_t j = i;
    while (j < n && (Lexer::idc(s[j]) || (s[j] == ':' && j + 1 < n && s[j + 1] == ':') ||
                     (s[j] == ':' && s[j - 1] == ':')))
      j++;
    k.k = 'i';
    k.s = s.substr(i, j - i);
    i = j;
  }
};
}  // namespace

Lexer::Lexer(const string& s) {
  Scanner c{s};
  while (c.i < c.n) {
    if (c.skip()) continue;
    Tok k;
    k.line = c.line;
    char first = s[c.i];
    if (first == '"')
      c.quoted(k);
    else if (isdigit((unsigned char)first))
      c.number(k);
    else if (id0(first))
      c.identifier(k);
    else {
      k.k = 'p';
      k.s = string(1, first);
      c.i++;
    }
    t.push_back(k);
  }
  Tok e;
  e.k = 'e';
  e.line = c.line;
  t.push_back(e);
}

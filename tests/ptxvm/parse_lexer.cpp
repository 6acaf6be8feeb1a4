// SPDX-License-Identifier: Zlib
// PTX text to tokens.
#include "parse_lexer.h"

Lexer::Lexer(const string& s) {
  size_t i = 0, n = s.size();
  u32 line = 1;
  bool bol = true;
  while (i < n) {
    char c = s[i];
    if (c == '\n') {
      line++;
      i++;
      bol = true;
      continue;
    }
    if (isspace((unsigned char)c)) {
      i++;
      continue;
    }
    if (c == '/' && i + 1 < n && s[i + 1] == '/') {
      while (i < n && s[i] != '\n') i++;
      continue;
    }
    if (c == '/' && i + 1 < n && s[i + 1] == '*') {
      i += 2;
      while (i + 1 < n && !(s[i] == '*' && s[i + 1] == '/')) {
        if (s[i] == '\n') line++;
        i++;
      }
      i += 2;
      continue;
    }
    if (bol && c == '.' &&
        (s.compare(i, 5, ".loc ") == 0 || s.compare(i, 5, ".loc\t") == 0 || s.compare(i, 6, ".file ") == 0 ||
         s.compare(i, 6, ".file\t") == 0)) {
      while (i < n && s[i] != '\n') i++;
      continue;
    }
    bol = false;
    if (c == '.' && s.compare(i, 8, ".section") == 0) {
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
      continue;
    }
    Tok k;
    k.line = line;
    if (c == '"') {
      size_t j = i + 1;
      while (j < n && s[j] != '"') {
        if (s[j] == '\\') j++;
        j++;
      }
      k.k = 's';
      k.s = s.substr(i + 1, j - i - 1);
      i = j + 1;
      t.push_back(k);
      continue;
    }
    if (isdigit((unsigned char)c)) {
      k.k = 'n';
      if (c == '0' && i + 1 < n && (s[i + 1] == 'f' || s[i + 1] == 'F') && i + 9 < n + 1 &&
          isxdigit((unsigned char)s[i + 2])) {
        k.v = strtoull(s.substr(i + 2, 8).c_str(), 0, 16);
        k.s = "f";
        i += 10;
        t.push_back(k);
        continue;
      }
      if (c == '0' && i + 1 < n && (s[i + 1] == 'd' || s[i + 1] == 'D')) {
        k.v = strtoull(s.substr(i + 2, 16).c_str(), 0, 16);
        k.s = "d";
        i += 18;
        t.push_back(k);
        continue;
      }
      size_t j = i;
      bool hex = false, bin = false;
      if (c == '0' && i + 1 < n && (s[i + 1] == 'x' || s[i + 1] == 'X')) {
        hex = true;
        j = i + 2;
        while (j < n && isxdigit((unsigned char)s[j])) j++;
      } else if (c == '0' && i + 1 < n && (s[i + 1] == 'b' || s[i + 1] == 'B')) {
        bin = true;
        j = i + 2;
        while (j < n && (s[j] == '0' || s[j] == '1')) j++;
      } else
        while (j < n && isdigit((unsigned char)s[j])) j++;
      if (!hex && !bin && j < n && s[j] == '.' && j + 1 < n && isdigit((unsigned char)s[j + 1])) {
        size_t e = j + 1;
        while (e < n && isdigit((unsigned char)s[e])) e++;
        k.s = "D";
        double dv = strtod(s.substr(i, e - i).c_str(), 0);
        memcpy(&k.v, &dv, 8);
        k.s = "D" + s.substr(i, e - i);
        i = e;
        t.push_back(k);
        continue;
      }
      string num = s.substr(i, j - i);
      k.v = hex                                 ? strtoull(num.c_str() + 2, 0, 16)
            : bin                               ? strtoull(num.c_str() + 2, 0, 2)
            : (num.size() > 1 && num[0] == '0') ? strtoull(num.c_str(), 0, 8)
                                                : strtoull(num.c_str(), 0, 10);
      if (j < n && (s[j] == 'U' || s[j] == 'u')) j++;
      i = j;
      t.push_back(k);
      continue;
    }
    if (id0(c)) {
      size_t j = i;
      while (j < n &&
             (idc(s[j]) || (s[j] == ':' && j + 1 < n && s[j + 1] == ':') || (s[j] == ':' && s[j - 1] == ':')))
        j++;
      k.k = 'i';
      k.s = s.substr(i, j - i);
      i = j;
      t.push_back(k);
      continue;
    }
    k.k = 'p';
    k.s = string(1, c);
    i++;
    t.push_back(k);
  }
  Tok e;
  e.k = 'e';
  e.line = line;
  t.push_back(e);
}

// SPDX-License-Identifier: Zlib
// Where CUDA's documentation leaves a choice, this runtime does what is inconvenient for programs. So a
// program that relies on more than CUDA guarantees fails here. PTXVM_KIND=name,name,... selects kindnesses,
// which are the convenient choices.
#include <algorithm>

#include "rt.h"

static const char* const g_kindnesses[] = {"pages",   "prompt", "blocking", "freeing",   "freed",
                                           "ordered", "loaded", "reset",    "destroying"};

static unsigned read_kindnesses() {
  const char* s = getenv("PTXVM_KIND");
  std::string all = s ? s : "";
  unsigned given = 0;
  for (size_t a = 0; a < all.size();) {
    size_t b = std::min(all.find(',', a), all.size());
    const std::string name = all.substr(a, b - a);
    a = b + 1;
    unsigned bits = name == "all" ? ~0u : 0;
    for (size_t k = 0; k < sizeof g_kindnesses / sizeof *g_kindnesses; k++)
      if (name == g_kindnesses[k]) bits = 1u << k;
    if (!bits && !name.empty()) {
      fprintf(stderr, "ptxvm: PTXVM_KIND: '%s': no such kindness\n", name.c_str());
      _Exit(2);
    }
    given |= bits;
  }
  return given;
}
bool kind(Kindness k) {
  static const unsigned given = read_kindnesses();
  return given >> k & 1;
}

// SPDX-License-Identifier: Zlib
// Loads plugins that use Bullet, each with its own libraries. The program itself does not use
// Bullet.
// Usage: plugin_host (WHOSE PLUGIN)...     calls each plugin's everyWay with the argument WHOSE
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  int failures = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    void* const plugin = dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL);
    void* const found = plugin == nullptr ? nullptr : dlsym(plugin, "everyWay");
    if (found == nullptr) {
      std::printf("FAILED: %s\n", dlerror());
      return 1;
    }
    failures += reinterpret_cast<int (*)(int, char**)>(found)(2, argv + i - 1);
  }
  return failures == 0 ? 0 : 1;
}

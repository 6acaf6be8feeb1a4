// SPDX-License-Identifier: Zlib
#include "bullets.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace gpulbvhDbvt {
namespace {

#define DBVT "16btDbvtBroadphase"
const char* const kNames[kFunctions] = {
    "_ZN" DBVT "D1Ev",
    "_ZN" DBVT "D0Ev",
    "_ZN" DBVT "11createProxyERK9btVector3S2_iPviiP12btDispatcher",
    "_ZN" DBVT "12destroyProxyEP17btBroadphaseProxyP12btDispatcher",
    "_ZN" DBVT "7setAabbEP17btBroadphaseProxyRK9btVector3S4_P12btDispatcher",
    "_ZNK" DBVT "7getAabbEP17btBroadphaseProxyR9btVector3S3_",
    "_ZN" DBVT "7rayTestERK9btVector3S2_R23btBroadphaseRayCallbackS2_S2_",
    "_ZN" DBVT "8aabbTestERK9btVector3S2_R24btBroadphaseAabbCallback",
    "_ZN" DBVT "25calculateOverlappingPairsEP12btDispatcher",
    "_ZN" DBVT "23getOverlappingPairCacheEv",
    "_ZNK" DBVT "23getOverlappingPairCacheEv",
    "_ZNK" DBVT "17getBroadphaseAabbER9btVector3S1_",
    "_ZN" DBVT "9resetPoolEP12btDispatcher",
    "_ZN" DBVT "10printStatsEv",
    "_ZN" DBVT "C1EP22btOverlappingPairCache",
    "_ZN" DBVT "7collideEP12btDispatcher",
    "_ZN" DBVT "8optimizeEv",
    "_ZN" DBVT "22performDeferredRemovalEP12btDispatcher",
    "_ZN" DBVT "18setAabbForceUpdateEP17btBroadphaseProxyRK9btVector3S4_P12btDispatcher",
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
const Bullet* bullets = nullptr;  // written under the mutex, read without it

/// The path and address of this library.
Dl_info thisLibrary() {
  Dl_info info = {};
  dladdr(static_cast<const void*>(kNames), &info);
  return info;
}

/// A handle to a library that is already loaded.
void* loaded(const char* name) { return dlopen(name, RTLD_LAZY | RTLD_NOLOAD); }

/// The constructor of btDbvtBroadphase that dlsym finds with `handle`, or null if that is this
/// library's constructor.
void* constructorOf(void* handle) {
  void* const found = dlsym(handle, kNames[kConstruct]);
  Dl_info info = {};
  if (found == nullptr || dladdr(found, &info) == 0) return nullptr;
  return info.dli_fbase == thisLibrary().dli_fbase ? nullptr : found;
}

/// The constructor that a call from `address` would reach if this library were not loaded. Searches
/// the caller's own libraries first, then the libraries of the program, then all libraries.
void* nextConstructor(void* address) {
  Dl_info info = {};
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) map = nullptr;
  void* found = nullptr;
  if (map != nullptr && map->l_name[0] != '\0') found = constructorOf(loaded(map->l_name));
  if (found == nullptr) found = constructorOf(RTLD_NEXT);
  while (map != nullptr && map->l_prev != nullptr) map = map->l_prev;
  for (; found == nullptr && map != nullptr; map = map->l_next)
    if (map->l_name[0] != '\0') found = constructorOf(loaded(map->l_name));
  return found;
}

/// The size of a library's variable from its symbol table, or 0 if there is no such variable.
size_t sizeOf(void* library, const char* name) {
  Dl_info info = {};
  const ElfW(Sym)* symbol = nullptr;
  void* const address = dlsym(library, name);
  if (address == nullptr ||
      dladdr1(address, &info, const_cast<void**>(reinterpret_cast<const void**>(&symbol)),
              RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr)
    return 0;
  return symbol->st_size;
}

/// Whether the file name of a library ends with a Bullet version from 3.24 to 3.27, or with no
/// version.
bool isKnownVersion(const char* file) {
  const char* const suffix = strstr(file, ".so.");
  if (suffix == nullptr) return true;
  char* end = nullptr;
  const long major = strtol(suffix + strlen(".so."), &end, 10);
  if (*end != '.') return true;
  const long minor = strtol(end + 1, &end, 10);
  return major == 3 && minor >= 24 && minor <= 27;
}

/// Writes the addresses of Bullet's functions into an implementation.
/// @return null on success, else the reason for the failure
const char* connect(const DbvtImplementation& implementation, const Bullet& bullet) {
  const char* const* const names = implementation.bulletsNames();
  for (int i = 0; names[i] != nullptr; ++i) {
    void* const function = dlsym(bullet.library, names[i]);
    if (function == nullptr) return "it does not export all required functions of Bullet";
    void*& address = implementation.bulletsAddresses()[i];
    if (address != nullptr && address != function)
      return "another Bullet of the same precision already uses GpuLbvhBroadphase";
    address = function;
  }
  return nullptr;
}

/// Chooses and loads the implementation.
/// @return null on success, else the reason for the failure
const char* chooseImplementation(Bullet& bullet, const char* file) {
  for (void* function : bullet.own)
    if (function == nullptr) return "its version is not 3.24 to 3.27";
  if (!isKnownVersion(file)) return "its version is not 3.24 to 3.27";
  if (sizeOf(bullet.library, "_ZTV" DBVT) != sizeof(bullet.vtable))
    return "its btDbvtBroadphase is not that of Bullet 3.24 to 3.27";
  const size_t scalar = sizeOf(bullet.library, "gDbvtMargin");
  if (scalar != sizeof(float) && scalar != sizeof(double))
    return "its precision is unknown: gDbvtMargin has neither 4 nor 8 bytes";

  static char path[4096];  // static, because the caller gets dlerror's message in it
  const Dl_info own = thisLibrary();
  const char* const slash = strrchr(own.dli_fname, '/');
  const int length = slash == nullptr ? 0 : static_cast<int>(slash - own.dli_fname) + 1;
  snprintf(path, sizeof path, "%.*slibgpulbvh_dbvt-%s.so", length, own.dli_fname,
           scalar == sizeof(float) ? "float" : "double");
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    snprintf(path, sizeof path, "%s", dlerror());
    return path;
  }
#define TEXT(name) #name
#define TEXT_OF(name) TEXT(name)
  const auto* const implementation =
      static_cast<const DbvtImplementation*>(dlsym(library, TEXT_OF(GPULBVH_DBVT_IMPLEMENTATION)));
  if (implementation == nullptr) return "the implementation is of another version";
  const char* const reason = connect(*implementation, bullet);
  if (reason == nullptr) bullet.implementation = implementation;
  return reason;
}

void fillVtable(Bullet& bullet) {
  void* const library = loaded(thisLibrary().dli_fname);
  bullet.vtable[0] = nullptr;  // the offset to the top of the object, which is 0
  bullet.vtable[1] = dlsym(bullet.library, "_ZTI" DBVT);
  for (int i = 0; i < kVirtualFunctions; ++i) bullet.vtable[2 + i] = dlsym(library, kNames[i]);
}

const Bullet& addBullet(void* constructor) {
  auto* const bullet = static_cast<Bullet*>(calloc(1, sizeof(Bullet)));
  if (bullet == nullptr) abort();
  Dl_info info = {};
  dladdr(constructor, &info);
  bullet->library = loaded(info.dli_fname);
  if (bullet->library == nullptr) bullet->library = dlopen(nullptr, RTLD_LAZY);
  for (int i = 0; i < kFunctions; ++i) bullet->own[i] = dlsym(bullet->library, kNames[i]);
  bullet->own[kConstruct] = constructor;
  fillVtable(*bullet);
  const char* const stock = getenv("GPULBVH_DBVT");
  if (stock == nullptr || strcmp(stock, "1") != 0) {
    const char* const reason = chooseImplementation(*bullet, info.dli_fname);
    if (reason != nullptr)
      fprintf(stderr, "gpulbvh: the broad phase stays Bullet's own (%s): %s\n", info.dli_fname,
              reason);
    else if (getenv("GPULBVH_VERBOSE") != nullptr)
      fprintf(stderr, "gpulbvh: the broad phases of %s are ours\n", info.dli_fname);
  }
  bullet->next = bullets;
  __atomic_store_n(&bullets, bullet, __ATOMIC_RELEASE);
  return *bullet;
}

}  // namespace

const Bullet& bulletOfCaller(void* address) {
  void* const constructor = nextConstructor(address);
  if (constructor == nullptr) {
    fprintf(stderr,
            "gpulbvh: a btDbvtBroadphase is needed, but no loaded library defines Bullet's own\n");
    abort();
  }
  pthread_mutex_lock(&mutex);
  const Bullet* found = bullets;
  while (found != nullptr && found->own[kConstruct] != constructor) found = found->next;
  if (found == nullptr) found = &addBullet(constructor);
  pthread_mutex_unlock(&mutex);
  return *found;
}

const Bullet& onlyBulletOr(void* address) {
  const Bullet* const last = __atomic_load_n(&bullets, __ATOMIC_ACQUIRE);
  return last != nullptr && last->next == nullptr ? *last : bulletOfCaller(address);
}

}  // namespace gpulbvhDbvt

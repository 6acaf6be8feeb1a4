// SPDX-License-Identifier: Zlib
// Defines the functions of Bullet that the adapter calls, for an implementation library that the
// preloaded library loads. Each definition calls the same function of the program's Bullet, at an
// address that the preloaded library found. The dynamic linker cannot do this: a process may have
// several Bullets, and the symbols of a plugin's Bullet are not visible to other libraries. Does
// not include Bullet's headers, which declare these functions as members.
#include <cstddef>

#include "object.h"

#if __SIZEOF_SIZE_T__ == 8
#define ALLOCATE "_Z22btAlignedAllocInternalmi"
#else
#define ALLOCATE "_Z22btAlignedAllocInternalji"
#endif

// name in this file, symbol, return type, parameters, arguments
#define BULLETS_FUNCTIONS(F)                                                                       \
  F(allocate, ALLOCATE, void*, (std::size_t size, int alignment), (size, alignment))               \
  F(release, "_Z21btAlignedFreeInternalPv", void, (void* memory), (memory))                        \
  F(beginProfile, "_ZN14CProfileSampleC1EPKc", void, (void* self, const char* name), (self, name)) \
  F(endProfile, "_ZN14CProfileSampleD1Ev", void, (void* self), (self))                             \
  F(constructCache, "_ZN28btHashedOverlappingPairCacheC1Ev", void, (void* self), (self))           \
  F(destroyCache, "_ZN28btHashedOverlappingPairCacheD1Ev", void, (void* self), (self))             \
  F(constructSorted, "_ZN28btSortedOverlappingPairCacheC1Ev", void, (void* self), (self))          \
  F(destroySorted, "_ZN28btSortedOverlappingPairCacheD1Ev", void, (void* self), (self))            \
  F(constructTree, "_ZN6btDbvtC1Ev", void, (void* self), (self))                                   \
  F(destroyTree, "_ZN6btDbvtD1Ev", void, (void* self), (self))                                     \
  F(clearTree, "_ZN6btDbvt5clearEv", void, (void* self), (self))                                   \
  F(insertLeaf, "_ZN6btDbvt6insertERK12btDbvtAabbMmPv", void*,                                     \
    (void* self, const void* box, void* data), (self, box, data))                                  \
  F(removeLeaf, "_ZN6btDbvt6removeEP10btDbvtNode", void, (void* self, void* leaf), (self, leaf))   \
  F(updateLeaf, "_ZN6btDbvt6updateEP10btDbvtNodeR12btDbvtAabbMm", void,                            \
    (void* self, void* leaf, void* box), (self, leaf, box))

namespace {

enum Index {
#define INDEX(name, symbol, result, parameters, arguments) k_##name,
  BULLETS_FUNCTIONS(INDEX) kFunctions
};

const char* const names[] = {
#define NAME(name, symbol, result, parameters, arguments) symbol,
    BULLETS_FUNCTIONS(NAME) nullptr};
void* addresses[kFunctions];

}  // namespace

const char* const* gpulbvhDbvtBulletsNames() { return names; }
void** gpulbvhDbvtBulletsAddresses() { return addresses; }

extern "C" {
#define DEFINE(name, symbol, result, parameters, arguments)            \
  result gpulbvhDbvt_##name parameters __asm__(symbol);                \
  result gpulbvhDbvt_##name parameters {                               \
    using Function = decltype(gpulbvhDbvt_##name);                     \
    return reinterpret_cast<Function*>(addresses[k_##name]) arguments; \
  }
BULLETS_FUNCTIONS(DEFINE)
}

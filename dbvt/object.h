// SPDX-License-Identifier: Zlib
// Defines the interface between the preloaded library and its implementations. Uses neither
// Bullet's headers nor the C++ library, because the preloaded library must not depend on them.
#pragma once

class btOverlappingPairCache;
namespace gpulbvhDbvt {
struct Bullet;
}

/// The layout of a btDbvtBroadphase up to m_paircache, which is the same in both precisions. In our
/// broad phases m_stageRoots has our own pointers, because no other code reads it.
struct DbvtObject {
  struct Tree {  // btDbvt
    void* root;
    void* free;
    int lookahead, leaves;
    unsigned path;
    struct {
      char allocator;
      int size, capacity;
      void* data;
      bool owns;
    } stack;
  };

  const void* vtable;
  Tree sets[2];
  void* ours;        ///< m_stageRoots[0]: the GpuLbvhBroadphase that gets all calls
  const void* mark;  ///< m_stageRoots[1]: a fixed address if the object is ours
  const gpulbvhDbvt::Bullet* bullet;        ///< m_stageRoots[2]: the Bullet that made it
  const btOverlappingPairCache* pairCache;  ///< m_paircache
};

/// The functions that an implementation exports.
struct DbvtImplementation {
  const char* const* (*bulletsNames)();  ///< names of Bullet's symbols to find; the last is null
  void** (*bulletsAddresses)();          ///< receives their addresses before the first call
  /// Constructs the members of a btDbvtBroadphase in `memory`, but does not set its vtable pointer.
  /// @return its GpuLbvhBroadphase, to be passed to `destroy`
  void* (*construct)(void* memory, btOverlappingPairCache* pairCache);
  void (*destroy)(void* object, void* ours);
  /// The program's operator delete.
  void (*free)(void* object);
};
#define GPULBVH_DBVT_IMPLEMENTATION gpulbvh_dbvt_implementation

// The first two members of an implementation, in bullets_functions.cpp.
const char* const* gpulbvhDbvtBulletsNames();
void** gpulbvhDbvtBulletsAddresses();

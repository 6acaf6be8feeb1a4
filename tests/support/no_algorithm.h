// SPDX-License-Identifier: Zlib
// A collision algorithm that does nothing, for tests of the ownership of algorithms.
#pragma once

#include <BulletCollision/BroadphaseCollision/btCollisionAlgorithm.h>

struct NoAlgorithm : btCollisionAlgorithm {
  void processCollision(const btCollisionObjectWrapper*, const btCollisionObjectWrapper*,
                        const btDispatcherInfo&, btManifoldResult*) override {}
  btScalar calculateTimeOfImpact(btCollisionObject*, btCollisionObject*, const btDispatcherInfo&,
                                 btManifoldResult*) override {
    return 1;
  }
  void getAllContactManifolds(btManifoldArray&) override {}
};

// SPDX-License-Identifier: Zlib
#pragma once
#include "BulletCollision/CollisionShapes/btCapsuleShape.h"

struct btRigidBody {
  btRigidBody(btScalar mass, void* motionState, btCapsuleShape* shape);
};

// SPDX-License-Identifier: Zlib
#include "btRigidBody.h"

btRigidBody::btRigidBody(btScalar mass, void*, btCapsuleShape* shape) {
  *shape = btCapsuleShape(mass, 1);
}

// SPDX-License-Identifier: Zlib
// Links only if Bullet's libraries were built with the btScalar of its headers: each constructor
// that is called here has btScalar in its mangled name, one of each library.
// FindBulletPhysics.cmake links it and does not run it, so it serves cross-compilation, too.
#include <BulletCollision/CollisionShapes/btCapsuleShape.h>
#include <BulletDynamics/Dynamics/btRigidBody.h>
#include <LinearMath/btPolarDecomposition.h>

static_assert(sizeof(btScalar) == SCALAR_BYTES, "btScalar of these headers has another size");

int main() {
  btPolarDecomposition decomposition(btScalar(0.001), 1);
  btCapsuleShape shape(1, 1);
  btRigidBody body(1, nullptr, &shape);
}

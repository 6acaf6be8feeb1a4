// SPDX-License-Identifier: Zlib
// Links only if Bullet's libraries were built with the btScalar of its headers. The program calls
// one constructor of each library. The mangled names of these constructors depend on btScalar.
// FindBulletPhysics.cmake links this program without running it, so that cross-compilation works.
#include <BulletCollision/CollisionShapes/btCapsuleShape.h>
#include <BulletDynamics/Dynamics/btRigidBody.h>
#include <LinearMath/btPolarDecomposition.h>

static_assert(sizeof(btScalar) == SCALAR_BYTES, "btScalar of these headers has another size");

int main() {
  btPolarDecomposition decomposition(btScalar(0.001), 1);
  btCapsuleShape shape(1, 1);
  btRigidBody body(1, nullptr, &shape);
}

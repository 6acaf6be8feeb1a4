// SPDX-License-Identifier: Zlib
#include "btCapsuleShape.h"

#include "LinearMath/btPolarDecomposition.h"

btCapsuleShape::btCapsuleShape(btScalar radius, btScalar) { btPolarDecomposition(radius, 1); }

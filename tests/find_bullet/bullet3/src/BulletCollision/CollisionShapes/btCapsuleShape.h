// SPDX-License-Identifier: Zlib
#pragma once
#include "LinearMath/btScalar.h"

struct btCapsuleShape {
  btCapsuleShape(btScalar radius, btScalar height);
};

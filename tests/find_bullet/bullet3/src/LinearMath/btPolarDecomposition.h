// SPDX-License-Identifier: Zlib
#pragma once
#include "btScalar.h"

struct btPolarDecomposition {
  btPolarDecomposition(btScalar tolerance, unsigned maxIterations);
};

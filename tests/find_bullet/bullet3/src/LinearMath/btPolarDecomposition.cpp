// SPDX-License-Identifier: Zlib
#include "btPolarDecomposition.h"

btPolarDecomposition::btPolarDecomposition(btScalar, unsigned) {}

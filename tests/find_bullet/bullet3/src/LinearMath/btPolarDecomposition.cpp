#include "btPolarDecomposition.h"

btPolarDecomposition::btPolarDecomposition(btScalar, unsigned) {}

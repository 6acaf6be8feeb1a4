// SPDX-License-Identifier: Zlib
#pragma once
#if defined(BT_USE_DOUBLE_PRECISION)
typedef double btScalar;
#else
typedef float btScalar;
#endif

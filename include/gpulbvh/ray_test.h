// SPDX-License-Identifier: Zlib
#pragma once

#include "../../broadphase/ray_test.h"

// SPDX-License-Identifier: Zlib
#pragma once

#include "../../broadphase/types.h"

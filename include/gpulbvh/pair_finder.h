// SPDX-License-Identifier: Zlib
#pragma once

#include "../../broadphase/pair_finder.h"

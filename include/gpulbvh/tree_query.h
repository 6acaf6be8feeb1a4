// SPDX-License-Identifier: Zlib
#pragma once

#include "../../broadphase/tree_query.h"

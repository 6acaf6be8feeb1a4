// SPDX-License-Identifier: Zlib
#pragma once

#include "../../broadphase/device_query.h"

// SPDX-License-Identifier: Zlib
#pragma once

#include "../../integration/GpuLbvhBroadphase.h"

// SPDX-License-Identifier: Zlib
#pragma once

#include "../../integration/migrateBroadphase.h"

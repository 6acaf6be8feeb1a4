// SPDX-License-Identifier: Zlib
#pragma once

#include "../../broadphase/device_scene.h"

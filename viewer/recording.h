// SPDX-License-Identifier: Zlib
// Recorded boxes (.aabb) as a world: one kinematic body a box, or a static one if the box stays
// where it is. Does not simulate.
#pragma once

#include <string>

#include "scenes/world.h"

/// Reads the whole file. Step k shows frame k; after the last frame all stays as it is.
/// @throws FileError also if a box has a NaN
void buildRecording(World& world, const std::string& path);

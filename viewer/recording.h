// SPDX-License-Identifier: Zlib
// Makes a world from recorded boxes (.aabb): a kinematic body for each box, or a static body if the
// box never changes. Does not simulate.
#pragma once

#include <string>

#include "scenes/world.h"

/// Reads the whole file. Step k shows frame k. After the last frame nothing moves.
/// @throws FileError if the file cannot be read or a box has a NaN
void buildRecording(World& world, const std::string& path);

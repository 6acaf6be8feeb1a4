// SPDX-License-Identifier: Zlib
// Draws a picture of a world: the boxes as the broad phase stores them. viewer/ draws more,
// but needs OpenGL.
#pragma once

#include <string>

#include "scenes/world.h"

/// Writes an SVG picture of all boxes, seen from above one corner. The more pairs a box is in, the
/// darker it is. Leaves out boxes more than ten times as long as the median: grounds and walls.
/// @throws FileError
void writeScenePicture(const std::string& path, World& world);

// SPDX-License-Identifier: Zlib
// Draws a picture of a world for people: the boxes as the broad phase has them. viewer/ draws more,
// but needs OpenGL.
#pragma once

#include <string>

#include "scenes/world.h"

/// Writes an SVG picture of all boxes, seen from above one corner. The more pairs a box is in, the
/// darker it is. Grounds and walls are left out: boxes more than ten times as long as the median.
/// @throws FileError
void writeScenePicture(const std::string& path, World& world);

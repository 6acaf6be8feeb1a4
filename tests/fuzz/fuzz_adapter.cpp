// SPDX-License-Identifier: Zlib
// Fuzz target: the Bullet adapter. The bytes choose the calls of the program that uses it
// (adapter_episode.h).
#include "adapter_episode.h"

void fuzz::runTarget(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Episode(bytes).run();
}

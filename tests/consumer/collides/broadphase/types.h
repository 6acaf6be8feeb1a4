// SPDX-License-Identifier: Zlib
#error "The library included a program's broadphase/types.h instead of its own."

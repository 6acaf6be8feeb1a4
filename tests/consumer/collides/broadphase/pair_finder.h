// SPDX-License-Identifier: Zlib
#error "The library included a program's broadphase/pair_finder.h instead of its own."

// SPDX-License-Identifier: Zlib
#error "A program's own folder was taken for the library's."

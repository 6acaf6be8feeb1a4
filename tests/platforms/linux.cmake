# SPDX-License-Identifier: Zlib
# CMake toolchain for Linux on another architecture. It uses Debian's cross-compiler TRIPLE-g++, the
# packages that sysroot.sh unpacked to SYSROOT, and EMULATOR to run programs.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TRIPLE SYSROOT EMULATOR)
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR ${TRIPLE})
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_CXX_COMPILER ${TRIPLE}-g++)
set(CMAKE_SYSROOT ${SYSROOT})
string(REGEX REPLACE "^i686" "i386" CMAKE_LIBRARY_ARCHITECTURE ${TRIPLE})  # Debian's name
set(CMAKE_FIND_ROOT_PATH ${SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR ${EMULATOR} -L ${SYSROOT})

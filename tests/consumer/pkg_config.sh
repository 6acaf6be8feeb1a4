#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Builds programs by what pkg-config says of an installed library, as those without CMake do, and
# runs them. Usage: pkg_config.sh FOLDER_OF_PC_FILES ROOT VERSION    CXX is the compiler, or c++
set -euo pipefail
export PKG_CONFIG_PATH=$1
root=$2 version=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# build MODULE SOURCE: as `program`.
build() {
  local told flags libraries
  told=$(pkg-config --modversion "$1")
  [ "$told" = "$version" ] || { echo "FAILED: $1 is of version '$told'"; exit 1; }
  told=$(pkg-config --cflags --libs "$1")
  eval "flags=($told)"  # it quotes names with a space as a shell does
  "${CXX:-c++}" -std=c++17 -O1 "$root/$2" -o "$scratch/program" "${flags[@]}"
  libraries=$(PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config --libs-only-L "$1")
  eval "flags=($libraries)"
  libraries=$(printf '%s:' "${flags[@]#-L}")
  LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:-} "$scratch/program"
}

build gpulbvh_broadphase tests/consumer/core.cpp
if ldd "$scratch/program" | grep Bullet; then echo "FAILED: the core alone brought Bullet"; exit 1; fi
build gpulbvh_bullet samples/hello.cpp

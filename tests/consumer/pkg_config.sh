#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Builds programs without CMake, with the flags that pkg-config prints for an installed library, and
# runs them. Usage: pkg_config.sh FOLDER_OF_PC_FILES ROOT VERSION    CXX is the compiler (default: c++)
set -euo pipefail
export PKG_CONFIG_PATH=$1
root=$2 version=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# build MODULE SOURCE [ARGUMENT]: builds SOURCE with MODULE, and runs the program with ARGUMENT.
build() {
  local told flags libraries
  told=$(pkg-config --modversion "$1")
  [ "$told" = "$version" ] || { echo "FAILED: $1 has version '$told', not '$version'"; exit 1; }
  told=$(pkg-config --cflags --libs "$1")
  eval "flags=($told)"  # pkg-config quotes names with a space for a shell
  "${CXX:-c++}" -std=c++17 -O1 "$root/$2" -o "$scratch/program" "${flags[@]}"
  libraries=$(PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config --libs-only-L "$1")
  eval "flags=($libraries)"
  libraries=$(printf '%s:' "${flags[@]#-L}")
  LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:-} "$scratch/program" "${@:3}"
}

build gpulbvh_broadphase tests/consumer/core.cpp
if ldd "$scratch/program" | grep Bullet; then echo "FAILED: the component broadphase found Bullet"; exit 1; fi
build gpulbvh_bullet samples/hello.cpp
build gpulbvh_dbvt tests/dbvt/every_way.cpp ours

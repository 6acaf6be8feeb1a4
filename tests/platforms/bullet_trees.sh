#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Builds static Bullet in both precisions from Debian's source package, for
# GPULBVH_BULLET_TREES: FOLDER/source, and the installations FOLDER/single and FOLDER/double. The code is
# position-independent, so that shared libraries can be linked from it.
# Usage: bullet_trees.sh FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/platforms/own_apt.sh
. "$here/own_apt.sh"
# shellcheck source=cmake/install_debian.sh
. "$here/../../cmake/install_debian.sh"
mkdir -p "$1"
root=$(cd "$1" && pwd)
if [ -f "$root/built" ]; then exit; fi
rm -rf "$root/source" "$root/build"  # remains of an interrupted run

own_apt "$root/apt" "$(dpkg --print-architecture)"
(cd "$root/apt" && timeout "${DOWNLOAD_SECONDS:-0}" apt-get source -qq --download-only bullet >/dev/null) ||
  not_reachable
mkdir "$root/source"
tar -xf "$root"/apt/bullet_*.orig.tar.*z -C "$root/source" --strip-components=1
for precision in single double; do
  use_double=OFF
  if [ $precision = double ]; then use_double=ON; fi
  cmake -S "$root/source" -B "$root/build" -D CMAKE_BUILD_TYPE=Release -D CMAKE_INSTALL_PREFIX="$root/$precision" \
    -D USE_DOUBLE_PRECISION=$use_double -D CMAKE_POSITION_INDEPENDENT_CODE=ON -D CMAKE_CXX_FLAGS=-w \
    -D BUILD_UNIT_TESTS=OFF -D BUILD_CPU_DEMOS=OFF -D BUILD_BULLET2_DEMOS=OFF -D BUILD_OPENGL3_DEMOS=OFF \
    -D BUILD_BULLET3=OFF -D BUILD_PYBULLET=OFF -D BUILD_EXTRAS=OFF -D BUILD_ENET=OFF -D BUILD_CLSOCKET=OFF \
    -D INSTALL_LIBS=ON >"$root/$precision.log" 2>&1 &&
    cmake --build "$root/build" --parallel "$(nproc)" --target install >>"$root/$precision.log" 2>&1 ||
    { tail -n 40 "$root/$precision.log"; exit 1; }
  rm -r "$root/build"
done
rm -r "$root/apt"
touch "$root/built"

#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Builds the project's dependencies for Windows with MinGW: oneTBB, Bullet, GoogleTest, and the headers of fmt
# and CLI11. The sources come from this machine's Debian release. Takes minutes the first time.
# Usage: mingw_libraries.sh FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/platforms/own_apt.sh
. "$here/own_apt.sh"
# shellcheck source=cmake/install_debian.sh
. "$here/../../cmake/install_debian.sh"
mkdir -p "$1"
root=$(cd "$1" && pwd)
if [ -f "$root/built" ]; then exit; fi
rm -rf "$root/sources" "$root/build"  # remains of an interrupted run
mkdir "$root/sources"

# source_of PACKAGE: unpacks its source to $root/sources/PACKAGE, without Debian's patches, which are not
# for Windows.
source_of() {
  local archive
  archive=$(ls "$root/sources/$1"_*.orig.tar.*z)
  mkdir "$root/sources/$1"
  tar -xf "$archive" -C "$root/sources/$1" --strip-components=1
}

# build PACKAGE OPTIONS...    Without -fno-ipa-ra, calls of inline functions can be miscompiled; see
# cmake/ProjectDefaults.cmake.
build() {
  local name=$1
  shift
  source_of "$name"
  cmake -S "$root/sources/$name" -B "$root/build/$name" -D CMAKE_TOOLCHAIN_FILE="$here/mingw.cmake" \
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_FLAGS=-fno-ipa-ra -D CMAKE_INSTALL_PREFIX="$root" \
    "$@" >"$root/$name.log" 2>&1 &&
    cmake --build "$root/build/$name" --parallel "$(nproc)" --target install >>"$root/$name.log" 2>&1 ||
    { tail -n 40 "$root/$name.log"; return 1; }
}

own_apt "$root/apt" amd64
(cd "$root/sources" && timeout "${DOWNLOAD_SECONDS:-0}" \
  apt-get source -qq --download-only onetbb bullet googletest fmtlib cli11 >/dev/null) || not_reachable
build onetbb -D TBB_TEST=OFF -D TBB_STRICT=OFF
build bullet -D BUILD_UNIT_TESTS=OFF -D BUILD_CPU_DEMOS=OFF -D BUILD_BULLET2_DEMOS=OFF \
  -D BUILD_OPENGL3_DEMOS=OFF -D BUILD_BULLET3=OFF -D BUILD_PYBULLET=OFF -D BUILD_EXTRAS=OFF \
  -D INSTALL_LIBS=ON -D USE_GRAPHICAL_BENCHMARK=OFF -D BUILD_ENET=OFF \
  -D BUILD_CLSOCKET=OFF
build googletest -D BUILD_GMOCK=OFF
build fmtlib -D FMT_TEST=OFF -D FMT_DOC=OFF
build cli11 -D CLI11_BUILD_TESTS=OFF -D CLI11_BUILD_EXAMPLES=OFF -D CLI11_BUILD_DOCS=OFF
# Programs also load the compiler's libraries.
for library in libgcc_s_seh-1 libstdc++-6 libwinpthread-1; do
  cp "$(x86_64-w64-mingw32-g++-posix -print-file-name=$library.dll)" "$root/bin"
done
rm -r "$root/apt" "$root/sources" "$root/build"
touch "$root/built"

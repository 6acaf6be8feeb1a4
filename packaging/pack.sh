#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Builds the library and packs it, into build/packages.
# Usage: pack.sh deb|archive...     (CMAKE_ARGS="-D ..." goes to cmake: -D GPULBVH_CUDA=ON)
#   deb       Debian packages of shared libraries: libgpulbvh-broadphaseX.Y, libgpulbvh-bulletX.Y, and
#             libgpulbvh-dev. Needs the packages file and dpkg-dev, and the name and address of who
#             maintains them in DEBFULLNAME and DEBEMAIL
#   archive   one .tar.gz (for Windows .zip) of headers and static libraries, to unpack anywhere
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$PWD/build/packages
cores=$(getconf _NPROCESSORS_ONLN)

# pack KIND OPTIONS...
pack() {
  local build=build/pack/$1
  shift
  # shellcheck disable=SC2086  # a list of words
  cmake -S . -B "$build" -D CMAKE_BUILD_TYPE=Release -D GPULBVH_SAMPLES=OFF -D GPULBVH_TESTS=OFF \
    -D GPULBVH_CUDA=OFF "$@" ${CMAKE_ARGS:-}
  cmake --build "$build" --config Release --parallel "$cores"
  (cd "$build" && cpack -C Release -B "$packages")
}

if [ $# -eq 0 ]; then set -- --help; fi
for kind in "$@"; do
  case $kind in
    deb)
      for tool in file dpkg-shlibdeps; do  # without them cpack would leave out dependencies
        command -v $tool >/dev/null || { echo "pack: there is no $tool" >&2; exit 1; }
      done
      maintainer="${DEBFULLNAME:?who maintains them} <${DEBEMAIL:?of who maintains them}>"
      pack deb -D BUILD_SHARED_LIBS=ON -D CMAKE_INSTALL_PREFIX=/usr -D CPACK_GENERATOR=DEB \
        -D CPACK_DEBIAN_PACKAGE_MAINTAINER="$maintainer"
      ;;
    archive) pack archive ;;
    *)
      sed -n '3,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2
      exit 2
      ;;
  esac
done
rm -rf "$packages/_CPack_Packages"

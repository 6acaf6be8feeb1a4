#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Builds the library, and packs it into build/packages.
# Usage: pack.sh deb|archive...     (CMAKE_ARGS="-D ..." is passed to cmake, such as -D GPULBVH_CUDA=ON)
#   deb       Debian packages: libgpulbvh-broadphaseX.Y and libgpulbvh-bulletX.Y with shared libraries;
#             libgpulbvh-dev; and gpulbvh-run, with a manual page if help2man is installed, and with
#             --report if libfmt-dev is. Needs the packages file and dpkg-dev, and the maintainer's name
#             and mail address in DEBFULLNAME and DEBEMAIL
#   archive   one .tar.gz (on Windows .zip) of headers and static libraries, which can be unpacked anywhere
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
  if command -v help2man >/dev/null; then cmake --build "$build" --config Release --target man; fi
  (cd "$build" && cpack -C Release -B "$packages")
}

if [ $# -eq 0 ]; then set -- --help; fi
for kind in "$@"; do
  case $kind in
    deb)
      for tool in file dpkg-shlibdeps; do  # without these, cpack would leave out dependencies
        command -v $tool >/dev/null || { echo "pack: $tool is not installed" >&2; exit 1; }
      done
      maintainer="${DEBFULLNAME:?set it to the name of the maintainer} <${DEBEMAIL:?set it to the mail address of the maintainer}>"
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

#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Packs the library (packaging/pack.sh), and uses the .deb and the .tar.gz in a minimal installation of Debian.
# Programs are built there against the package with CMake and with pkg-config, and run. One program also runs
# under gpulbvh-run.
# Usage: packages.sh SUITE FOLDER     the release's name, such as bookworm; a folder for work files
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/platforms/debian_root.sh
. "$here/debian_root.sh"
cd "$here/../.."
suite=$1 folder=$2
packages=build/packages
rm -rf $packages
DEBFULLNAME=$(git log -1 --format=%an) DEBEMAIL=$(git log -1 --format=%ae)
export DEBFULLNAME DEBEMAIL
packaging/pack.sh deb archive >"$folder/pack.log" 2>&1 || { tail -n 30 "$folder/pack.log"; exit 1; }
version=$(sed -nE 's/^project\(GpuLbvhBroadphase VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)

lintian --fail-on error --allow-root $packages/*.deb
echo "packages: lintian has no error"

# use ROOT PREFIX: builds and runs tests/consumer against the package in PREFIX.
use() {
  local pc_files
  pc_files=$(in_root "$1" find "$2" -name gpulbvh_bullet.pc)
  in_root "$1" /src/tests/consumer/pkg_config.sh "$(dirname "$pc_files")" /src "$version"
  in_root "$1" rm -rf /build
  in_root "$1" cmake -S /src/tests/consumer -B /build -D CMAKE_BUILD_TYPE=Release \
    -D CMAKE_PREFIX_PATH="$2" -D HELLO=/src/samples/hello.cpp -D DOUBLE=OFF >/dev/null
  in_root "$1" cmake --build /build >/dev/null
  for program in core adapter hello; do in_root "$1" /build/$program; done
  in_root "$1" /build/every_way ours >/dev/null
  in_root "$1" sh -c "cd /build && $2/bin/gpulbvh-run --measure ./every_way_plain ours && $2/bin/gpulbvh-run \
    --report every_way_plain && test -s gpulbvh-every_way_plain.html" >/dev/null
}

# without_ours ROOT: removes our packages that an earlier run or step has installed.
without_ours() {
  in_root "$1" sh -c 'apt-get purge -y -qq $(dpkg-query -W -f "\${Package} " "libgpulbvh*" gpulbvh-run 2>/dev/null) >/dev/null'
}

root=$folder/$suite
debian_root "$suite" "$root"
without_ours "$root"
rm -rf "$root/src"
mkdir "$root/src"
cp -r tests samples "$root/src/"
cp $packages/*.deb $packages/*.tar.gz "$root/src/"
mapfile -t debs < <(cd "$root" && find src -maxdepth 1 -name '*.deb')
install_in_root "$root" g++ cmake make pkg-config "${debs[@]/#//}"
use "$root" /usr
echo "packages: hello runs with the .deb on $suite, by CMake and by pkg-config"

without_ours "$root"
install_in_root "$root" libbullet-dev libtbb-dev
in_root "$root" rm -rf /unpacked
in_root "$root" mkdir /unpacked
in_root "$root" tar -xzf /src/GpuLbvhBroadphase-"$version"-Linux.tar.gz -C /unpacked --strip-components=1
use "$root" /unpacked
echo "packages: hello runs with the .tar.gz on $suite, by CMake and by pkg-config"

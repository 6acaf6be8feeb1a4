#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Unpacks packages for another architecture, and their dependencies, to a folder, for a cross-compiler and an
# emulator. The packages are from this machine's version of Debian. Installs nothing on this machine.
# Usage: sysroot.sh ARCHITECTURE FOLDER PACKAGE...
#   sysroot.sh arm64 build/arm64/root libc6-dev libtbb-dev
set -euo pipefail
# shellcheck source=tests/platforms/own_apt.sh
. "$(dirname "$0")/own_apt.sh"
# shellcheck source=cmake/install_debian.sh
. "$(dirname "$0")/../../cmake/install_debian.sh"
architecture=$1 root=$2
shift 2
mkdir -p "$root"
root=$(cd "$root" && pwd)
if [ -f "$root/packages" ] && [ "$(cat "$root/packages")" = "$*" ]; then exit; fi
own_apt "$root/apt" "$architecture"
timeout "${DOWNLOAD_SECONDS:-0}" apt-get install -y -qq --download-only "$@" >/dev/null || not_reachable
for package in "$root"/apt/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
rm -r "$root/apt"
echo "$*" >"$root/packages"

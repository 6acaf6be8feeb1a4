#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Runs the commands of "Without CMake" in docs/integration.md, word for word, on a copy of the sources,
# and the program that they build. For Debian, where Bullet's headers are where the commands say.
# Usage: without_cmake.sh ROOT
set -euo pipefail
root=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$root"/{broadphase,include,integration,samples} "$scratch"
cd "$scratch"
sed -n '/^```bash$/,/^```$/p' "$root/docs/integration.md" | sed '1d;$d' >commands
grep -q 'g++' commands
bash -euo pipefail commands
./hello | grep 'rests at a height of 0.50 m'

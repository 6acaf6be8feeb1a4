#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Tests what ./run prints about packages on systems other than Debian, and without sudo. A copy of ./run
# runs with fake package managers, and with only the programs that it needs. Usage: run_packages.sh ROOT
set -euo pipefail
root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/cmake" "$scratch/tools"
cp "$root/run" "$scratch"
cp "$root"/cmake/{system_packages.txt,install_debian.sh} "$scratch/cmake"
for tool in awk bash cat dirname env getconf grep mkdir; do
  ln -s "$(command -v $tool)" "$scratch/tools"
done

# fake FOLDER NAME COMMANDS: writes a program.
fake() {
  mkdir -p "$scratch/$1"
  printf '#!/bin/sh\n%s\n' "$3" >"$scratch/$1/$2"
  chmod +x "$scratch/$1/$2"
}
fake tools cmake 'echo cmake "$@"'
fake tools id 'echo 1000'
fake Fedora dnf 'exit 1'
fake Fedora rpm '[ "$2" != tbb-devel ] && [ "$2" != glfw-devel ]'
fake Arch pacman '[ "$2" != onetbb ]'
fake Homebrew brew '[ "$2" != fmt ]'
fake Debian dpkg-query 'case $4 in libtbb-dev) ;; *) echo installed ;; esac'
fake Bare dpkg-query 'case $4 in python3) ;; *) echo installed ;; esac'

failures=0
# says SYSTEM STATUS LINE COMMAND: `./run COMMAND` must print LINE first and end with STATUS.
says() {
  local status=0 line
  PATH="$scratch/$1:$scratch/tools" "$scratch/run" "$4" >"$scratch/out" 2>&1 || status=$?
  line=$(head -n 1 "$scratch/out")
  if [ "$status" -eq "$2" ] && [ "$line" = "$3" ]; then return; fi
  echo "FAILED: $1: ended with $status, wanted $2; '$line', wanted '$3'"
  failures=$((failures + 1))
}
says Fedora 0 "run: not installed: tbb-devel (try: dnf install tbb-devel)" build
says Arch 0 "run: not installed: onetbb (try: pacman -S onetbb)" build
says Homebrew 0 "run: not installed: fmt (try: brew install fmt)" build
says None 0 "run: this system's packages are unknown; cmake/system_packages.txt lists what is needed" build
# The viewer's packages are named only if the viewer is to be built.
says Fedora 127 "run: not installed: tbb-devel glfw-devel (try: dnf install tbb-devel glfw-devel)" viewer
says Bare 1 "run: installing python3" test
says Debian 1 "run: installing libtbb-dev" build
grep -qx 'run: this needs root, and there is no sudo; run as root: apt-get install libtbb-dev' "$scratch/out" ||
  { echo "FAILED: without sudo"; cat "$scratch/out"; failures=$((failures + 1)); }
exit $((failures > 0))

#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Runs programs for Debian's Bullet, with Bullet's broad phases and with gpulbvh-run: samples/hello with
# btDbvtBroadphase, and programs that use Debian's DART, Gazebo's physics and Siconos. With gpulbvh-run each
# program must get our broad phases, find pairs, return 0, and print what it prints with Bullet's broad phases.
# Usage: debian.sh GPULBVH_RUN FOLDER     FOLDER is for work files
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
launcher=$(realpath "$1")
mkdir -p "$2"
cd "$2"
failures=0
fail() { echo "FAILED: $*"; failures=1; }

# last PROGRAM WHOSE COLUMN: prints the value of a column in the last measured line.
last() {
  awk -F, -v column="$3" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == column) n = i }
    END { print $n }' "gpulbvh-$1-$2.csv"
}

# compare PROGRAM ARGUMENTS...: runs PROGRAM without gpulbvh-run, and measures it with gpulbvh-run, first with
# Bullet's own broad phase and then with ours.
compare() {
  local program whose
  program=$(basename "$1")
  "$@" >plain.txt 2>plain.err || fail "$program ended with $? without gpulbvh-run"
  "$launcher" --measure --dbvt "$@" >dbvt.txt 2>dbvt.err || fail "$program ended with $? with Bullet's own"
  "$launcher" --measure "$@" >ours.txt 2>ours.err || fail "$program ended with $?"
  diff plain.txt dbvt.txt || fail "$program differs when it is measured"
  diff plain.txt ours.txt || fail "$program differs with our broad phase"
  for whose in dbvt ours; do
    [ "$(grep -c '^gpulbvh: ' $whose.err)" = 1 ] || fail "$program: $(cat $whose.err)"
    awk -v pairs="$(last "$program" $whose pairs)" 'BEGIN { exit !(pairs > 0) }' || fail "$program: no pairs"
  done
  [ "$(last "$program" dbvt broadphase)" = bullet ] || fail "$program: not Bullet's own"
  [ "$(last "$program" ours broadphase)" = gpulbvh ] || fail "$program: not ours"
  grep -q '^gpulbvh: [1-9][0-9]* broad phases ours, 0 Bullet' ours.err || fail "$program: $(cat ours.err)"
  echo "programs: $program prints $(cat ours.txt)"
  sed "s/^gpulbvh: /programs:   /" dbvt.err ours.err
}

compile() { g++ -O1 -w -std=c++17 -I/usr/include/bullet "$@"; }

# Makes hello use btDbvtBroadphase. The number of pairs is left out, because fattened boxes have more
# pairs.
sed -E '/include <(GpuLbvh|gpulbvh)/d; s/GpuLbvhBroadphase broadphase;.*/btDbvtBroadphase broadphase;/
  s/lbvh::version\(\)/""/; s/; %d overlapping pairs//; s/(getOrigin\(\)\.y\(\)\)),/\1);/
  /getNumOverlappingPairs/d' "$here/../../samples/hello.cpp" >hello.cpp
! grep -n 'Lbvh[^)]*;' hello.cpp || fail "hello.cpp still names our library"
compile hello.cpp -o hello -lBulletDynamics -lBulletCollision -lLinearMath
compare ./hello

compile -I/usr/include/eigen3 "$here/dart.cpp" -o dart -ldart -ldart-collision-bullet -lassimp \
  -lBulletCollision -lLinearMath
compare ./dart

# The next two programs load Bullet as a plugin.
# shellcheck disable=SC2046  # a list of words
compile -I/usr/include/eigen3 "$here/gazebo.cpp" -o gazebo \
  $(pkg-config --cflags --libs ignition-physics5 ignition-physics5-sdf ignition-plugin1-loader sdformat12)
compare ./gazebo "$(find /usr/lib -path '*/engine-plugins/libignition-physics5-bullet-plugin.so.5')" 300
compare /usr/bin/python3 "$here/siconos_boxes.py" 100

# A program that a shell starts keeps its exit status.
status=0
"$launcher" --measure sh -c './hello --no-such-option' 2>sh.err || status=$?
[ $status = 2 ] || fail "a shell's program ended with $status, not 2"
grep -q 'sh itself has no Bullet' sh.err || fail "no message about the shell: $(cat sh.err)"
exit $failures

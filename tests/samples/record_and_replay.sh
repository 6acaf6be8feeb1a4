#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Records every scene and replays the recording with every broad phase. replay checks that the exact broad
# phases agree in every frame. This script compares their pairs with those of the recorded world.
# Usage: record_and_replay.sh FOLDER_OF_PROGRAMS
set -u
bin=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

field() { sed -nE "s/^$1.*[ ]$2=([^ ]+).*/\\1/p" "$3" | tail -n 1; }

scenes=$("$bin/rigid_bodies" --list | awk '$3 == "objects" { print $1 }')
[ "$(wc -w <<<"$scenes")" -ge 11 ] || fail "only these scenes: $scenes"
for scene in $scenes; do
  for threads in 1 3; do
    "$bin/rigid_bodies" --summary --scene "$scene" --objects 300 --steps 25 --threads $threads \
      --record $threads.aabb >$threads.txt || fail "$scene cannot be recorded"
  done
  cmp 1.aabb 3.aabb || fail "$scene: the recordings with one and with three threads differ"
  "$bin/replay" 1.aabb --broadphase all >replay.txt || fail "$scene: the finders do not agree"
  for name in core gpu-lbvh dbvt axis-sweep simple; do
    grep -qE "^summary broadphase=$name .* frames=25 " replay.txt || fail "$scene: $name did not replay 25 frames"
  done
  objects=$(sed -nE 's/^gpu-lbvh: ([0-9]+) moving and ([0-9]+) static.*/\1 \2/p' 1.txt)
  [ "$(field summary objects replay.txt)" = $((${objects/ / + })) ] || fail "$scene: the number of objects differs from the world's"

  # A recording has no filters. In these three scenes no pair is filtered out.
  found=$(field frame pairs replay.txt) cached=$(field summary pairs 1.txt)
  echo "$scene: $found pairs recorded, $cached in the world"
  if [[ " rain stack swarm " == *" $scene "* ]] && [ "$found" != "$cached" ]; then
    fail "$scene: the number of pairs differs from the world's"
  fi
done
if [ $failures -ne 0 ]; then echo "$failures failed"; exit 1; fi

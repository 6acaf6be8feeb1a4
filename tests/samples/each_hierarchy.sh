#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Records every scene, and finds the pairs with each kind of hierarchy, on 1 and on 3 threads. Every frame must
# have the pairs that one thread of the host finds with the wide hierarchy. The recorded scene in tests/data
# must also have the pairs of its reference. Exits with 77 (skipped) if the backend is unavailable.
# Usage: each_hierarchy.sh FOLDER_OF_PROGRAMS BACKEND OBJECTS FRAMES RECORDED.aabb
set -u
bin=$1 backend=$2 objects=$3 frames=$4 recorded=$5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }

found() {  # FILE ARGUMENT...: prints pairs and hash of each frame; replay itself checks the reference
  "$bin/replay" "$@" >"$scratch/said" 2>&1 || echo "ends with $?: $(tail -n 1 "$scratch/said")"
  grep -q "^summary .* backend=$where " "$scratch/said" || echo "not on $where"
  grep -oE '^frame=[0-9]+ pairs=[0-9]+ hash=[0-9a-f]+' "$scratch/said"
}

compare() {  # FILE
  local expected said
  where=host expected=$(found "$1" --backend host --threads 1 --hierarchy wide)
  grep -q '^frame=1 ' <<<"$expected" || fail "$1: fewer than two frames: $expected"
  where=$backend
  for hierarchy in wide binary; do
    for threads in 1 3; do
      said=$(found "$1" --backend "$backend" --threads $threads --hierarchy $hierarchy)
      [ "$said" = "$expected" ] ||
        fail "$1: $hierarchy, threads: $threads: $(diff <(echo "$expected") <(echo "$said") | tail -n 1)"
    done
  done
}

status=0
why=$("$bin/replay" "$recorded" --frames 1 --backend "$backend" 2>&1 >/dev/null) || status=$?
if [ $status -eq 2 ]; then echo "skipped: $why"; exit 77; fi

for scene in $("$bin/rigid_bodies" --list | awk '$3 == "objects" { print $1 }'); do
  "$bin/rigid_bodies" --scene "$scene" --objects "$objects" --steps "$frames" \
    --record "$scratch/$scene.aabb" >/dev/null || fail "$scene cannot be recorded"
  compare "$scratch/$scene.aabb"
done
compare "$recorded"
if [ $failures -ne 0 ]; then echo "$failures failed"; exit 1; fi

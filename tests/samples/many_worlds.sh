#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Small worlds end with the same positions and velocities, bit by bit, on one thread of the host, on
# three, and in the space that is named. Exits with 77 (skipped) where that cannot be had.
# Usage: many_worlds.sh MANY_WORLDS host|cuda WORLDS BOXES STEPS
set -euo pipefail
program=$1 space=$2
arguments=(--worlds "$3" --boxes "$4" --steps "$5")
# field NAME LINE: what a summary line says.
field() { sed -nE "s/^summary .* $1=([^ ]+).*/\1/p" <<<"$2"; }

status=0
why=$("$program" --worlds 1 --steps 1 --backend "$space" 2>&1 >/dev/null) || status=$?
if [ $status -eq 2 ]; then echo "skipped: $why"; exit 77; fi
expected=""
for place in "host --threads 1" "host --threads 3" "$space"; do
  # shellcheck disable=SC2086  # words
  found=$("$program" "${arguments[@]}" --backend $place)
  line=$(grep '^summary ' <<<"$found")
  hash=$(field hash "$line")
  echo "$place: $line"
  expected=${expected:-$hash}
  [ "$hash" = "$expected" ] || { echo "FAILED: $place went another way"; exit 1; }
  [ "$(field pairs "$line")" -gt 0 ] || { echo "FAILED: no pair was found"; exit 1; }
done
if [ "$space" = cuda ] && [ "$(field repeated "$line")" -eq 0 ]; then
  echo "FAILED: no list was too short, so nothing was seen of a step that is done again"
  exit 1
fi

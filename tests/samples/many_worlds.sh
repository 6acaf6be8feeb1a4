#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Checks that small worlds end with bit-identical positions and velocities on one thread of the host, on
# three threads, and on the given backend. Exits with 77 (skipped) if the backend is unavailable.
# Usage: many_worlds.sh MANY_WORLDS host|cuda WORLDS BOXES STEPS
set -euo pipefail
program=$1 space=$2
arguments=(--worlds "$3" --boxes "$4" --steps "$5")
# field NAME LINE: prints a field of a summary line.
field() { sed -nE "s/^summary .* $1=([^ ]+).*/\1/p" <<<"$2"; }

status=0
why=$("$program" --worlds 1 --steps 1 --backend "$space" 2>&1 >/dev/null) || status=$?
if [ $status -eq 2 ]; then echo "skipped: $why"; exit 77; fi
expected=""
for place in "host --threads 1" "host --threads 3" "$space"; do
  # shellcheck disable=SC2086  # words
  found=$("$program" --summary "${arguments[@]}" --backend $place)
  line=$(grep '^summary ' <<<"$found")
  hash=$(field hash "$line")
  echo "$place: $line"
  expected=${expected:-$hash}
  [ "$hash" = "$expected" ] || { echo "FAILED: $place: hash $hash, not $expected"; exit 1; }
  [ "$(field pairs "$line")" -gt 0 ] || { echo "FAILED: no pair was found"; exit 1; }
done
if [ "$space" = cuda ] && [ "$(field repeated "$line")" -eq 0 ]; then
  echo "FAILED: no list was too short, so no step was repeated"
  exit 1
fi

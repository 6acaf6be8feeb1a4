#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Runs every scene with 1, 2 and 4 threads, and with 4 again. The final transforms must be bit-identical.
# Usage: same_on_every_thread_count.sh RIGID_BODIES STEPS [OBJECTS [OPTION...]]
set -u
program=$1 steps=$2 objects=${3:-}
shift $(($# < 3 ? $# : 3))
failures=0
for scene in $("$program" --list | awk '$3 == "objects" { print $1 }'); do
  expected=
  for threads in 1 2 4 4; do
    hash=$("$program" --summary --scene $scene --steps "$steps" ${objects:+--objects "$objects"} \
      --threads $threads "$@" | sed -nE 's/^summary .* hash=([0-9a-f]{16}).*/\1/p')
    echo "$scene threads=$threads hash=$hash"
    expected=${expected:-$hash}
    if [ -z "$hash" ] || [ "$hash" != "$expected" ]; then failures=$((failures + 1)); fi
  done
done
if [ $failures -ne 0 ]; then echo "FAILED: $failures runs ended with a different hash"; exit 1; fi

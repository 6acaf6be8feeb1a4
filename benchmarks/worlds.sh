#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# What many worlds cost beside one spread-out scene of as many boxes and pairs (worlds.cpp): counted by
# the PTX interpreter at sizes that it bears, and in milliseconds on the host with 1 and 2 threads, or
# on a GPU. Writes CSV to the standard output: a row for each scene and place, with the ratio.
# Usage: worlds.sh [--bin FOLDER] [--interpreter FOLDER] [--tiny] [--check] [counts|host|cuda]...
# With --check it fails if a count is more than 1.5 times that of the one scene.
set -euo pipefail
cd "$(dirname "$0")/.." # a bundle has no more than these scripts and programs

bin=build/release/bin interpreter=build/release/tests/ptxvm tiny='' check=''
while [[ ${1:-} == --* ]]; do
  case $1 in
    --bin) bin=$2 && shift ;;
    --interpreter) interpreter=$2 && shift ;;
    --tiny) tiny=yes ;;
    --check) check=yes ;;
    *) sed -n '3,7s/^# //p' "$0" >&2 && exit 2 ;;
  esac
  shift
done
[ $# -gt 0 ] || set -- counts host

# The mixed worlds have 0 to so many boxes; a tenth as many boxes as worlds are in all of them.
small=(--worlds 256 --boxes 64) mixed=(--worlds 128 --most 5000 --shared 0.1)
small_full=(--worlds 4096 --boxes 64) mixed_full=(--worlds 4096 --most 50000 --shared 0.1)

if [ -n "$tiny" ]; then small_full=(--worlds 20 --boxes 30) mixed_full=(--worlds 20 --most 200 --shared 0.1); fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# counted KIND OPTIONS...: of one search, when memory has grown: instructions of warps, bytes of the L2.
counted() {
  local kind=$1
  shift
  LD_LIBRARY_PATH=$interpreter PTXVM_NO_PDL=1 PTXVM_PROFILE=$scratch/profile.csv PTXVM_PROFILE_FROM_SYNC=8 \
    PTXVM_PROFILE_SYNCS=2 "$bin/worlds" --backend cuda --only "$kind" --rounds 5 "$@" |
    tail -n 1 >"$scratch/$kind.row"
  python3 - "$scratch/profile.csv" <<'END'
import csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1])) if r["row"] in ("launch", "memset", "copy")]
number = lambda key: sum(float(r.get(key) or 0) for r in rows)
print(f'{number("warp_instr"):.0f} {32 * (number("l2_reads") + number("l2_writes")):.0f}')
END
}

row() {
  echo "$1,$2,$3,$4,$5,$6,$(awk -v a="$5" -v b="$6" 'BEGIN { printf "%.2f", a / b }')"
  if [ -n "$check" ] && [[ $4 != ms* ]] && ((2 * $5 > 3 * $6)); then
    echo "worlds.sh: more than 1.5 times: $1: $4" >&2
    exit 1
  fi
}

echo "scene,boxes,pairs,figure,worlds,one,ratio"
for what in "$@"; do
  for scene in small mixed; do
    if [ "$what" = counts ]; then
      declare -n options=$scene
      read -r instructions bytes <<<"$(counted worlds "${options[@]}")"
      read -r one_instructions one_bytes <<<"$(counted one "${options[@]}")"
      IFS=, read -r _ _ _ _ boxes pairs _ <"$scratch/worlds.row"
      row "${options[*]}" "$boxes" "$pairs" "warp instructions" "$instructions" "$one_instructions"
      row "${options[*]}" "$boxes" "$pairs" "L2 bytes" "$bytes" "$one_bytes"
    else
      declare -n options=${scene}_full
      if [ "$what" = host ]; then threads=(1 2); else threads=(1); fi
      for count in "${threads[@]}"; do
        "$bin/worlds" --backend "$what" --threads "$count" "${options[@]}" >"$scratch/out"
        IFS=, read -r _ _ _ _ boxes pairs _ _ _ ms one_ms _ < <(tail -n 1 "$scratch/out")
        row "${options[*]}" "$boxes" "$pairs" "ms on $what, threads: $count" "$ms" "$one_ms"
      done
    fi
  done
done

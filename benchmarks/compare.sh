#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Milliseconds a frame of recorded files with several builds, as CSV on stdout, for machines that are
# not quiet: the builds take turns, each frame counts with its fastest run, and the median is taken
# over the frames. Usage: compare.sh RUNS THREADS "FOLDER_OF_PROGRAMS..." FILE...
#   benchmarks/compare.sh 10 1 "before/bin after/bin" walk.aabb debris.aabb
set -euo pipefail
runs=$1 threads=$2
read -ra folders <<<"$3"
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo "scene,build,threads,frames,ms"
for file in "$@"; do
  rm -f "$scratch"/*
  for ((run = 0; run < runs; ++run)); do
    for i in "${!folders[@]}"; do
      "${folders[$i]}/replay" "$file" --backend host --threads "$threads" |
        sed -nE 's/^frame=([0-9]+) .*find_ms=([0-9.]+).*/\1 \2/p' >>"$scratch/$i"
    done
  done
  for i in "${!folders[@]}"; do
    # The first frame grows every buffer.
    ms=$(awk '$1 > 0 && (!($1 in best) || $2 < best[$1]) { best[$1] = $2 }
              END { for (frame in best) print best[frame] }' "$scratch/$i" | sort -n |
      awk '{ ms[NR] = $1 } END { print ms[int((NR + 1) / 2)], NR }')
    echo "$(basename "$file" .aabb),${folders[$i]},$threads,${ms#* },${ms% *}"
  done
done

#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Milliseconds a stage over random walks (and recorded files), as CSV on stdout: medians over frames.
# wall_ms is from a second run without stage times, because timing stages costs a GPU extra time.
# `asked` is the backend that was asked for, `backend` where it ran.
# Usage: step_times.sh FOLDER_OF_PROGRAMS BACKEND FRAMES OBJECTS_OR_FILE...
#   benchmarks/step_times.sh build/release/bin cuda 200 1000 10000 100000 1000000 debris.aabb
set -euo pipefail
bin=$1 backend=$2 frames=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fields="bounds_ms codes_ms sort_ms hierarchy_ms traversal_ms pair_sort_ms delta_ms"
echo "scene,asked,backend,threads,objects,pairs,frames,${fields// /,},wall_ms"
for scene in "$@"; do
  file=$scene name=$(basename "$scene" .aabb)
  if [[ $scene =~ ^[0-9]+$ ]]; then
    file=$scratch/walk.aabb name=walk
    "$bin/make_scene" walk "$scene" "$frames" "$file" >/dev/null
  fi
  "$bin/replay" "$file" --backend "$backend" --frames "$frames" --stages >"$scratch/out"
  value() { grep -oE "(^| )$1=[^ ]+" "$scratch/out" | tail -n 1 | cut -d= -f2; }
  row="$name,$backend,$(value backend),$(value threads),$(value objects),$(value pairs),$(value frames)"
  for field in $fields; do row="$row,$(value "$field")"; done
  "$bin/replay" "$file" --backend "$backend" --frames "$frames" >"$scratch/out"
  echo "$row,$(value median_total_ms)"
done

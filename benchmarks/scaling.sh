#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# How the host's step grows with the scene, what a second thread brings, and what handing the pairs to
# Bullet costs, also where many are exchanged: random walks, as tables in Markdown. Medians over the
# frames; of ROUNDS rounds the least, because machines are not quiet. Thread counts, and core and
# adapter, take turns.
# Usage: scaling.sh FOLDER_OF_PROGRAMS [ROUNDS [MOST_BOXES]]
#   benchmarks/scaling.sh build/release/bin 3
set -euo pipefail
bin=$1 rounds=${2:-3} most=${3:-4194304}
for number in "$rounds" "$most"; do
  [[ $number =~ ^[1-9][0-9]*$ ]] || { echo "scaling.sh: ROUNDS and MOST_BOXES are numbers" >&2; exit 2; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# walk BOXES [OPTIONS...]: records one of some tenths of a second: less would time how soon the system
# gives the second thread a core of its own.
walk() {
  local frames=$((4000000 / $1))
  if ((frames < 8)); then frames=8; fi
  "$bin/make_scene" walk "$1" $frames "$scratch/walk.aabb" "${@:2}" >/dev/null
}

# run NAME OPTIONS...: replays the walk, and keeps the least median of calculateOverlappingPairs (or of
# the core's update) so far in ms[NAME]; the pairs of the last frame in pairs.
declare -A ms
run() {
  local name=$1 found
  shift
  "$bin/replay" "$scratch/walk.aabb" --backend host "$@" >"$scratch/out"
  found=$(sed -nE 's/^summary .* median_find_ms=([0-9.]+).*/\1/p' "$scratch/out")
  pairs=$(sed -nE 's/^frame=.* pairs=([0-9]+).*/\1/p' "$scratch/out" | tail -n 1)
  if [ -z "$found" ] || [ -z "$pairs" ]; then echo "scaling.sh: no figures of $name" >&2; return 1; fi
  ms[$name]=$(awk '{ print ($2 == "" || $1 < $2) ? $1 : $2 }' <<<"$found ${ms[$name]:-}")
}

echo "| boxes | pairs | one thread, ms | ns per (n log2 n + pairs) | two threads, ms | ratio | through Bullet, one thread, ms | the adapter's share of the core's |"
echo "|---|---|---|---|---|---|---|---|"
: >"$scratch/costs"
for boxes in 1000 4096 8192 16384 65536 262144 524288 1048576 4194304; do
  ((boxes <= most)) || continue
  walk "$boxes"
  ms=()
  for ((round = 0; round < rounds; ++round)); do
    run one --threads 1
    run two --threads 2
    run bullet --threads 1 --broadphase gpu-lbvh
  done
  awk '{ work = $1 * log($1) / log(2) + $2
    printf "| %d | %d | %.3f | %.2f | %.3f | %.2f | %.3f | %.2f |\n", $1, $2, $3, 1e6 * $3 / work, $4, $3 / $4, $5,
      ($5 - $3) / $3
    if ($1 >= 4096) print 1e6 * $3 / work >>costs }' costs="$scratch/costs" \
    <<<"$boxes $pairs ${ms[one]} ${ms[two]} ${ms[bullet]}"
done
[ ! -s "$scratch/costs" ] ||
  sort -g "$scratch/costs" | awk '{ v[NR] = $1 } END { printf "\nGreatest by least cost from 4,096 boxes on: %.2f\n", v[NR] / v[1] }'

if ((most < 200000)); then exit; fi
echo
echo "| boxes | step | pairs | one thread, ms | through Bullet, one thread, ms | the adapter's share of the core's |"
echo "|---|---|---|---|---|---|"
for step in 0.05 0.15 0.35; do
  walk 200000 --step $step
  ms=()
  for ((round = 0; round < rounds; ++round)); do
    run one --threads 1
    run bullet --threads 1 --broadphase gpu-lbvh
  done
  awk '{ printf "| 200000 | %s | %d | %.3f | %.3f | %.2f |\n", $1, $2, $3, $4, ($4 - $3) / $3 }' \
    <<<"$step $pairs ${ms[one]} ${ms[bullet]}"
done

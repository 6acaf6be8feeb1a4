#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# The slow steps of five scenes, gpu-lbvh and dbvt in turns, one thread, quiet and beside two busy
# loops, as a table in Markdown. The figures are medians of ROUNDS rounds; of the maximum, and of the
# longest step by the median of the 15 steps around it, the least and the most. Reasons are counted
# over the three longest steps of each round (docs/report.md says what they mean).
# Usage: tails.sh FOLDER_OF_PROGRAMS [STEPS] [ROUNDS]
#   benchmarks/tails.sh build/release/bin 120 3
set -euo pipefail
bin=$1 steps=${2:-120} rounds=${3:-3}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "tails.sh: ROUNDS is a number from 1 on" >&2; exit 2; }
scratch=$(mktemp -d)
busy=()

# Ends only the loops that were started here.
stop_loops() {
  local loop
  for loop in "${busy[@]}"; do
    kill "$loop" 2>/dev/null || true
    wait "$loop" 2>/dev/null || true
  done
  busy=()
}
trap 'stop_loops; rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start_loops() {
  for _ in 1 2; do
    while :; do :; done &
    busy+=($!)
  done
}

# Appends a row for each broad phase to $scratch/NAME: median p95 p99 max longest/around reasons.
measure() {
  local name fields
  "$bin/rigid_bodies" --steps "$steps" --threads 1 --backend host --compare gpu-lbvh,dbvt --scene "$@" \
    >"$scratch/out"
  for name in gpu-lbvh dbvt; do
    fields=$(sed -nE "s/^summary .*broadphase=$name .* broadphase_ms=([^ ]+) broadphase_p95_ms=([^ ]+) broadphase_p99_ms=([^ ]+) broadphase_max_ms=([^ ]+) .* longest=([^ ]+).*/\\1 \\2 \\3 \\4 \\5/p" "$scratch/out")
    [ -n "$fields" ] || { echo "tails.sh: no summary of $name" >&2; return 1; }
    # Each of the longest is STEP/MS/AROUND/REASON.
    awk '{ n = split($5, long, ","); reasons = ""
           for (i = 1; i <= n; ++i) {
             split(long[i], part, "/")
             times = part[2] / part[3]; if (i == 1 || times > most) most = times
             reasons = reasons (i > 1 ? "," : "") part[4]
           }
           print $1, $2, $3, $4, most, reasons }' <<<"$fields" >>"$scratch/$name"
  done
}

# column FILE K: the K-th column, sorted; then the least, the median or the most of what comes in.
column() { awk -v k="$2" '{ print $k }' "$scratch/$1" | sort -g; }
least() { head -n 1; }
middle() { awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
most() { tail -n 1; }

# How often each reason was found.
reasons() {
  awk '{ print $6 }' "$scratch/$1" | tr , '\n' | sort | uniq -c |
    awk '{ printf "%s%s %d", (NR > 1 ? ", " : ""), $2, $1 }'
}

# row SCENE CORES BROADPHASE: its rounds.
row() {
  local median p95 p99 max times why
  median=$(column "$3" 1 | middle)
  p95=$(column "$3" 2 | middle)
  p99=$(column "$3" 3 | middle)
  max=("$(column "$3" 4 | least)" "$(column "$3" 4 | most)")
  times=("$(column "$3" 5 | least)" "$(column "$3" 5 | most)")
  why=$(reasons "$3")
  printf '| %s | %s | %s | %.3f | %.3f | %.3f | %.3f to %.3f | %.1f to %.1f | %s |\n' \
    "$1" "$2" "$3" "$median" "$p95" "$p99" "${max[@]}" "${times[@]}" "$why"
}

echo "| scene | cores | broad phase | median, ms | p95 | p99 | max | longest by the 15 around | reasons |"
echo "|---|---|---|---|---|---|---|---|---|"
for cores in quiet busy; do
  if [ $cores = busy ]; then start_loops; fi
  for scene in debris pile swarm city stack "stack --awake"; do
    rm -f "$scratch"/gpu-lbvh "$scratch"/dbvt
    # shellcheck disable=SC2086
    for ((round = 0; round < rounds; ++round)); do measure $scene; done
    for name in gpu-lbvh dbvt; do row "${scene/ --/, }" $cores $name; done
  done
done

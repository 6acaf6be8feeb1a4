#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Every scene of rigid_bodies with gpu-lbvh and dbvt in turn, as a table in Markdown: medians of a step.
# Usage: scenes.sh FOLDER_OF_PROGRAMS THREADS [STEPS]
#   benchmarks/scenes.sh build/release/bin 1
set -euo pipefail
bin=$1 threads=$2 steps=${3:-120}

field() { sed -nE "s/^summary .*broadphase=$1 .* $2=([^ ]+).*/\\1/p" <<<"$out"; }

echo "| scene (objects) | broad phase, ms | dbvt's | ratio | whole step, ms | dbvt's | ratio | pairs | dbvt's |"
echo "|---|---|---|---|---|---|---|---|---|"
for scene in $("$bin/rigid_bodies" --list | awk '$3 == "objects" { print $1 }'); do
  out=$("$bin/rigid_bodies" --scene "$scene" --steps "$steps" --threads "$threads" --compare gpu-lbvh,dbvt)
  awk -v name="$scene ($(field gpu-lbvh objects))" \
    -v ours="$(field gpu-lbvh update_aabbs_ms) $(field gpu-lbvh calculate_pairs_ms) $(field gpu-lbvh step_ms) $(field gpu-lbvh pairs)" \
    -v dbvt="$(field dbvt update_aabbs_ms) $(field dbvt calculate_pairs_ms) $(field dbvt step_ms) $(field dbvt pairs)" \
    'BEGIN { split(ours, a); split(dbvt, b)
      printf "| %s | %.2f | %.2f | %.1f x | %.1f | %.1f | %.2f x | %d | %d |\n", name, a[1] + a[2],
        b[1] + b[2], (b[1] + b[2]) / (a[1] + a[2]), a[3], b[3], b[3] / a[3], a[4], b[4] }'
done

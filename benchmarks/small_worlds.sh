#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Worlds in which a tree that is kept from step to step has the least to do: few objects, a stack that
# jitters, and one object of a hundred thousand that moves. gpu-lbvh and dbvt in turns, one thread, as
# tables in Markdown. Each figure is the median of ROUNDS rounds, with the least and the most of them.
# Usage: small_worlds.sh FOLDER_OF_PROGRAMS [ROUNDS]
#   benchmarks/small_worlds.sh build/release/bin 3
set -euo pipefail
bin=$1 rounds=${2:-3}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "small_worlds.sh: ROUNDS is a number from 1 on" >&2; exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# value BROADPHASE FIELD: of the last program's summary lines; that a field is missing is an error.
value() {
  local found
  found=$(sed -nE "s/^summary .*broadphase=$1 .* $2=([^ ]+).*/\\1/p" "$scratch/out")
  [ -n "$found" ] || { echo "small_worlds.sh: no $2 of $1" >&2; return 1; }
  echo "$found"
}

# spread DIGITS COLUMN: median (least to most) of a column of $scratch/rows.
spread() {
  awk -v column="$2" '{ print $column }' "$scratch/rows" | sort -g | awk -v digits="$1" '
    { v[NR] = $1 }
    END { f = "%." digits "f"; printf f " (" f " to " f ")", v[int((NR + 1) / 2)], v[1], v[NR] }'
}

# in_rounds COMMAND...: runs it in each round; it appends a row of numbers to $scratch/rows. Every
# second round it gets the broad phases the other way round.
in_rounds() {
  local round order
  : >"$scratch/rows"
  for ((round = 0; round < rounds; ++round)); do
    order=gpu-lbvh,dbvt
    if ((round % 2)); then order=dbvt,gpu-lbvh; fi
    order=$order "$@"
  done
}

# Recorded boxes through Bullet's interface: microseconds of ours and dbvt's, and their ratio.
walk() {
  local ours theirs
  "$bin/replay" "$scratch/walk.aabb" --broadphase all --threads 1 --backend host >"$scratch/out"
  ours=$(value gpu-lbvh median_total_ms)
  theirs=$(value dbvt median_total_ms)
  awk '{ print 1e3 * $1, 1e3 * $2, $2 / $1 }' <<<"$ours $theirs" >>"$scratch/rows"
}

# A scene: microseconds of ours and dbvt's, their ratio, Bullet's own share, and the ratio without it.
scene() {
  local ours theirs our_share their_share
  "$bin/rigid_bodies" --threads 1 --backend host --compare "$order" "$@" >"$scratch/out"
  ours=$(value gpu-lbvh broadphase_ms)
  theirs=$(value dbvt broadphase_ms)
  our_share=$(value gpu-lbvh get_aabb_ms)
  their_share=$(value dbvt get_aabb_ms)
  awk '{ ratio = ($2 - $4) / ($1 - $3); print 1e3 * $1, 1e3 * $2, $2 / $1, 1e3 * ($3 + $4) / 2, ratio }' \
    <<<"$ours $theirs $our_share $their_share" >>"$scratch/rows"
}

# A large world: for five figures ours, ours with announced filters, dbvt's, and the ratio to ours.
one_moves() {
  local field ours told theirs row=""
  "$bin/one_moves" 100000 >"$scratch/out"
  for field in all_us all_p95_us alone_us alone_p95_us set_unchanged_ns; do
    ours=$(value gpu-lbvh $field)
    told=$(value announced $field)
    theirs=$(value dbvt $field)
    row+=" $ours $told $theirs $(awk '{ print $2 / $1 }' <<<"$ours $theirs")"
  done
  echo "$row" >>"$scratch/rows"
}

echo "Random walk, recorded boxes through Bullet's interface. Microseconds a frame of setAabb for all and"
echo "calculateOverlappingPairs."
echo
echo "| boxes | gpu-lbvh | dbvt | dbvt / gpu-lbvh |"
echo "|---|---|---|---|"
for count in 10 30 100; do
  "$bin/make_scene" walk $count 1000 "$scratch/walk.aabb" >/dev/null
  in_rounds walk
  echo "| $count | $(spread 2 1) | $(spread 2 2) | $(spread 2 3) |"
done

echo
echo "Worlds, 280 steps. Microseconds a step of updateAabbs and find pairs. Bullet's own share is what"
echo "updateAabbs takes with a broad phase that does nothing."
echo
echo "| world | gpu-lbvh | dbvt | dbvt / gpu-lbvh | Bullet's own share | the same without it |"
echo "|---|---|---|---|---|---|"
for world in pile "stack --awake"; do
  for count in 10 30 100 300 1000; do
    # shellcheck disable=SC2086
    in_rounds scene --scene $world --objects $count --steps 280
    echo "| ${world/ --/, } $count | $(spread 2 1) | $(spread 2 2) | $(spread 2 3) | $(spread 2 4) | $(spread 2 5) |"
  done
done

echo
echo "One of 100,000 boxes moves."
echo
in_rounds one_moves
echo "| | gpu-lbvh | with announcedFilters | dbvt | dbvt / gpu-lbvh |"
echo "|---|---|---|---|---|"
# The first of four columns; digits of the times, of the ratio; what it is.
for line in "1 0 2 setAabb for all, as Bullet does it, and find pairs, us" "5 0 2 the same, p95" \
  "9 1 4 setAabb for the one alone, and find pairs, us" "13 1 2 the same, p95" \
  "17 1 2 setAabb of a box that did not change, ns"; do
  read -r first digits fine what <<<"$line"
  ours=$(spread "$digits" "$first")
  told=$(spread "$digits" $((first + 1)))
  theirs=$(spread "$digits" $((first + 2)))
  echo "| $what | $ours | $told | $theirs | $(spread "$fine" $((first + 3))) |"
done

#!/usr/bin/env bash
# What the samples answer to right and wrong command lines: exit status, and one line on stderr.
# Usage: command_lines.sh FOLDER_OF_PROGRAMS [no-drawing]
set -u
bin=$1
drawing=${2:-drawing}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect STATUS LINES_ON_STDERR PATTERN COMMAND...
expect() {
  local status=$1 lines=$2 pattern=$3
  shift 3
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  local got=$?
  if [ $got -ne "$status" ] || { [ "$lines" != any ] && [ "$(wc -l <"$scratch/err")" -ne "$lines" ]; } ||
    ! cat "$scratch/out" "$scratch/err" | grep -qE "$pattern"; then
    echo "FAILED: $*"
    echo "  exit $got, wanted $status; wanted $lines line(s) on stderr and /$pattern/; stderr:"
    sed 's/^/  | /' "$scratch/err"
    failures=$((failures + 1))
  fi
}

cd "$scratch"
expect 0 any 'summary .*broadphase=gpu-lbvh .*objects=[0-9]+ .*steps=3 .*step_ms=.* hash=[0-9a-f]{16}' \
  "$bin/rigid_bodies" --scene pile --objects 50 --steps 3 --record pile.aabb --csv pile.csv
expect 0 any 'summary .*broadphase=dbvt' \
  "$bin/rigid_bodies" --scene stack --objects 30 --steps 3 --compare gpu-lbvh,dbvt,axis-sweep,simple
expect 0 any 'debris' "$bin/rigid_bodies" --list
expect 0 0 'report written to pile.html' \
  "$bin/rigid_bodies" --scene pile --steps 3 --compare all --sizes 20,40 --report pile.html
grep -q '</html>' pile.html || { echo "FAILED: no page in pile.html"; failures=1; }
expect 0 any 'usage|Usage' "$bin/rigid_bodies" --help
[ "$(wc -l <pile.csv)" -eq 4 ] || { echo "FAILED: pile.csv has not a header and 3 rows"; failures=1; }

for broadphase in core gpu-lbvh dbvt axis-sweep simple; do
  expect 0 any 'frame=2 pairs=[0-9]+ hash=[0-9a-f]{16} update_ms=.* find_ms=' \
    "$bin/replay" pile.aabb --broadphase $broadphase --threads 2
done
expect 0 0 '^simple +yes .*[0-9]$' "$bin/replay" pile.aabb --broadphase all
(head -c 40 pile.aabb; printf '\050\153\156\116'; tail -c +45 pile.aabb) >inverted.aabb
expect 0 0 'axis-sweep is left out: .*min > max' "$bin/replay" inverted.aabb --broadphase all
expect 2 1 'min > max' "$bin/replay" inverted.aabb --broadphase axis-sweep
expect 0 0 'summary .*frames=2 .*median_total_ms=.* peak_rss_mb=' "$bin/replay" pile.aabb --frames 2

expect 0 0 'stages bounds_ms=.* delta_ms=' "$bin/replay" pile.aabb --stages
expect 0 0 '100 boxes, 2 frames' "$bin/make_scene" walk 100 2 walk.aabb
expect 0 0 'summary .*objects=100 frames=2' "$bin/replay" walk.aabb
expect 0 0 '70 boxes, 2 frames' "$bin/make_scene" city 70 2 city.aabb
expect 2 1 '.' "$bin/make_scene" walk 100 2 /no/such/folder/walk.aabb
expect 2 1 'no-such' "$bin/make_scene" no-such 100 2 walk.aabb

# A reference made from one exact broad phase holds for another; a wrong one is found out.
"$bin/replay" pile.aabb --broadphase simple |
  sed -nE 's/^frame=([0-9]+) pairs=([0-9]+) hash=([0-9a-f]+).*/\1 \2 \3/p' >pile.ref
expect 0 any 'frame=2' "$bin/replay" pile.aabb
sed -i '2s/[0-9a-f]*$/0123456789abcdef/' pile.ref
expect 1 1 'frame 1|frame=1' "$bin/replay" pile.aabb
expect 1 3 'simple has .*the reference has' "$bin/replay" pile.aabb --broadphase all
rm pile.ref

for program in replay rigid_bodies; do
  expect 2 1 '.' "$bin/$program" --no-such-option
done
expect 2 1 'missing.aabb' "$bin/replay" missing.aabb
expect 2 1 '.' "$bin/replay"
expect 2 1 'no-such' "$bin/replay" pile.aabb --broadphase no-such
expect 2 1 'threads' "$bin/replay" pile.aabb --threads -1
head -c 100 pile.aabb >short.aabb
expect 2 1 'short.aabb' "$bin/replay" short.aabb
(printf 'AABBFRM2'; tail -c +9 pile.aabb) >magic.aabb
expect 2 1 'magic.aabb' "$bin/replay" magic.aabb
(head -c 40 pile.aabb; printf '\0\0\300\177'; tail -c +45 pile.aabb) >nan.aabb
expect 2 1 'NaN' "$bin/replay" nan.aabb
expect 2 1 'NaN' "$bin/replay" nan.aabb --broadphase all
(printf 'AABBFRM1'; printf '\0\0\0\0\2\0\0\0') >nothing.aabb
expect 0 any 'frame=1 pairs=0' "$bin/replay" nothing.aabb

expect 2 1 'no-such' "$bin/rigid_bodies" --scene no-such
expect 2 1 'no-such' "$bin/rigid_bodies" --broadphase no-such
expect 2 1 'no-such' "$bin/rigid_bodies" --compare gpu-lbvh,no-such
expect 2 1 'alone' "$bin/rigid_bodies" --compare all,dbvt
expect 2 1 'sizes' "$bin/rigid_bodies" --sizes 10,20 --objects 10
expect 2 1 '.' "$bin/rigid_bodies" --scene pile --objects 10 --steps 1 --report /no/such/folder/x.html
expect 2 1 'steps' "$bin/rigid_bodies" --steps -1
expect 2 1 '.' "$bin/rigid_bodies" --scene pile --objects 10 --steps 1 --csv /no/such/folder/x.csv
if ! "$bin/replay" pile.aabb --backend cuda >/dev/null 2>&1; then
  expect 2 1 'cuda' "$bin/replay" pile.aabb --backend cuda
  expect 2 1 'cuda' "$bin/rigid_bodies" --scene pile --objects 10 --steps 1 --backend cuda
fi

# The viewer, where it was built. Without pictures it needs no display.
if [ -x "$bin/viewer" ]; then
  expect 0 0 'tree-level' "$bin/viewer" --help
  expect 0 0 'step +3 dbvt +right after a swap .*among' \
    "$bin/viewer" --scene stack --objects 30 --steps 5 --swap 3:dbvt --verify
  expect 2 1 'no-such' "$bin/viewer" --scene no-such
  expect 2 1 'no-such' "$bin/viewer" --overlay boxes,no-such
  for swap in 3 x:dbvt 3:no-such 3:dbvt,,4:dbvt :dbvt; do
    expect 2 1 'a swap is STEP:BROADPHASE' "$bin/viewer" --objects 30 --swap $swap --verify
  done
  expect 2 1 'camera' "$bin/viewer" --objects 30 --camera 1,2 --verify
  expect 2 1 'distance' "$bin/viewer" --objects 30 --camera 1,2,0 --verify
  expect 2 1 'only 5 steps' "$bin/viewer" --objects 30 --steps 5 --swap 5:dbvt --verify
  expect 2 1 'are for' "$bin/viewer" --objects 30 --swap 5:dbvt
  expect 2 1 'size' "$bin/viewer" --size 64
  expect 1 1 'no window' env -u DISPLAY -u WAYLAND_DISPLAY "$bin/viewer" --scene stack --objects 30
  [ "$drawing" = no-drawing ] ||
    expect 1 1 'no/such/folder' "$bin/viewer" --scene stack --objects 30 --steps 0 \
      --size 64,64 --screenshot /no/such/folder/x.png
fi

if [ $failures -ne 0 ]; then echo "$failures failed"; exit 1; fi
echo "all command lines answered as they should"

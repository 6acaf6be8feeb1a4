#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Tests how the programs handle valid and invalid command lines, one per row:
#
#   STATUS LINES :: PATTERN :: COMMAND
#
# COMMAND is a shell command that must end with STATUS. LINES is the number of lines that it prints on
# stderr, or - for any number. PATTERN must match a line of its stdout or stderr, unless PATTERN is -. Rows
# run in order, in one folder, and can use files of earlier rows.
# Usage: command_lines.sh FOLDER_OF_PROGRAMS VERSION [no-drawing]
set -u
bin=$(realpath "$1") version=$2
drawing=${3:-drawing}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rows=0 failures=0
mkdir "$scratch/work"
cd "$scratch/work" || exit 1
PATH=$bin:$PATH

# Runs the rows from stdin.
table() {
  local expected pattern command status lines got found
  while IFS= read -r row; do
    if [[ $row != *" :: "*" :: "* ]]; then
      [ -z "$row" ] || { echo "FAILED: not a row: $row"; failures=$((failures + 1)); }
      continue
    fi
    expected=${row%% :: *} row=${row#* :: } pattern=${row%% :: *} command=${row#* :: }
    status=${expected% *} lines=${expected#* } rows=$((rows + 1))
    (eval "$command") >"$scratch/out" 2>"$scratch/err" </dev/null
    got=$? found=$(wc -l <"$scratch/err")
    if [ "$got" -ne "$status" ] || { [ "$lines" != - ] && [ "$found" -ne "$lines" ]; } ||
      { [ "$pattern" != - ] && ! cat "$scratch/out" "$scratch/err" | grep -qE -- "$pattern"; }; then
      echo "FAILED: $command"
      echo "  status $got, wanted $status; wanted $lines line(s) on stderr and /$pattern/; stderr:"
      sed 's/^/  | /' "$scratch/err"
      failures=$((failures + 1))
    fi
  done
}

# interrupt SIGNAL FILE COMMAND...: sends the signal once the command has written part of FILE.
interrupt() {
  local signal=$1 file=$2 process
  shift 2
  "$@" &
  process=$!
  until [ "$(stat -c %s "$file" 2>/dev/null || echo 0)" -gt 20000 ]; do
    kill -0 $process 2>/dev/null || break
    sleep 0.05
  done
  kill -"$signal" $process
  wait $process
}

# count WORD FILE: prints the number after WORD= in the last summary line of FILE.
count() { sed -nE "s/^summary .* $1=([0-9]+).*/\1/p" "$2" | tail -n 1; }

# as_user COMMAND...: runs COMMAND as another user if this user is root, because file permissions do not
# apply to root. The other user must be able to read the program, so the program is copied.
as_user() {
  if [ "$(id -u)" -ne 0 ]; then "$@"; return; fi
  chmod 755 "$scratch" "$scratch/work"
  cp "$bin/$1" "$scratch/$1"
  setpriv --reuid=65534 --regid=65534 --clear-groups "$scratch/$@"
}

# --- Options that every program has. Some programs are not built if a library or a compiler is missing.
for program in hello rigid_bodies replay many_worlds make_scene stages removal loading ghosts one_moves one_place \
  in_turn rays resting small_step calling_thread broadphase gpu_micro viewer; do
  if [[ $program =~ ^(broadphase|gpu_micro|viewer)$ && ! -x $bin/$program ]]; then continue; fi
  table <<EOF
0 0 :: - :: said=\$($program --version) && [ "\$said" = "$program (GpuLbvhBroadphase) $version" ]
0 0 :: ^Usage: $program( |$) :: $program --help
2 1 :: . :: $program --no-such-option
EOF
done

# --- Valid command lines.
table <<'EOF'
0 - :: summary .*broadphase=gpu-lbvh .*objects=[0-9]+ .*steps=3 .*step_ms=.* hash=[0-9a-f]{16} :: rigid_bodies --summary --scene pile --objects 50 --steps 3 --record pile.aabb --csv pile.csv
0 0 :: ^4$ :: wc -l <pile.csv
0 - :: summary .*broadphase=dbvt :: rigid_bodies --summary --scene stack --objects 30 --steps 3 --compare gpu-lbvh,dbvt,axis-sweep,simple
0 - :: debris :: rigid_bodies --list
0 0 :: - :: rigid_bodies --scene pile --objects 50 --steps 3 | tee told.txt; many_worlds --worlds 1 --boxes 1 --steps 1 >>told.txt; ! grep -q ^summary told.txt
0 0 :: The pairs differ because :: rigid_bodies --scene pile --objects 50 --steps 20 --compare dbvt,gpu-lbvh
0 0 :: ^gpu-lbvh .* 1.00 +1.00$ :: rigid_bodies --scene pile --objects 50 --steps 3 --compare dbvt,gpu-lbvh
0 0 :: ^gpu-lbvh: 50 moving and [0-9]+ static objects; host, 3 threads, baseline instructions :: GPULBVH_SIMD=baseline rigid_bodies --scene pile --objects 50 --steps 1 --threads 3
0 0 :: report written to pile.html :: rigid_bodies --scene pile --steps 3 --compare all --sizes 20,40 --report pile.html
0 0 :: </html> :: cat pile.html
0 0 :: picture written to pile.svg :: rigid_bodies --scene pile --objects 50 --steps 3 --picture pile.svg
0 0 :: ^165$ :: grep -c '<path' pile.svg
0 0 :: ^50 objects: .* gpu-lbvh [0-9.]+ ms and btDbvtBroadphase [0-9.]+ ms :: rigid_bodies --scene pile --objects 50 --steps 3 --compare dbvt,gpu-lbvh
2 1 :: picture :: rigid_bodies --sizes 10,20 --picture pile.svg
0 0 :: step 1: .*growth :: cat pile.html
0 0 :: longest=[1-3]/[0-9.]+/[0-9.]+/[a-z_+-]+,[1-3]/.*,[1-3]/.* :: rigid_bodies --summary --scene pile --objects 50 --steps 3
0 0 :: ^gpu-lbvh( +[0-9.]+){4}   [1-3]: .* x, .*; [1-3]: .*; [1-3]: :: rigid_bodies --scene pile --objects 50 --steps 3
0 0 :: summary .*hash=[0-9a-f]+ broadphase_ms=[0-9]+\.[0-9]{6} broadphase_p95_ms=.* broadphase_p99_ms=.* broadphase_max_ms=.* get_aabb_ms=0\.[0-9]*[1-9] :: rigid_bodies --summary --scene pile --objects 50 --steps 3 --broadphase dbvt
0 0 :: nothing falls asleep :: rigid_bodies --scene stack --objects 30 --steps 3 --awake
0 0 :: - :: rigid_bodies --summary --scene stack --objects 30 --steps 200 >asleep.txt; rigid_bodies --summary --scene stack --objects 30 --steps 200 --awake >awake.txt
2 1 :: - :: [ "$(grep -o 'hash=[0-9a-f]*' asleep.txt)" = "$(grep -o 'hash=[0-9a-f]*' awake.txt)" ] || { echo they differ >&2; exit 2; }
0 0 :: btDiscreteDynamicsWorldMt :: rigid_bodies --summary --scene stack --objects 30 --steps 200 --bullet-threads | tee threads.txt
2 1 :: - :: [ "$(grep -o 'hash=[0-9a-f]*' asleep.txt)" = "$(grep -o 'hash=[0-9a-f]*' threads.txt)" ] || { echo they differ >&2; exit 2; }
2 1 :: btDiscreteDynamicsWorldMt has no soft bodies :: rigid_bodies --scene softbodies --steps 3 --bullet-threads
0 - :: frame=2 pairs=[0-9]+ hash=[0-9a-f]{16} update_ms=.* find_ms= :: replay pile.aabb --broadphase core --threads 2
0 - :: frame=2 pairs=[0-9]+ hash=[0-9a-f]{16} update_ms=.* find_ms= :: replay pile.aabb --broadphase gpu-lbvh --threads 2
0 - :: frame=2 pairs=[0-9]+ hash=[0-9a-f]{16} update_ms=.* find_ms= :: replay pile.aabb --broadphase dbvt --threads 2
0 - :: frame=2 pairs=[0-9]+ hash=[0-9a-f]{16} update_ms=.* find_ms= :: replay pile.aabb --broadphase axis-sweep --threads 2
0 - :: frame=2 pairs=[0-9]+ hash=[0-9a-f]{16} update_ms=.* find_ms= :: replay pile.aabb --broadphase simple --threads 2
0 0 :: ^simple +yes .*[0-9]$ :: replay pile.aabb --broadphase all
0 0 :: summary .*frames=2 .*median_total_ms=.* mean_total_ms=.* max_total_ms=.* peak_rss_mb= :: replay pile.aabb --frames 2
0 0 :: - :: replay pile.aabb --untimed 2 --time-pairs | awk '/^summary/ { for (i = 1; i <= NF; ++i) { split($i, v, "="); at[v[1]] = v[2] } } END { exit !(at["frames"] == 3 && at["median_total_ms"] == at["mean_total_ms"] && at["mean_total_ms"] == at["max_total_ms"]) }'
0 0 :: stages bounds_ms=.* delta_ms= :: replay pile.aabb --stages
0 0 :: stages bounds_ms=.* codes_ms=0\.[0-9]*[1-9].* delta_ms= :: replay pile.aabb --stages --hierarchy binary
2 1 :: --hierarchy: no-such not in :: replay pile.aabb --hierarchy no-such
0 0 :: summary worlds=5 boxes=6 backend=host threads=2 objects=31 steps=61 pairs=[0-9]+ .*world_steps_per_second=.* compared=1 hash=[0-9a-f]{16} :: many_worlds --summary --worlds 5 --boxes 6 --steps 61 --backend host --threads 2 --record worlds.aabb
0 0 :: on .*, [0-9]+ threads?(; (no cuda|there is a GPU).*)?$ :: many_worlds --worlds 1 --boxes 1 --steps 1
0 0 :: summary .*objects=35 frames=7 :: replay worlds.aabb
0 0 :: 100 boxes, 2 frames :: make_scene walk 100 2 walk.aabb
0 0 :: - :: make_scene walk 100 2 same.aabb --step 0.05 && cmp walk.aabb same.aabb
1 0 :: differ :: make_scene walk 100 2 far.aabb --step 0.5 && cmp walk.aabb far.aabb
0 0 :: summary .*objects=100 frames=2 :: replay walk.aabb
0 0 :: 70 boxes, 2 frames :: make_scene city 70 2 city.aabb
0 0 :: removing 8 objects :: removal 2
0 0 :: 100 boxes, :: loading 100
0 0 :: summary broadphase=dbvt objects=100 steps=3 all_us=.* alone_us=.* set_unchanged_ns=[0-9.]+ :: one_moves 100 --steps 3
0 0 :: summary when=beside_a_new_one gpu_lbvh_ns=.* new_ns=.* ratio=.* hits=[0-9]+ :: rays 100 --rays 10 --replaced 10
0 0 :: summary boxes=50 moving=50 pairs=[0-9]+ changes=.* median_us=.* mean_us=.* :: resting 50 --steps 3
0 0 :: case="1,000 that ignore each other" objects=1000 pairs=0 one_place_ms=.* spread_ms=.* ratio= :: one_place --steps 1
0 0 :: summary space="stand-in" boxes=100 pairs=[0-9]+ changed=50 steps=3 mean_us=.* most_us= :: calling_thread 100 --steps 3 --moving 0.5 --stand-in
0 0 :: production :: stages --scene city.aabb --rounds 1 --csv stages.csv
EOF

# --- Invalid command lines.
table <<'EOF'
2 1 :: . :: replay
2 1 :: is empty :: replay ""
2 1 :: missing.aabb :: replay missing.aabb
2 1 :: no-such :: replay pile.aabb --broadphase no-such
2 1 :: threads :: replay pile.aabb --threads -1
2 1 :: frames :: replay pile.aabb --frames 0
2 1 :: frames :: replay pile.aabb --frames -1
2 1 :: there are only 3 frames :: replay pile.aabb --untimed 3
2 1 :: dbvt does not report :: replay pile.aabb --broadphase dbvt --stages
2 1 :: --backend cuda: no broad phase :: replay pile.aabb --broadphase dbvt --backend cuda
2 1 :: --backend cuda: no broad phase :: rigid_bodies --scene pile --objects 10 --steps 1 --broadphase simple --backend cuda
2 1 :: --backend cuda: no broad phase :: rigid_bodies --scene pile --objects 10 --steps 1 --compare dbvt,simple --backend cuda
0 0 :: summary .*dbvt :: rigid_bodies --summary --scene pile --objects 10 --steps 1 --compare gpu-lbvh,dbvt --backend host
2 1 :: no-such :: rigid_bodies --scene no-such
2 1 :: no-such :: rigid_bodies --broadphase no-such
2 1 :: no-such :: rigid_bodies --compare gpu-lbvh,no-such
2 1 :: alone :: rigid_bodies --compare all,dbvt
2 1 :: sizes :: rigid_bodies --sizes 10,20 --objects 10
2 1 :: steps :: rigid_bodies --steps -1
2 1 :: steps :: rigid_bodies --steps 0
2 1 :: worlds :: many_worlds --worlds 0
2 1 :: boxes :: many_worlds --boxes -1
2 1 :: more than 1073741824 boxes :: many_worlds --worlds 16777216 --boxes 64
2 1 :: steps :: many_worlds --steps 0
2 1 :: no-such :: many_worlds --backend no-such
2 1 :: no-such :: make_scene no-such 100 2 walk.aabb
2 1 :: SIDE :: removal 0
2 1 :: BOXES :: loading 1x
2 1 :: BOXES :: ghosts 999
2 1 :: BOXES :: one_moves 0
2 1 :: BOXES :: calling_thread 0
2 1 :: BOXES :: rays 0
2 1 :: rays :: rays 10 --rays 0
2 1 :: steps :: resting 10 --steps 0
2 1 :: steps :: one_moves 10 --steps 0
2 1 :: steps :: one_place --steps 0
EOF
if ! "$bin/replay" pile.aabb --backend cuda >/dev/null 2>&1; then
  table <<'EOF'
2 1 :: cuda :: replay pile.aabb --backend cuda
2 1 :: cuda :: many_worlds --worlds 1 --steps 1 --backend cuda
2 1 :: cuda :: rigid_bodies --scene pile --objects 10 --steps 1 --backend cuda
EOF
fi

# --- Broken recordings.
table <<'EOF'
0 0 :: - :: (head -c 40 pile.aabb; printf '\050\153\156\116'; tail -c +45 pile.aabb) >inverted.aabb
0 0 :: axis-sweep is left out: .*min > max :: replay inverted.aabb --broadphase all
2 1 :: min > max :: replay inverted.aabb --broadphase axis-sweep
0 0 :: - :: (head -c 40 pile.aabb; printf '\0\0\300\177'; tail -c +45 pile.aabb) >nan.aabb
2 1 :: NaN :: replay nan.aabb
2 1 :: NaN :: replay nan.aabb --broadphase all
0 0 :: - :: (printf 'AABBFRM2'; tail -c +9 pile.aabb) >magic.aabb
2 1 :: magic.aabb :: replay magic.aabb
0 0 :: - :: (cat pile.aabb; echo) >long.aabb
2 1 :: long.aabb: longer :: replay long.aabb
0 0 :: - :: head -c -1 pile.aabb >cut.aabb
0 1 :: cut.aabb: cut off; it has 2 of the 3 frames :: replay cut.aabb
0 1 :: summary .*frames=2 :: replay cut.aabb
0 1 :: cut.aabb: cut off :: stages --scene cut.aabb --rounds 1
0 0 :: - :: head -c 100 pile.aabb >short.aabb
2 1 :: short.aabb: shorter :: replay short.aabb
0 0 :: - :: head -c 15 pile.aabb >header.aabb
2 1 :: header.aabb: too short :: replay header.aabb
0 0 :: - :: printf 'AABBFRM1\0\0\0\0\2\0\0\0' >nothing.aabb
0 - :: frame=1 pairs=0 :: replay nothing.aabb
0 0 :: - :: printf 'AABBFRM1\0\0\0\0\377\377\377\377' >endless.aabb
2 1 :: endless.aabb: too many frames :: replay endless.aabb
0 0 :: - :: printf 'AABBFRM1\0\0\0\0\0\0\0\0' >none.aabb
2 1 :: none.aabb: .*no frame :: replay none.aabb
EOF

# --- References. The reference of one exact broad phase is valid for the other exact ones. A wrong reference
# is detected.
table <<'EOF'
1 0 :: ^0$ :: replay pile.aabb | grep -c compared
0 0 :: - :: replay pile.aabb --broadphase simple | sed -nE 's/^frame=([0-9]+) pairs=([0-9]+) hash=([0-9a-f]+).*/\1 \2 \3/p' >right.ref
0 0 :: - :: cp right.ref pile.ref
0 0 :: ^compared 3 of 3 frames$ :: replay pile.aabb
0 0 :: ^compared 3 of 3 frames$ :: replay pile.aabb --broadphase all
0 0 :: ^compared 2 of 2 frames$ :: replay pile.aabb --frames 2
0 1 :: ^compared 0 of 3 frames$ :: replay pile.aabb --broadphase dbvt
0 0 :: - :: sed 2d right.ref >pile.ref
0 0 :: ^compared 2 of 3 frames$ :: replay pile.aabb
0 0 :: - :: sed '2s/[0-9a-f]*$/0123456789abcdef/' right.ref >pile.ref
1 1 :: frame 1|frame=1 :: replay pile.aabb
1 3 :: simple has .*the reference has :: replay pile.aabb --broadphase all
0 0 :: - :: echo '# nothing' >pile.ref
0 0 :: ^compared 0 of 3 frames$ :: replay pile.aabb
0 0 :: - :: (cat right.ref; echo 3 0 0) >pile.ref
2 1 :: pile.ref: has frame 3 :: replay pile.aabb
0 0 :: - :: cat right.ref right.ref >pile.ref
2 1 :: pile.ref: line 4 has frame 0 a second time :: replay pile.aabb
0 0 :: - :: echo frame zero >pile.ref
2 1 :: pile.ref: line 1 :: replay pile.aabb
0 0 :: - :: rm pile.ref; mkdir pile.ref
2 1 :: pile.ref: not a regular file :: replay pile.aabb
0 0 :: - :: rmdir pile.ref; cp right.ref cut.ref
2 2 :: cut.ref: has frame 2, but cut.aabb has 2 :: replay cut.aabb
EOF

# --- Files that cannot be written, or are named twice. No existing file is truncated, and no new file remains.
table <<'EOF'
0 0 :: - :: echo precious >kept; mkdir folder; mkfifo pipe
2 1 :: --record /no/such/folder/x.aabb: No such :: rigid_bodies --csv kept --record /no/such/folder/x.aabb
2 1 :: --record /proc/x.aabb :: rigid_bodies --csv kept --record /proc/x.aabb
2 1 :: --record pile.csv/x.aabb: Not a dir :: rigid_bodies --csv kept --record pile.csv/x.aabb
2 1 :: --record folder: Is a dir :: rigid_bodies --csv kept --record folder
2 1 :: --report /no/such/folder/x.html :: rigid_bodies --csv kept --record new.aabb --report /no/such/folder/x.html
2 1 :: --csv and --record name the same file :: rigid_bodies --csv kept --record kept
2 1 :: --csv and --record name the same file :: rigid_bodies --csv new --record ./folder/../new
2 1 :: --record and --report name the same file :: ln kept link; rigid_bodies --record kept --report link
2 1 :: --csv and --report name the same file :: ln -s new dangling; rigid_bodies --csv new --report dangling
2 1 :: --csv: is empty :: rigid_bodies --csv ""
2 1 :: --record: is empty :: rigid_bodies --record ""
2 1 :: --report: is empty :: rigid_bodies --report ""
2 1 :: --record folder: Is a dir :: many_worlds --worlds 1 --steps 1 --record folder
2 1 :: --record: is empty :: many_worlds --record ""
2 1 :: No such :: make_scene walk 100 2 /no/such/folder/walk.aabb
2 1 :: is empty :: make_scene walk 100 2 ""
2 1 :: --csv folder :: stages --scene city.aabb --rounds 1 --csv folder
0 0 :: ^precious$ :: cat kept
2 1 :: - :: ls new*
2 1 :: /dev/full: cannot be written :: rigid_bodies --scene pile --objects 10 --steps 1 --csv /dev/full
2 1 :: /dev/full: cannot be written :: rigid_bodies --scene pile --objects 10 --steps 1 --record /dev/full
2 1 :: /dev/full: cannot be written :: rigid_bodies --scene pile --objects 10 --steps 1 --report /dev/full
2 1 :: /dev/full: cannot be written :: many_worlds --worlds 1 --steps 1 --record /dev/full
0 0 :: summary :: rigid_bodies --summary --scene pile --objects 10 --steps 1 --csv /dev/null --record /dev/null
0 0 :: ^64$ :: (wc -c <pipe & make_scene walk 1 2 pipe >/dev/null; wait)
0 0 :: - :: mkdir readonly; chmod 555 readonly
2 1 :: --csv readonly/x.csv: Permission denied :: as_user rigid_bodies --csv readonly/x.csv
2 1 :: --record readonly/x.aabb: Permission :: as_user rigid_bodies --record readonly/x.aabb
2 1 :: --report readonly/x.html: Permission :: as_user rigid_bodies --report readonly/x.html
2 1 :: readonly/x.aabb: Permission :: as_user make_scene walk 100 2 readonly/x.aabb
EOF

# --- A stdout that is closed or full.
table <<'EOF'
1 1 :: stdout is closed :: rigid_bodies --scene pile --objects 10 --steps 1 --record closed.aabb --csv closed.csv >&-
1 1 :: stdout is closed :: rigid_bodies --list >&-
1 1 :: stdout is closed :: replay pile.aabb >&-
1 1 :: stdout is closed :: replay --help >&-
1 1 :: stdout is closed :: make_scene walk 10 2 closed.aabb >&-
1 1 :: stdout is closed :: stages --scene city.aabb --rounds 1 >&-
2 1 :: - :: ls closed*
1 1 :: written|space :: rigid_bodies --scene pile --objects 10 --steps 1000000 --record full.aabb --csv full.csv >/dev/full
2 1 :: - :: ls full*
1 1 :: written|space :: rigid_bodies --list >/dev/full
1 1 :: written|space :: rigid_bodies --help >/dev/full
1 1 :: written|space :: replay pile.aabb >/dev/full
1 1 :: written|space :: replay pile.aabb --broadphase all >/dev/full
1 1 :: written|space :: make_scene walk 10 2 walk.aabb >/dev/full
1 1 :: written|space :: stages --scene city.aabb --rounds 1 >/dev/full
1 1 :: written|space :: many_worlds --worlds 1 --steps 1 >/dev/full
1 1 :: written|space :: removal 2 >/dev/full
1 1 :: written|space :: loading 10 >/dev/full
1 1 :: written|space :: ghosts 1000 >/dev/full
1 1 :: written|space :: one_moves 10 --steps 1 >/dev/full
0 0 :: - :: make_scene walk 3 1000 many.aabb
0 0 :: ^141$ :: replay many.aabb | true; echo ${PIPESTATUS[0]}
0 2 :: ^status 1$ :: (trap '' PIPE; replay many.aabb; echo "status $?" >&2) | true
2 0 :: - :: replay missing.aabb 2>/dev/full
2 0 :: - :: replay missing.aabb 2>&-
0 0 :: summary :: rigid_bodies --summary --scene pile --objects 50 --steps 3 --record again.aabb <&- 2>&-
0 0 :: - :: cmp pile.aabb again.aabb
EOF

# --- Interrupted runs. Their recordings can be replayed.
table <<'EOF'
130 1 :: ^rigid_bodies: interrupted$ :: interrupt INT int.aabb rigid_bodies --summary --scene pile --objects 50 --steps 1000000 --record int.aabb --csv int.csv --report int.html >int.txt
0 0 :: - :: replay int.aabb >replay.txt
0 0 :: - :: [ "$(count frames replay.txt)" -eq "$(count steps int.txt)" ]
0 0 :: - :: [ "$(wc -l <int.csv)" -eq $(("$(count steps int.txt)" + 1)) ]
2 1 :: - :: ls int.html
143 1 :: interrupted :: interrupt TERM term.aabb rigid_bodies --scene pile --objects 50 --steps 1000000 --record term.aabb
0 0 :: summary :: replay term.aabb
130 1 :: many_worlds: interrupted :: interrupt INT heaps.aabb many_worlds --worlds 9 --boxes 9 --steps 1000000 --record heaps.aabb
0 0 :: summary :: replay heaps.aabb
130 1 :: make_scene: interrupted :: interrupt INT fall.aabb make_scene fall 100 1000000 fall.aabb
0 0 :: summary :: replay fall.aabb
137 - :: - :: interrupt KILL kill.aabb rigid_bodies --scene pile --objects 50 --steps 1000000 --record kill.aabb
0 1 :: kill.aabb: cut off; it has [0-9]+ of the 1000000 frames :: replay kill.aabb
EOF

# --- The viewer, if it was built. Only a window needs a display.
if [ -x "$bin/viewer" ]; then
  table <<'EOF'
0 0 :: tree-level :: viewer --help
0 0 :: step +3 dbvt +right after a swap .*among :: viewer --scene stack --objects 30 --steps 5 --swap 3:dbvt --verify
0 0 :: 35 objects, [1-9].* equal to brute force :: viewer --recording worlds.aabb --steps 9 --verify
2 1 :: missing.aabb :: viewer --recording missing.aabb --steps 1 --verify
2 1 :: NaN :: viewer --recording nan.aabb --steps 1 --verify
2 1 :: excludes :: viewer --recording worlds.aabb --objects 30 --verify
2 1 :: no-such :: viewer --scene no-such
2 1 :: no-such :: viewer --overlay boxes,no-such
2 1 :: a swap is STEP:BROADPHASE :: viewer --objects 30 --swap 3 --verify
2 1 :: a swap is STEP:BROADPHASE :: viewer --objects 30 --swap x:dbvt --verify
2 1 :: a swap is STEP:BROADPHASE :: viewer --objects 30 --swap 3:no-such --verify
2 1 :: a swap is STEP:BROADPHASE :: viewer --objects 30 --swap 3:dbvt,,4:dbvt --verify
2 1 :: a swap is STEP:BROADPHASE :: viewer --objects 30 --swap 3:dbvt, --verify
2 1 :: a swap is STEP:BROADPHASE :: viewer --objects 30 --swap :dbvt --verify
2 1 :: --swap: is empty :: viewer --objects 30 --swap "" --verify
2 1 :: two swaps at step 3 :: viewer --objects 30 --swap 3:dbvt,3:gpu-lbvh --verify
2 1 :: only 5 steps :: viewer --objects 30 --steps 5 --swap 5:dbvt --verify
2 1 :: --swap needs :: viewer --objects 30 --swap 5:dbvt
2 1 :: --pick needs :: viewer --objects 30 --pick 0,0 --verify
2 1 :: camera :: viewer --objects 30 --camera 1,2 --verify
2 1 :: distance :: viewer --objects 30 --camera 1,2,0 --verify
2 1 :: distance :: viewer --objects 30 --camera 1,2,-3 --verify
2 1 :: --camera: all numbers must be from :: viewer --objects 30 --camera nan,2,3 --verify
2 1 :: --camera: all numbers must be from :: viewer --objects 30 --camera 1,inf,3 --verify
2 1 :: --camera: all numbers must be from :: viewer --objects 30 --camera 1,2,1e300 --verify
2 1 :: --camera: all numbers must be from :: viewer --objects 30 --camera 1,2,3,0,-inf,0 --verify
2 1 :: --pick: numbers from :: viewer --objects 30 --pick nan,0 --screenshot x.png
2 1 :: --pick: numbers from :: viewer --objects 30 --pick 0,1.01 --screenshot x.png
2 1 :: size :: viewer --size 64
2 1 :: --backend cuda: no broad phase :: viewer --objects 30 --broadphase dbvt --backend cuda --verify
2 1 :: --backend cuda: no broad phase :: viewer --objects 30 --broadphase dbvt --backend cuda
2 1 :: --screenshot x.jpg: .*must end in .png :: viewer --objects 30 --screenshot x.jpg
2 1 :: --screenshot: is empty :: viewer --objects 30 --screenshot ""
2 1 :: --video: is empty :: viewer --objects 30 --video ""
2 1 :: no/such/folder/x.png :: viewer --objects 30 --screenshot /no/such/folder/x.png
2 1 :: --video kept/video: Not a dir :: viewer --objects 30 --video kept/video
2 1 :: --video /proc/video :: viewer --objects 30 --video /proc/video
2 1 :: x.png: Permission denied :: as_user viewer --objects 30 --screenshot readonly/x.png
2 1 :: --video readonly(/00000.png)?: Permission :: as_user viewer --objects 30 --video readonly
2 1 :: --video readonly/video: Permission :: as_user viewer --objects 30 --video readonly/video
2 1 :: - :: ls x.*
1 1 :: no window :: env -u DISPLAY -u WAYLAND_DISPLAY XDG_RUNTIME_DIR="$PWD" viewer --scene stack --objects 30
1 1 :: stdout is closed :: viewer --scene stack --objects 30 --steps 1 --verify >&-
1 1 :: written|space :: viewer --scene stack --objects 30 --steps 1 --verify >/dev/full
EOF
  if [ "$drawing" != no-drawing ]; then
    table <<'EOF'
0 0 :: PNG image :: viewer --scene stack --objects 30 --steps 0 --size 64,64 --screenshot x.png; head -c 4 x.png | grep -q PNG && echo PNG image
1 1 :: full.png: .*(write|space) :: ln -s /dev/full full.png; viewer --scene stack --objects 30 --steps 0 --size 64,64 --screenshot full.png
EOF
  fi
fi

echo "$rows command lines were run, $failures failed"
[ $rows -gt 150 ] && [ $failures -eq 0 ]

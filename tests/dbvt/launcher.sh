#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Tests what gpulbvh-run reports if it has no effect on a program, which exit status it ends with, and
# what it measures.
# Usage: launcher.sh GPULBVH_RUN EVERY_WAY [ANOTHER_EVERY_WAY]
set -euo pipefail
launcher=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
failures=0
fail() { echo "FAILED: $*"; failures=1; }

# says STATUS PATTERN COMMAND...: COMMAND must end with STATUS under the launcher. The launcher and the
# library must print one line with PATTERN to stderr, or no line if PATTERN is empty.
says() {
  local status=0 said
  "$launcher" "${@:3}" >out 2>err || status=$?
  [ $status = "$1" ] || fail "$3 ended with $status, not $1"
  said=$(grep '^gpulbvh' err || true)
  if [ -z "$2" ]; then
    [ -z "$said" ] || fail "$3: $said"
  else
    grep -q -e "$2" <<<"$said" || fail "$3: no '$2' in '$said'"
    [ "$(wc -l <<<"$said")" = 1 ] || fail "$3: more than one line: $said"
  fi
}

for program in "$@"; do
  says 0 '' "$program" ours
  says 0 '' --dbvt "$program" bullets
done
says 5 'sh itself has no Bullet' sh -c "'$1' ours && exit 5"
says 3 'env itself has no Bullet' env sh -c 'exit 3'
printf '#!/bin/sh\nexit 4\n' >script
chmod +x script
says 4 '' ./script
cp "$(command -v env)" carrier
printf 16btDbvtBroadphase >>carrier  # the type's name, as in a program that contains Bullet
says 6 'Bullet is inside ./carrier and hidden' ./carrier sh -c 'exit 6'
cp carrier relinked
printf 17GpuLbvhBroadphase >>relinked
says 6 'relinked was already linked with GpuLbvhBroadphase' ./relinked sh -c 'exit 6'
chmod u+s carrier
says 7 'carrier is set-uid' ./carrier sh -c 'exit 7'
if ldd /sbin/ldconfig 2>&1 | grep -q 'static'; then
  says 0 'ldconfig is linked statically' /sbin/ldconfig --version
fi
says 127 '' ./absent
says 2 'no option --fast' --fast "$1"

# The program makes 19 broad phases, and runs 31 steps in total. If Bullet was linked as on Ubuntu, the two
# broad phases of the axis sweeps are not measured. The program's child process makes one broad phase, runs 3
# steps, and ends with _exit.
made=19
if [ -n "${BULLET_BINDS_ITS_OWN:-}" ]; then made=17; fi
# A slow process writes several lines. The last line has the number of broad phases, and the steps of
# all lines must be added.
for whose in ours dbvt; do
  options=(--measure) word=ours column=gpulbvh
  if [ $whose = dbvt ]; then options+=(--dbvt) word=bullets column=bullet; fi
  "$launcher" "${options[@]}" "$1" $word >out 2>err || fail "$whose: it ended with $?"
  csv=gpulbvh-$(basename "$1")-$whose.csv
  [ "$(head -n 1 "$csv" | tr ',' '\n' | wc -l)" = 16 ] || fail "$csv does not have 16 names: $(cat "$csv")"
  processes=$(awk -F, 'NR > 1 && NF == 16 { whose[$1] = $3; made[$1] = $4; steps[$1] += $6 }
    END { for (process in whose) print whose[process] ":" made[process] ":" steps[process] }' "$csv" | LC_ALL=C sort)
  [ "$processes" = "$column:$made:31"$'\n'"$column:1:3" ] || fail "$csv: $(cat "$csv")"
  # Every line must name its three longest steps, or all if it has fewer. These steps must differ from
  # each other, and the longest comes first.
  awk -F, 'NR > 1 { for (i = 10; i < 16; i += 2) if ($(i + 1) > 0) {
      ++named; if ($i <= 0 || $(i + 1) > 31 || seen[$1, $(i + 1)]++ || (i > 10 && $i > $(i - 2))) exit failed = 1 }
      if ($6 > 0) wanted += $6 < 3 ? $6 : 3 }
    END { exit failed || named != wanted }' "$csv" || fail "the longest steps: $(cat "$csv")"
  [ "$(grep -c '^gpulbvh: .* 31 steps with' err)" = 1 ] || fail "no line with the sums: $(cat err)"
done
if [ -x "$(dirname "$launcher")/../dbvt/gpulbvh-report" ]; then
  head -c 200 "$csv" >gpulbvh-cut-ours.csv
  "$launcher" --report "$1" >out || fail "--report ended with $?"
  page=gpulbvh-$(basename "$1").html
  [ "$(grep -c '<tr><th><span' "$page")" = 4 ] || fail "$page has not two processes of two runs"
  says 1 'line 2 has .* fields instead of' --report cut
fi
says 1 'no gpulbvh-none-ours.csv and no gpulbvh-none-dbvt.csv' --report none
# A folder whose name has a space, which separates the names in LD_PRELOAD.
mkdir -p 'a b/bin' 'a b/dbvt'
cp "$launcher" 'a b/bin/'
cp "$(dirname "$launcher")"/../dbvt/*.so 'a b/dbvt/'
launcher="$PWD/a b/bin/gpulbvh-run"
says 0 '' "$1" ours
exit $failures

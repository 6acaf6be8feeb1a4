#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Tests gpulbvh-report: its table for the runs in measured-*.csv, and its errors for wrong files. With
# RENDERS, which is samples/report_renders.sh, a browser renders the page instead.
# Usage: report.sh GPULBVH_REPORT [RENDERS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
report=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Characters that must not become markup.
mkdir "$scratch/<b>&"
page="$scratch/<b>&/page.html"
for whose in ours dbvt; do cp "$here/measured-$whose.csv" "$scratch/gpulbvh-<b>&-$whose.csv"; done
"$report" "$page" "$scratch"/gpulbvh-*-ours.csv "$scratch"/gpulbvh-*-dbvt.csv >/dev/null
if [ $# -gt 1 ]; then exec "$2" "" "$page"; fi

failures=0
fail() { echo "FAILED: $*"; failures=1; }
# Prints the cells of each run, separated by | and without markup.
cells() { sed -n $'s/\xe2\x80\x99/./g''; s/<small>/ /g; s/<t[dhr]>/|/g; s/<[^>]*>//g; s/^||\(.*×.*\|.*–.*\)/\1/p' "$page"; }
# Means are weighted by steps: (400 * 40 + 600 * 100) / 1000 pairs, (400 * 0.03 + 600 * 0.01) / 1000 ms to
# find. The time between steps is measured from the second line on: 4000 ms for 600 steps.
wanted='&lt;b&gt;&amp;-ours|GpuLbvhBroadphase|1,000|101|76|0.02|0.018|0.038|1.00 ×|6.67|1.00 ×|0.900 step 467|0.400 step 1|0.300 step 153
&lt;b&gt;&amp;-dbvt (72)|Bullet.s own|780|101|85.9|0.097|0.025|0.122|3.22 ×|10|1.50 ×|2.42 step 562|0.054 step 1|0.046 step 264
&lt;b&gt;&amp;-dbvt (73)|Bullet.s own|0|9|–|–|–|–|–|–|–|–|–|–'
got=$(cells)
[ "$got" = "$wanted" ] || fail "the table has"$'\n'"$got"
[ "$(grep -c '<svg' "$page")" = 4 ] || fail "not four charts"

# wrong PATTERN CSV: the program prints one line, ends with 1 and does not change the page.
wrong() {
  local status=0
  printf '%b' "$2" >"$scratch/wrong.csv"
  "$report" "$page" "$scratch/wrong.csv" >/dev/null 2>"$scratch/err" || status=$?
  [ $status = 1 ] || fail "'$2' ended with $status"
  grep -q -e "$1" "$scratch/err" || fail "'$2': $(cat "$scratch/err")"
  [ "$(wc -l <"$scratch/err")" = 1 ] || fail "'$2': more than one line"
}
head=$(head -n 1 "$here/measured-ours.csv")
wrong 'no column process' ''
wrong 'no column third_step' 'process,seconds,broadphase,steps\n'
wrong 'no process made a broad phase' "$head\n"
wrong 'line 2 has 3 fields instead of' "$head\n71,2.0,gpulbvh\n"
wrong 'find_ms must be a number, but is x1' "$head\n71,2,gpulbvh,1,9,9,9,1,x1,1,1,1,1,1,1,1\n"
grep -q '<svg' "$page" || fail "the page was changed"
status=0
"$report" "$scratch/none/page.html" "$here/measured-ours.csv" 2>"$scratch/err" || status=$?
[ $status = 1 ] || fail "with a page in a missing folder it ended with $status, not 1"
"$report" 2>/dev/null && fail "without a file it ended with 0"
exit $failures

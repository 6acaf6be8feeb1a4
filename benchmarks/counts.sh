#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# What steady steps on a GPU cost, counted by the PTX interpreter: a row for each number of boxes, of
# make_scene's walk, and for each kind of step. Counts are exact and repeatable. Column model_us is the
# estimate of a model, which ranks changes: no figure here is a measured time.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'END2'
usage: counts.sh [OPTIONS] [BOXES...]
  BOXES                 1024 12486 100000 if none are named
  --steps N             count so many steps (32, of which the median and the worst are told)
  --check FILE          fail if something has risen by more than 3 % above the rows of FILE
  --kernels             each kernel of the last step, too
  --moving SHARES       of the boxes, the rest stays: a scene each, commas between (1)
  --ground              the first box is an infinite plane
  --bin FOLDER          programs linked with a shared cudart (build/release/bin)
  --interpreter FOLDER  (build/release/tests/ptxvm)
Writes CSV to the standard output.
END2
}

bin=build/release/bin interpreter=build/release/tests/ptxvm steps=32 check='' kernels='' moving=1 ground=''
while [[ ${1:-} == --* ]]; do
  case $1 in
    --kernels) kernels=yes ;;
    --ground) ground=--ground ;;
    --help) usage && exit ;;
    --steps | --check | --bin | --interpreter | --moving)
      [ $# -gt 1 ] || { usage >&2 && exit 2; }
      printf -v "${1#--}" '%s' "$2"
      shift
      ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
[ $# -gt 0 ] || set -- 1024 12486 100000

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
first=12 # from there on launches repeat
for scene in $(for boxes in "$@"; do for share in ${moving//,/ }; do echo "$boxes:$share"; done; done); do
  boxes=${scene%:*} share=${scene#*:}
  "$bin/make_scene" walk "$boxes" $((first + steps)) "$scratch/walk.aabb" --moving "$share" \
    $ground >/dev/null
  for order in kept sorting; do
    options=()
    if [ $order = sorting ]; then options=(--sort-each-step); fi
    LD_LIBRARY_PATH=$interpreter PTXVM_NO_PDL=1 PTXVM_PROFILE=$scratch/profile.csv PTXVM_PROFILE_FROM_SYNC=$first \
      PTXVM_PROFILE_SYNCS=$steps "$bin/replay" --backend cuda "${options[@]}" "$scratch/walk.aabb" \
      >"$scratch/replay.txt"
    python3 benchmarks/counts.py "$boxes" "$share" "$scratch/profile.csv" "$scratch/replay.txt" >>"$scratch/rows.csv"
    if [ -n "$kernels" ]; then
      echo "# $boxes boxes, $share moving, order $order, all counted steps"
      python3 tests/ptxvm/profile_table.py "$scratch/profile.csv"
    fi
  done
done
python3 benchmarks/counts.py --table "$scratch/rows.csv" ${check:+"$check"}

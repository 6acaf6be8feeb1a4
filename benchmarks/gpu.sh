#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Tests and measures on a machine with an NVIDIA GPU that may be gone after ten minutes. So the most
# valuable parts come first, each program has a time limit, and the archive of the results is written
# again after each part. Needs no build: the programs may come from another machine (gpu_bundle.sh).
# gpu_parts.sh defines the parts.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=benchmarks/gpu_parts.sh
. "$here/gpu_parts.sh"

# Columns: name, maximum seconds of a program, maximum seconds of the part, description. The first six
# parts take ten minutes.
table='
tests      30 150  the CUDA tests, suite by suite
stress     30  75  every kind of sort, and two threads, while other work disturbs them (cuda_stress)
times      60 165  three scenes on the GPU, on the host and with automatic choice: times.csv
memcheck   40  75  tests and a small scene under compute-sanitizer
micro      45  45  the costs of atomics, launches and the bus: micro.csv
ncu        40  75  Nsight Compute on the five costliest kernels of a step
worlds     60 120  many worlds compared with one spread-out scene: worlds.csv
scenes     90 240  more scenes, in times.csv
sanitize  120 360  the other tools of compute-sanitizer, and memcheck on the longest test
soak      100 300  large box sets while other work disturbs them'
declare -A each whole
all=()
while read -r name program part _; do
  [ -n "$name" ] || continue
  all+=("$name") each[$name]=$program whole[$name]=$part
done <<<"$table"

usage() {
  cat <<END
usage: gpu.sh [OPTIONS] OUTPUT_FOLDER [PART...]

part        maximum seconds: of a program, of the part$table

By default all parts run in this order, except those whose tool this machine lacks.
Results are written as they are measured, and packed into OUTPUT_FOLDER.tar.gz after each part.
failures.txt lists what failed or ran into its limit.
  --bin FOLDER    the programs (default: bin beside this script's folder, or build/release/bin)
  --frames N      maximum number of frames of a scene (default: 200)
  --scenes LIST   scenes of the part times, separated by commas: debris, numbers of boxes in a random
                  walk, .aabb files (default: $scenes)
  --more LIST     scenes of the part scenes (default: $more)
  --limit N       seconds for a program, instead of the table's
  --tiny          sizes for the PTX interpreter, whose times mean nothing
The exit status is 0 if every requested part ran and succeeded, else 1.
END
}

refuse() {
  echo "gpu.sh: $*" >&2
  usage >&2
  exit 2
}

bin='' frames=200 scenes=debris,100000,1000000 more=1000,10000,10000000 limit=''
while [[ ${1:-} == -* ]]; do
  case $1 in
    --bin | --frames | --scenes | --more | --limit)
      [ $# -gt 1 ] || refuse "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
      shift
      ;;
    --tiny)
      tiny_sizes
      for name in "${all[@]}"; do each[$name]=900 whole[$name]=900; done
      echo "tiny sizes: no time below means anything"
      ;;
    -h | --help) usage && exit ;;
    *) refuse "unknown option $1" ;;
  esac
  shift
done
[ $# -gt 0 ] || refuse "no output folder"
for number in "$frames" ${limit:+"$limit"}; do
  [[ $number =~ ^[1-9][0-9]*$ ]] || refuse "must be a whole number of at least 1, but is: $number"
done
if [ -n "$limit" ]; then
  for name in "${all[@]}"; do each[$name]=$limit; done
fi
out=$(realpath -m "$1")
shift
for name in "$@"; do
  [[ " ${all[*]} " == *" $name "* ]] || refuse "no such part: $name"
done
if [ -z "$bin" ]; then
  bin=$here/../bin
  [ -d "$bin" ] || bin=$here/../build/release/bin
fi
for program in cuda_tests cuda_kernel_tests cuda_stress replay make_scene rigid_bodies worlds gpu_micro; do
  [ -x "$bin/$program" ] || refuse "no program $program in $bin"
done
mkdir -p "$out" && touch "$out/failures.txt" || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

part='' deadline=0
fail() { echo "FAILED: $part: $*" | tee -a "$out/failures.txt" "$scratch/failures" >&2; }
have() { command -v "$1" >/dev/null; }

# The clock of the GPU's multiprocessors in MHz; empty if it is not known.
clock() {
  if ! have nvidia-smi; then return; fi
  timeout 5 nvidia-smi --query-gpu=clocks.sm --format=csv,noheader,nounits 2>/dev/null | head -n 1
}

# ending STATUS SECONDS LIMIT: describes how a program ended.
ending() {
  case $1 in
    124 | 137) if (($2 >= $3)); then echo "cut by the limit of $3 s"; else echo "killed"; fi ;;
    129 | 1[3-9]?) echo "crashed, SIG$(kill -l $(($1 - 128)))" ;;
    *) echo "status $1" ;;
  esac
}

# bounded LOG COMMAND...: runs COMMAND within a program's limit and within the remaining time of the
# part.
bounded() {
  local log=$1 seconds=${each[$part]} left=$((deadline - SECONDS)) began=$SECONDS status=0
  shift
  if ((left <= 0)); then
    fail "no time left of ${whole[$part]} s: ${*#"$bin/"}"
    return 124
  fi
  ((seconds <= left)) || seconds=$left
  # Drops the shell's own message about a crash, because fail() reports the crash.
  { timeout -k 5 "$seconds" "$@" >"$log" 2>"$log.err" </dev/null; } 2>/dev/null || status=$?
  if ((status != 0)); then
    fail "$(ending "$status" $((SECONDS - began)) "$seconds"): ${*#"$bin/"}:" \
      "$(tail -qn 1 "$log" "$log.err" | tr '\n' ' ' | cut -c 1-300)"
  fi
  [ -s "$log.err" ] || rm -f "$log.err"
  return "$status"
}

# Writes the new archive under another name first, so that a complete archive always exists.
pack() {
  tar -C "$(dirname "$out")" --warning=no-file-changed -czf "$out.tar.gz.new" "$(basename "$out")"
  [ $? -le 1 ] && mv "$out.tar.gz.new" "$out.tar.gz"
}

# Runs a part in a subshell, so that an error in its script does not end the other parts.
run_part() {
  part=$1 deadline=$((SECONDS + whole[$1]))
  local began=$SECONDS
  sed -i "/^FAILED: $part: /d" "$out/failures.txt" # drops failures of an earlier call
  rm -f "$scratch/ended"
  echo "=== $part, at most ${whole[$part]} s; SM clock in MHz: $(clock)"
  ("part_$part"; touch "$scratch/ended")
  [ -e "$scratch/ended" ] || fail "its script ended early"
  echo "=== $part took $((SECONDS - began)) s; SM clock in MHz: $(clock)"
  pack
}

# without TOOL PART...: leaves these parts out if the machine lacks the tool.
without() {
  local tool=$1 name
  shift
  if have "$tool"; then return; fi
  for name in "$@"; do parts=("${parts[@]/$name/}"); done
  echo "left out: $*: $tool is not on this machine"
}

run_parts() {
  local parts=("$@") name
  if have nvidia-smi; then
    timeout 10 nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem --format=csv |
      tee "$out/machine.csv"
    timeout 10 nvidia-smi -q -d CLOCK,COMPUTE,ECC >"$out/machine.txt"
  else
    echo "nvidia-smi: not on this machine"
  fi
  if [ $# -eq 0 ]; then
    parts=("${all[@]}")
    without compute-sanitizer memcheck sanitize
    without ncu ncu
  fi
  for name in "${parts[@]}"; do
    if [ -n "$name" ]; then run_part "$name"; fi
  done
  if [ ! -s "$scratch/failures" ]; then return; fi
  echo "=== $(wc -l <"$scratch/failures") failures"
  cat "$scratch/failures"
  return 1
}

run_parts "$@" 2>&1 | tee -a "$out/log.txt"
status=${PIPESTATUS[0]}
pack
[ "$status" -eq 0 ]

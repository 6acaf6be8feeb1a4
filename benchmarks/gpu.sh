#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Tests and measures everything on a machine with an NVIDIA GPU, into one folder, the most important
# first. Needs no build: the programs may come from another machine (gpu_bundle.sh).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

usage() {
  cat <<'END'
usage: gpu.sh [OPTIONS] OUTPUT_FOLDER [PART...]
  tests      the CUDA tests                                                       3 minutes at most
  times      stages and whole updates of scenes, on the GPU, the host's cores,
             and where the library chooses: times.csv                             8
  worlds     many worlds beside one spread-out scene: worlds.csv                  2
  sanitize   tests and a small scene under compute-sanitizer's tools              6
  stress     large box sets beside disturbers (cuda_stress)                       4
  ncu        Nsight Compute on the five costliest kernels of a step               2
  micro      what atomics, launches and the bus cost: micro.csv                   1
All parts run by default, in this order, without those whose tool this machine lacks.
Everything is written as it goes, and what failed or was cut by its limit is in failures.txt.
  --bin FOLDER    the programs (default: bin beside this script's folder, or build/release/bin)
  --frames N      of a scene, at most (200)
  --scenes LIST   commas between: debris, numbers of boxes in a random walk, .aabb files
                  (debris,1000,10000,100000,1000000,10000000)
  --tiny          sizes for the PTX interpreter, where times mean nothing
The exit status is 0 if everything that was asked for ran and succeeded, else 1.
END
}

refuse() {
  echo "gpu.sh: $*" >&2
  usage >&2
  exit 2
}

all=(tests times worlds sanitize stress ncu micro)
declare -A seconds=([tests]=180 [times]=480 [worlds]=120 [sanitize]=360 [stress]=240 [ncu]=120 [micro]=60)
bin='' frames=200 scenes=debris,1000,10000,100000,1000000,10000000
most_boxes=40000000 # in all frames of a walk: they go through a file. But 20 frames at least
debris=(--steps 120) sanitized=20000 profiled=1000000 stress=(--seconds 40) worlds=()
while [[ ${1:-} == -* ]]; do
  case $1 in
    --bin | --frames | --scenes)
      [ $# -gt 1 ] || refuse "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
      shift
      ;;
    --tiny)
      frames=12 scenes=debris,500
      debris=(--objects 300 --steps 12) sanitized=300 profiled=1000
      stress=(--boxes '100,500' --rounds 30) worlds=(--tiny)
      echo "tiny sizes: no time below means anything"
      ;;
    -h | --help) usage && exit ;;
    *) refuse "unknown option $1" ;;
  esac
  shift
done
[ $# -gt 0 ] || refuse "no output folder"
[[ $frames =~ ^[1-9][0-9]*$ ]] || refuse "not a number of frames: $frames"
out=$1
shift
for part in "$@"; do
  [[ " ${all[*]} " == *" $part "* ]] || refuse "no such part: $part"
done
if [ -z "$bin" ]; then
  bin=$here/../bin
  [ -d "$bin" ] || bin=$here/../build/release/bin
fi
for program in cuda_tests cuda_kernel_tests replay make_scene rigid_bodies; do
  [ -x "$bin/$program" ] || refuse "no program $program in $bin"
done
mkdir -p "$out" || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
touch "$out/failures.txt" || exit 1

part='' deadline=0
fail() { echo "FAILED: $part: $*" | tee -a "$out/failures.txt" "$scratch/failures" >&2; }
have() { command -v "$1" >/dev/null; }

# bounded LOG COMMAND...: within the time that is left to the part.
bounded() {
  local log=$1 left=$((deadline - SECONDS)) status=0
  shift
  if ((left <= 0)); then
    fail "no time left for $(basename "$1") (${seconds[$part]} s)"
    return 124
  fi
  timeout -k 5 "$left" "$@" >"$log" 2>"$log.err" || status=$?
  case $status in
    0) ;;
    124 | 137) fail "cut by the limit of ${seconds[$part]} s: $*" ;;
    *) fail "status $status: $*: $(tail -n 1 "$log.err")" ;;
  esac
  [ -s "$log.err" ] || rm "$log.err"
  return $status
}

# tested NAME COMMAND...: a program that skipped all its tests has failed.
tested() {
  local log=$out/$1.log
  shift
  bounded "$log" "$@" || { tail -n 3 "$log" 2>/dev/null; return 1; }
  if grep -q 'PASSED  ] 0 tests' "$log"; then
    fail "skipped: $*: $(grep -m 1 -oE 'no cuda: .*' "$log")"
    return 1
  fi
  # Some are for several devices, or for errors on demand.
  if grep -q 'SKIPPED' "$log"; then echo "$(grep -cE 'SKIPPED.*\(' "$log") skipped, $(grep PASSED "$log")"; fi
  tail -n 1 "$log"
}

# Suite by suite, so that one that hangs takes only its own time.
part_tests() {
  local program suite
  for program in cuda_tests cuda_kernel_tests; do
    for suite in $("$bin/$program" --gtest_list_tests | sed -nE 's/^([A-Za-z0-9_/]+)\.( .*)?$/\1/p'); do
      echo "$suite: $(tested "${suite//\//_}" "$bin/$program" --gtest_filter="$suite.*")"
    done
  done
}

# make_file SCENE FRAMES: writes its boxes to $file.
make_file() {
  file=$1
  case $1 in
    debris)
      file=$scratch/debris.aabb
      bounded "$out/debris.log" "$bin/rigid_bodies" --scene debris --backend host "${debris[@]}" \
        --record "$file"
      ;;
    *[!0-9]*) [ -r "$file" ] || { fail "cannot read $file"; return 1; } ;;
    *)
      file=$scratch/walk.aabb
      bounded "$out/make_scene.log" "$bin/make_scene" walk "$1" "$2" "$file"
      ;;
  esac
}

# The GPU replays recorded launches from the eighth step or so on: too few frames miss what counts.
# The host is as fast from the second frame on.
part_times() {
  local scene count backend file list
  rm -f "$out/times.csv"
  IFS=, read -ra list <<<"$scenes"
  for scene in "${list[@]}"; do
    count=$frames
    if [[ $scene =~ ^[0-9]+$ ]] && ((scene * count > most_boxes)); then
      count=$((most_boxes / scene > 20 ? most_boxes / scene : 20))
    fi
    make_file "$scene" "$count" || continue
    for backend in cuda auto host; do
      if [ $backend = host ] && ((count < frames)); then count=$((count / 3 + 1)); fi
      : >"$scratch/rows.csv"
      bounded "$scratch/rows.csv" "$here/step_times.sh" "$bin" $backend "$count" "$file"
      # What there is, with one header.
      if [ ! -e "$out/times.csv" ]; then head -n 1 "$scratch/rows.csv" | tee "$out/times.csv"; fi
      tail -n +2 "$scratch/rows.csv" | tee -a "$out/times.csv"
      if grep -q ',cuda,host,' "$scratch/rows.csv"; then fail "$scene: the GPU's times are the host's"; fi
    done
  done
}

part_worlds() {
  bounded "$out/worlds.csv" "$here/worlds.sh" --bin "$bin" "${worlds[@]}" cuda
  cat "$out/worlds.csv"
}

# Reads of memory that nobody wrote, by kernel, but for CUB's: it reads what it then ignores. Its
# kernels must be watched all the same, for ours read what they write.
initcheck_kernels() {
  awk '/Uninitialized .* read/ { reads = 1; next }
       reads && / at / { sub(/.* at /, ""); sub(/\+0x.*/, ""); reads = 0; if (!/cub::/) ++count[$0] }
       END { for (kernel in count) print count[kernel] "\t" kernel }' "$1" | sort -rn
}
initcheck() {
  local log=$out/$1.initcheck.log
  shift
  bounded "$log" compute-sanitizer --tool initcheck "$@" || return
  initcheck_kernels "$log" >"$log.kernels"
  if [ -s "$log.kernels" ]; then fail "uninitialised reads, by kernel: $(cat "$log.kernels"): $*"; fi
}

# The long test comes last, so that the others have their turn.
part_sanitize() {
  # Tests provoke errors of CUDA's calls, which memcheck would count. A sticky error takes a kernel
  # that writes through null.
  local name walk=$scratch/small.aabb short=(replay CudaStages CudaDevice)
  local -A commands=(
    [replay]="$bin/replay $walk --backend cuda"
    [CudaStages]="$bin/cuda_kernel_tests --gtest_filter=CudaStages.*-*Sticky*"
    [CudaDevice]="$bin/cuda_tests --gtest_filter=CudaDevice*-*Sticky*"
    [Cuda]="$bin/cuda_tests --gtest_filter=Cuda.*-*Sticky*")
  if ! have compute-sanitizer; then fail "compute-sanitizer is not on this machine"; return; fi
  bounded "$out/make_scene.log" "$bin/make_scene" walk "$sanitized" 10 "$walk" || return
  # CUB's sort is said to race where it does not.
  local -A options=([memcheck]='--report-api-errors no' [racecheck]='--kernel-name-exclude kns=cub')
  set -f  # the filters are no names of files
  sanitize() {
    local tool
    for tool in memcheck racecheck synccheck; do
      # shellcheck disable=SC2086  # options, and a command with its arguments
      echo "$1, $tool: $(tested "$1.$tool" \
        compute-sanitizer --tool $tool ${options[$tool]:-} --error-exitcode 9 ${commands[$1]})"
    done
  }
  for name in "${short[@]}"; do sanitize "$name"; done
  # shellcheck disable=SC2086
  for name in "${short[@]}"; do initcheck "$name" ${commands[$name]}; done
  sanitize Cuda
  set +f
}

part_stress() {
  bounded "$out/stress.txt" "$bin/cuda_stress" "${stress[@]}"
  cat "$out/stress.txt"
}

# The launch numbers of the five costliest kernels, the last launch of each.
costliest() {
  grep '^"' "$1" | awk -F '","' '
    NR == 1 { for (i = 1; i <= NF; ++i) { name = $i; gsub(/"/, "", name); column[name] = i } next }
    { id = $column["ID"]; gsub(/"/, "", id) }
    id !~ /^[0-9]+$/ { next }  # the units
    {
      kernel = $column["Kernel Name"]
      time = $column["gpu__time_duration.sum"]
      gsub(/[",]/, "", time)
      sum[kernel] += time
      last[kernel] = id
    }
    END { for (kernel in sum) print sum[kernel] "\t" last[kernel] "\t" kernel }' |
    sort -rn | head -n 5
}

part_ncu() {
  local walk=$scratch/profiled.aabb launch kernel
  if ! have ncu; then fail "ncu is not on this machine"; return; fi
  bounded "$out/make_scene.log" "$bin/make_scene" walk "$profiled" 3 "$walk" || return
  local command=("$bin/replay" "$walk" --backend cuda)
  # Clocks stay as they are: they may belong to others, too.
  bounded "$out/ncu_all.csv" ncu --clock-control none --metrics gpu__time_duration.sum --csv \
    --page raw --print-kernel-base demangled "${command[@]}" || return
  costliest "$out/ncu_all.csv" | cut -c 1-300 | tee "$out/ncu_costliest.txt"
  [ -s "$out/ncu_costliest.txt" ] || { fail "ncu saw no kernel"; return; }
  while IFS=$'\t' read -r _ launch kernel; do
    bounded "$out/ncu_$launch.txt" ncu --clock-control none --set full --launch-skip "$launch" \
      --launch-count 1 "${command[@]}" </dev/null || continue
    grep -q 'Duration' "$out/ncu_$launch.txt" || fail "no profile of launch $launch: $kernel"
  done <"$out/ncu_costliest.txt"
}

part_micro() {
  bounded "$out/micro.csv" "$bin/gpu_micro"
  cat "$out/micro.csv"
}

if have nvidia-smi; then
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem --format=csv |
    tee "$out/machine.csv"
else
  echo "nvidia-smi: not on this machine"
fi
parts=("$@")
if [ $# -eq 0 ]; then
  parts=("${all[@]}")
  if ! have compute-sanitizer; then
    parts=("${parts[@]/sanitize/}")
    echo "sanitize is left out: compute-sanitizer is not on this machine"
  fi
  if ! have ncu; then
    parts=("${parts[@]/ncu/}")
    echo "ncu is left out: it is not on this machine"
  fi
fi
for part in "${parts[@]}"; do
  [ -n "$part" ] || continue
  sed -i "/^FAILED: $part: /d" "$out/failures.txt" # of an earlier call
  began=$SECONDS deadline=$((SECONDS + seconds[$part]))
  echo "=== $part, at most ${seconds[$part]} s"
  "part_$part"
  echo "=== $part took $((SECONDS - began)) s"
done
if [ -s "$scratch/failures" ]; then
  echo "=== $(wc -l <"$scratch/failures") failures"
  cat "$scratch/failures"
  exit 1
fi

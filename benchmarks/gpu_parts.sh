# shellcheck shell=bash disable=SC2034,SC2154  # variables that gpu.sh reads or sets
# SPDX-License-Identifier: Zlib
# Defines the parts of gpu.sh, and their sizes. gpu.sh sources this file. The functions that run a
# program within its limit and report a failure are in gpu.sh.

most_boxes=40000000 # maximum number of boxes in a walk's file, over all frames; never lowers the frames below 20
debris=(--steps 120) sanitized=20000 profiled=1000000
# One thread block sorts up to 2,304 boxes, a merge sort up to 131,072, and a radix sort more
# (broadphase/cuda/stages.cuh). Each kind of sort is run with codes of 30 and of 63 bits. The memory hog of
# cuda_stress uses 64 bytes for each box of the largest size. In the part `threads`, one thread has an eighth of
# $threaded boxes, and the other a sixth.
sorted=2000,20000,60000,130000,1000000 threaded=200000 rounds=1000000
soaked=1000000,4000000
# --most N: each world has 0 to N boxes. --shared 0.1: with W worlds, 0.1 W boxes are in all worlds.
worlds=('--worlds 4096 --boxes 64' '--worlds 4096 --most 50000 --shared 0.1')
left_out='' # the filter for tests that are not run

tiny_sizes() {
  frames=12 scenes=debris,500 more=100
  debris=(--objects 300 --steps 12) sanitized=300 profiled=1000
  sorted=100,2400 threaded=500 rounds=8 soaked=100,500
  worlds=('--worlds 20 --boxes 30' '--worlds 20 --most 200 --shared 0.1')
  left_out='-*ManyRandomSteps*:CudaTrust.*' # on the interpreter these tests take minutes
}

# tested NAME COMMAND...: runs tests. Fails if all tests were skipped because there is no GPU.
tested() {
  local log=$out/$1.log
  shift
  bounded "$log" "$@" || return
  if grep -q 'PASSED  ] 0 tests' "$log" && grep -q 'no cuda: ' "$log"; then
    fail "skipped: $*: $(grep -m 1 -oE 'no cuda: .*' "$log")"
    return 1
  fi
  # Tests that need several devices, or a CUDA runtime that fails on demand, can be skipped.
  if grep -q 'SKIPPED' "$log"; then echo "$(grep -cE 'SKIPPED.*\(' "$log") skipped, $(grep PASSED "$log")"; fi
  tail -n 1 "$log"
}

# Runs each suite separately, so that a suite that hangs uses up only its own time.
part_tests() {
  local program suite suites
  for program in cuda_tests cuda_kernel_tests; do
    bounded "$out/$program.txt" "$bin/$program" --gtest_list_tests || continue
    mapfile -t suites < <(sed -nE 's/^([A-Za-z0-9_/]+)\.( .*)?$/\1/p' "$out/$program.txt")
    ((${#suites[@]})) || fail "$program names no suites"
    for suite in "${suites[@]}"; do
      echo "$suite: $(tested "${suite//\//_}" "$bin/$program" --gtest_filter="$suite.*$left_out")"
    done
  done
}

# stressed NAME SECONDS OPTION...: runs one part of cuda_stress.
stressed() {
  local log=$out/$1.txt
  shift
  bounded "$log" "$bin/cuda_stress" --rounds "$rounds" --seconds "$@"
  cat "$log"
}
part_stress() {
  stressed stress_updates 8 --part updates --boxes "$sorted"
  stressed stress_device 8 --part device --boxes "$sorted"
  stressed stress_threads 8 --part threads --boxes "$threaded"
}
part_soak() {
  local name
  for name in device updates threads; do stressed "soak_$name" 60 --part "$name" --boxes "$soaked"; done
}

# make_file SCENE FRAMES: sets $file to a file with the scene's boxes, and makes the file if necessary.
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

# The columns of times.csv, with replay's names. The last columns are the stages.
columns='scene objects pairs asked backend threads frames timed sm_mhz_before sm_mhz_after median_total_ms'
columns+=' mean_total_ms max_total_ms bounds_ms codes_ms sort_ms hierarchy_ms traversal_ms pair_sort_ms delta_ms'

# row LOG NAME=VALUE...: prints a row of times.csv, from replay's output and the given values.
row() {
  printf '%s\n' "${@:2}" | awk -v columns="$columns" '
    { for (i = 1; i <= NF; ++i) if (split($i, word, "=") == 2) value[word[1]] = word[2] }
    END {
      n = split(columns, name, " ")
      for (i = 1; i <= n; ++i) printf "%s%s", value[name[i]], i < n ? "," : "\n"
    }' "$1" -
}

# timed BACKEND TIMED [OPTION...]: replays $count frames of $file and adds a row to times.csv. TIMED
# names what was timed. Stages are timed in a separate run, because timing them slows a GPU.
timed() {
  local backend=$1 timed=$2 log=$out/times/$label.$1.$2.log n=$count before
  shift 2
  if [ "$backend" = host ] && ((count < frames)); then n=$((count / 3 + 1)); fi
  before=$(clock)
  # Does not time the first steps, because the GPU replays recorded launches from about the eighth step on.
  bounded "$log" "$bin/replay" "$file" --backend "$backend" --frames "$n" \
    --untimed $((n > 40 ? 20 : n / 2)) "$@" || return
  row "$log" "scene=$name" "asked=$backend" "timed=$timed" "sm_mhz_before=$before" \
    "sm_mhz_after=$(clock)" | tee -a "$out/times.csv" "$scratch/row"
  if tail -n 1 "$scratch/row" | grep -q ',cuda,host,'; then fail "$label: cuda was requested, but the run was on the host"; fi
  replayed+=("$log")
}

# differences HOST_LOG LOG: prints in how many frames the pairs differ from the host's, and the first such frame.
differences() {
  awk '!/^frame=/ { next }
       NR == FNR { host[$1] = $2 " " $3; next }
       $1 in host { ++frames }
       $1 in host && host[$1] != $2 " " $3 && ++wrong == 1 { first = $1 ": " $2 " " $3 "; on the host " host[$1] }
       END { if (!frames) print "no frame to compare"
             else if (wrong) print wrong " of " frames " frames, first " first }' "$@"
}

# measure SCENE,...: times each scene, with its most important runs first. Compares each run's pairs
# with the host's.
measure() {
  local scene list log difference name label file count replayed
  mkdir -p "$out/times"
  [ -e "$out/times.csv" ] || tr ' ' , <<<"${columns/objects/boxes}" | tee "$out/times.csv"
  IFS=, read -ra list <<<"$1"
  for scene in "${list[@]}"; do
    name=$(basename "$scene" .aabb) count=$frames replayed=()
    label=$name
    if [[ $scene =~ ^[0-9]+$ ]]; then
      name=walk label=walk$scene
      if ((scene * count > most_boxes)); then count=$((most_boxes / scene > 20 ? most_boxes / scene : 20)); fi
    fi
    make_file "$scene" "$count" || continue
    timed cuda update
    timed host update || fail "$label: there are no pairs from the host to compare with"
    timed cuda update+pairs --time-pairs
    timed auto update
    timed cuda update+stages --stages
    timed host update+stages --stages
    for log in "${replayed[@]}"; do
      difference=$(differences "$out/times/$label.host.update.log" "$log")
      [ -z "$difference" ] || fail "wrong pairs: $(basename "$log" .log): $difference"
    done
    pack
  done
}
part_times() {
  rm -f "$out/times.csv"
  measure "$scenes"
}
part_scenes() { measure "$more"; }

part_worlds() {
  local sizes backend before found rows=$scratch/rows.csv table=$out/worlds.csv
  rm -f "$table"
  for sizes in "${worlds[@]}"; do
    found=()
    for backend in cuda host; do
      before=$(clock)
      # shellcheck disable=SC2086  # options
      bounded "$rows" "$bin/worlds" --backend $backend --threads "$(nproc)" $sizes || continue
      [ -e "$table" ] || sed -n '1s/$/,sm_mhz_before,sm_mhz_after/p' "$rows" | tee "$table"
      sed -n "2s/\$/,$before,$(clock)/p" "$rows" | tee -a "$table"
      found+=("$(sed -n 2p "$rows" | cut -d, -f 3,4,15,16)") # counts and hashes of the pairs
    done
    if ((${#found[@]} < 2)); then fail "worlds $sizes: nothing was compared"; continue; fi
    [ "${found[0]}" = "${found[1]}" ] || fail "wrong pairs: worlds $sizes: ${found[0]}; on the host ${found[1]}"
  done
}

# Prints the kernels that read uninitialised memory, except CUB's kernels, which ignore what they read
# there. initcheck must still watch CUB's kernels, because our kernels read what those write.
initcheck_kernels() {
  awk '/Uninitialized .* read/ { reads = 1; next }
       reads && / at / { sub(/.* at /, ""); sub(/\+0x.*/, ""); reads = 0; if (!/cub::/) ++count[$0] }
       END { for (kernel in count) print count[kernel] "\t" kernel }' "$1" | sort -rn
}

# sanitized TOOL NAME...: runs the named commands below under a tool of compute-sanitizer.
sanitized() {
  # Tests provoke errors of CUDA calls, so memcheck must not report them. Tests of sticky errors are
  # left out, because their kernel writes through a null pointer.
  local tool=$1 name walk=$scratch/small.aabb
  local -A commands=(
    [replay]="$bin/replay $walk --backend cuda"
    [CudaStages]="$bin/cuda_kernel_tests --gtest_filter=CudaStages.*-*Sticky*"
    [CudaDevice]="$bin/cuda_tests --gtest_filter=CudaDevice*-*Sticky*"
    [Cuda]="$bin/cuda_tests --gtest_filter=*/Cuda.*-*Sticky*")
  # racecheck reports false races in CUB's sort. CUB's sort also reads uninitialised memory and ignores
  # the values. So initcheck is judged by its log (initcheck_kernels), not by its exit status.
  local -A options=([memcheck]='--error-exitcode 9 --report-api-errors no' [synccheck]='--error-exitcode 9'
    [racecheck]='--error-exitcode 9 --kernel-name-exclude kns=cub' [initcheck]='')
  if ! have compute-sanitizer; then fail "compute-sanitizer is not on this machine"; return; fi
  if [ ! -e "$walk" ]; then
    bounded "$out/make_scene.log" "$bin/make_scene" walk "$sanitized" 10 "$walk" || return
  fi
  shift
  set -f # the filters are not file names
  for name in "$@"; do
    # shellcheck disable=SC2086  # options, and a command with its arguments
    echo "$name, $tool: $(tested "$name.$tool" \
      compute-sanitizer --tool "$tool" ${options[$tool]} ${commands[$name]})"
  done
  set +f
}
initcheck() {
  local name log
  for name in "$@"; do
    log=$out/$name.initcheck.log
    sanitized initcheck "$name"
    [ -e "$log" ] || continue
    initcheck_kernels "$log" >"$log.kernels"
    if [ -s "$log.kernels" ]; then fail "uninitialised reads, by kernel: $name: $(cat "$log.kernels")"; fi
  done
}

short=(replay CudaStages CudaDevice)
part_memcheck() { sanitized memcheck "${short[@]}"; }
# The long test runs last, so that it cannot use up the time of the others.
part_sanitize() {
  local tool
  for tool in racecheck synccheck; do sanitized $tool "${short[@]}"; done
  initcheck "${short[@]}"
  for tool in memcheck racecheck synccheck; do sanitized $tool Cuda; done
}

# costliest FILE: prints the time, the number of the last launch and the name of each of the five
# costliest kernels.
costliest() {
  grep '^"' "$1" | awk -F '","' '
    NR == 1 { for (i = 1; i <= NF; ++i) { name = $i; gsub(/"/, "", name); column[name] = i } next }
    { id = $column["ID"]; gsub(/"/, "", id) }
    id !~ /^[0-9]+$/ { next }  # the row of units
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
  # Does not change the clocks, because other users may share the GPU.
  bounded "$out/ncu_all.csv" ncu --clock-control none --metrics gpu__time_duration.sum --csv \
    --page raw --print-kernel-base demangled "${command[@]}" || return
  costliest "$out/ncu_all.csv" | cut -c 1-300 | tee "$out/ncu_costliest.txt"
  [ -s "$out/ncu_costliest.txt" ] || { fail "ncu recorded no kernel"; return; }
  while IFS=$'\t' read -r _ launch kernel; do
    bounded "$out/ncu_$launch.txt" ncu --clock-control none --set full --launch-skip "$launch" \
      --launch-count 1 "${command[@]}" || continue
    grep -q 'Duration' "$out/ncu_$launch.txt" || fail "no profile of launch $launch: $kernel"
  done <"$out/ncu_costliest.txt"
}

part_micro() {
  bounded "$out/micro.csv" "$bin/gpu_micro"
  cat "$out/micro.csv"
}

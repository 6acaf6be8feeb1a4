#!/usr/bin/env bash
# Measures everything on a machine with an NVIDIA GPU, into one folder: the CUDA tests, also under
# compute-sanitizer, stage times as CSV, and ncu reports of the two kernels that matter.
# Needs no build: binaries may come from another machine (static cudart, so built without
# GPULBVH_INTERPRETER; CMAKE_CUDA_ARCHITECTURES must name this GPU).
# Usage: gpu.sh FOLDER_OF_PROGRAMS OUTPUT_FOLDER [FRAMES [OBJECTS_OR_FILE...]]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 out=$2 frames=${3:-200}
shift $(($# < 3 ? $# : 3))
mkdir -p "$out"
scenes=("$@")
if [ ${#scenes[@]} -eq 0 ]; then
  "$bin/rigid_bodies" --scene debris --steps 200 --record "$out/debris.aabb" >/dev/null
  scenes=("$out/debris.aabb" 1000 10000 100000 1000000 10000000)
fi

failed=0

note() { echo "=== $*"; }
have() { command -v "$1" >/dev/null || { note "$1: not on this machine"; return 1; }; }

have nvidia-smi && nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem --format=csv |
  tee "$out/machine.csv"

for test in cuda_test cuda_stages_test cuda_device_test; do
  note "$test"
  "$bin/$test" >"$out/$test.log" 2>&1 || failed=1
  tail -n 3 "$out/$test.log"
  if have compute-sanitizer; then
    for tool in memcheck racecheck synccheck; do
      note "$test under $tool"
      compute-sanitizer --tool "$tool" --error-exitcode 9 "$bin/$test" >"$out/$test.$tool.log" 2>&1 ||
        failed=1
      tail -n 1 "$out/$test.$tool.log"
    done
  fi
done

# Large scenes have fewer frames: their boxes go through a file.
for scene in "${scenes[@]}"; do
  count=$frames
  if [[ $scene =~ ^[0-9]+$ ]] && ((scene * count > 40000000)); then
    count=$((40000000 / scene > 4 ? 40000000 / scene : 4))
  fi
  for backend in cuda host; do "$here/step_times.sh" "$bin" "$backend" "$count" "$scene"; done
done | awk 'NR == 1 || !/^scene,/' | tee "$out/stages.csv"

if have ncu; then
  "$bin/make_scene" walk 1000000 4 "$out/walk.aabb" >/dev/null
  ncu --set full --kernel-name 'regex:appendKernel|forEachKernel' --launch-count 24 \
    "$bin/replay" "$out/walk.aabb" --backend cuda >"$out/ncu.txt" 2>&1 || failed=1
  rm "$out/walk.aabb"
fi
exit $failed

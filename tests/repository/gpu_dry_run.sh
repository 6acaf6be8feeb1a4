#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Runs benchmarks/gpu.sh without a GPU, at tiny sizes, with stand-ins for the tools of a machine with a GPU.
# First every part must run and succeed. Then stand-ins for our programs hang, crash or find wrong pairs.
# Each of these faults must be reported, end within its time limit, and not stop the other parts. In the
# last run the process group is killed before the end, as if the machine had died. Needs the PTX interpreter
# instead of the CUDA runtime.
# Usage: gpu_dry_run.sh ROOT FOLDER_OF_PROGRAMS
set -euo pipefail
root=$(realpath "$1") real=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch # a killed gpu.sh leaves its scratch folder there
fail() { echo "FAILED: $*"; exit 1; }
limit=60 # seconds for each program in the run with faults; a healthy program needs ten on a busy machine

# program FOLDER NAME: writes a program that runs the lines from stdin, and then our program.
program() {
  local file=$scratch/$1/$2
  mkdir -p "$scratch/$1"
  { echo '#!/usr/bin/env bash'; echo "ours=$real/$2"; cat; echo "exec \"\$ours\" \"\$@\""; } >"$file"
  chmod +x "$file"
}
# suites FOLDER NAME SUITE...: writes a test program with these suites only, because the others take minutes.
suites() {
  program "$1" "$2" <<END
if [ "\$1" = --gtest_list_tests ]; then printf '%s.\n  Case\n' ${*:3}; exit; fi
case \$* in
  *After*) echo '[  PASSED  ] 1 test.'; exit ;;
  *PlantedHang*) echo '[ RUN      ] PlantedHang.Case'; exec sleep 1000 ;;
  *PlantedCrash*) echo '[ RUN      ] PlantedCrash.Case'; kill -SEGV \$\$ ;;
esac
END
}
for folder in healthy planted gone; do
  for name in cuda_stress replay make_scene rigid_bodies worlds gpu_micro; do
    program $folder $name </dev/null
  done
  suites $folder cuda_tests CudaOrder
  suites $folder cuda_kernel_tests CudaCoexist
done
suites planted cuda_tests PlantedHang After
suites planted cuda_kernel_tests PlantedCrash After
program planted cuda_stress <<'END'
if [[ $* == *'--part device'* ]]; then set -- "$@" --spoil; fi
END
program planted replay <<'END'
case $* in
  *debris*cuda*--time-pairs*) "$ours" "$@" | sed -E '/^frame=7 /s/(hash=[0-9a-f]{15})./\1x/'; exit ;;
  *debris*auto*) exec sleep 1000 ;;
  *debris*host*--stages*) kill -SEGV $$ ;;
esac
END
program planted worlds <<'END'
if [[ $* == *cuda*--most* ]]; then "$ours" "$@" | sed '2s/.$/x/'; exit; fi
END
program planted gpu_micro <<'END'
echo 'illegal address' >&2
exit 3
END
program gone gpu_micro <<END
kill -KILL -- -\$(cat $scratch/group)
exit
END

# Stand-ins for the tools of a machine with a GPU. The sanitizer runs only replay, to save time.
mkdir "$scratch/tools"
cat >"$scratch/tools/nvidia-smi" <<'END'
#!/usr/bin/env bash
case $* in *clocks.sm*) echo 1980 ;; *) echo stand-in ;; esac
END
cat >"$scratch/tools/compute-sanitizer" <<'END'
#!/usr/bin/env bash
while [[ $1 != */* ]]; do shift; done
case $1 in */replay) exec "$@" ;; *) echo '[  PASSED  ] 1 test.' ;; esac
END
cat >"$scratch/tools/ncu" <<'END'
#!/usr/bin/env bash
if [[ $* != *--csv* ]]; then echo Duration; exit; fi
echo '"ID","Kernel Name","gpu__time_duration.sum"'
echo '"","","ns"'
echo '"3","stand-in(int)","1,234"'
END
chmod +x "$scratch"/tools/*
export PATH=$scratch/tools:$PATH

# run FOLDER [PART...]: runs gpu.sh, which writes to FOLDER/out.
run() {
  local folder=$scratch/$1 options=(--tiny)
  if [ "$1" = planted ]; then options+=(--limit $limit); fi
  shift
  "$root/benchmarks/gpu.sh" --bin "$folder" "${options[@]}" "$folder/out" "$@" 2>&1 | tee "$folder/log"
}
# whole FOLDER ROWS PART...: checks that the parts ran to their end, that ROWS rows were measured, and that
# the archive contains every file.
whole() {
  local part out=$scratch/$1/out
  for part in "${@:3}"; do
    grep -q "^=== $part took" "$scratch/$1/log" || fail "$1: $part did not run to its end"
  done
  mkdir "$scratch/$1/unpacked"
  tar -C "$scratch/$1/unpacked" -xzf "$out.tar.gz"
  diff -r "$out" "$scratch/$1/unpacked/out" || fail "$1: the archive differs from the folder"
  [ "$(grep -cE '^(CudaOrder|CudaCoexist|After): .*PASSED' "$scratch/$1/log")" -eq 2 ] ||
    fail "$1: a test program ran no tests"
  [ "$(grep -cE ',1980,1980(,[0-9.]+){3},' "$out/times.csv")" -eq "$2" ] || fail "$1: not $2 rows with clocks"
  [ "$(grep -c ',1980,1980$' "$out/worlds.csv")" -eq 4 ] || fail "$1: not 4 rows of worlds"
}

echo "--- healthy"
run healthy || fail "gpu.sh fails without a fault"
whole healthy 18 tests stress times memcheck micro ncu worlds scenes sanitize soak
[ ! -s "$scratch/healthy/out/failures.txt" ] || fail "a failure without a fault"

echo "--- planted"
parts=(tests stress times micro worlds)
if run planted "${parts[@]}"; then fail "gpu.sh succeeds in spite of faults"; fi
whole planted 10 "${parts[@]}"
wanted=(
  "tests: cut by the limit of $limit s: cuda_tests .*PlantedHang"
  'tests: crashed, SIGSEGV: cuda_kernel_tests .*PlantedCrash'
  'stress: status 1: cuda_stress .*FAILED: device: .* differ'
  "times: cut by the limit of $limit s: replay .*debris.*auto"
  'times: crashed, SIGSEGV: replay .*debris.*host'
  'times: wrong pairs: debris.cuda.update\+pairs: 1 of 12 frames, first frame=7: .*; on the host'
  'micro: status 3: gpu_micro.*illegal address'
  'worlds: wrong pairs: worlds .*--most'
)
for one in "${wanted[@]}"; do
  [ "$(grep -cE "^FAILED: $one" "$scratch/planted/out/failures.txt")" -eq 1 ] || fail "not exactly once: $one"
done
[ "$(wc -l <"$scratch/planted/out/failures.txt")" -eq ${#wanted[@]} ] || fail "failures.txt has other lines than expected"

echo "--- gone"
setsid --wait bash -c "echo \$\$ >$scratch/group; exec $root/benchmarks/gpu.sh --bin $scratch/gone --tiny \
  --scenes 100 $scratch/gone/out times micro" || true
tar -xOzf "$scratch/gone/out.tar.gz" out/times.csv | grep -c '^walk,.*,cuda,cuda,' | grep -qx 3 ||
  fail "the archive lost measurements when the machine died"
echo "each fault was named"

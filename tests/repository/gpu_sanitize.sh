#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Tests with fake programs whether benchmarks/gpu.sh counts the right reports of compute-sanitizer as
# failures. Errors that a test provokes, and uninitialized reads in CUB's kernels, must not be counted.
# Uninitialized reads in our kernels must be counted.
# Usage: gpu_sanitize.sh ROOT
set -euo pipefail
root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/tools"
for program in cuda_tests cuda_kernel_tests cuda_stress replay make_scene rigid_bodies worlds gpu_micro; do
  printf '#!/bin/sh\nexit 0\n' >"$scratch/bin/$program"
done
cat >"$scratch/bin/make_scene" <<'END'
#!/bin/sh
: >"$4"
END
# Writes a fake compute-sanitizer. The fake fails if gpu.sh lets it count errors of API calls, check CUB's kernels
# for races, or run a test that causes a sticky error. The fake reports uninitialized reads in a kernel of
# CUB and in $OURS.
cat >"$scratch/tools/compute-sanitizer" <<'END'
#!/usr/bin/env bash
echo "$*" >>"$(dirname "$0")/calls"
bad() { echo "counted: $1" >&2; exit 9; }
case $* in
  *memcheck*) [[ $* == *'--report-api-errors no'* ]] || bad 'an error of a call' ;;
  *racecheck*) [[ $* == *'--kernel-name-exclude kns=cub'* ]] || bad 'a hazard in CUB' ;;
  *initcheck*)
    for kernel in 'void cub::CUB_1::DeviceMergeSort<int>(int)' ${OURS:+"$OURS"}; do
      printf '%s\n' '========= Uninitialized __global__ memory read of size 4 bytes' \
        "=========     at $kernel+0x10"
    done ;;
esac
if [[ $* == *_tests* ]]; then
  [[ $* == *'-*Sticky*' ]] || bad 'a sticky error'
fi
END
chmod +x "$scratch"/*/*

sanitize() {
  PATH=$scratch/tools:$PATH "$root/benchmarks/gpu.sh" --bin "$scratch/bin" "$scratch/out" memcheck sanitize \
    >"$scratch/log" 2>&1
}
fail() { echo "$*"; cat "$scratch/log"; exit 1; }
sanitize || fail "sanitize fails without a fault"
[ "$(wc -l <"$scratch/tools/calls")" -eq 15 ] || fail "not every program ran under every tool"
if OURS='lbvh::packBlocksKernel(int)' sanitize; then fail "a read in our kernel did not count"; fi
grep -q '1.*lbvh::packBlocksKernel' "$scratch/log" || fail "the kernel is not named"
if grep -q 'cub::' "$scratch/log"; then fail "CUB's read was counted"; fi

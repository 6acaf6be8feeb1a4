#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Makes the CUDA calls of some steps on the PTX interpreter fail, one call in each run. The test checks
# pairs and deltas in each run.
# Usage: cuda_faults.sh CUDA_TESTS recorded|binary|unrecorded|background|device [STRIDE]
#   recorded     steps that are recorded in graphs and repeated
#   binary       the same, but with a binary tree
#   unrecorded   steps without graphs
#   background   a GPU that is tried in the background, and takes turns with the host
#   device       searches of DevicePairFinder
# With a STRIDE above 1, only every STRIDE-th call fails.
set -u
program=$1 steps=$2 stride=${3:-1}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# `never` has the calls that no step may make: calls that wait for the whole device or, without graphs, calls
# that capture a stream. More than `least` errors must be injected.
never=''
case $steps in
  recorded)
    test=Each/Cuda.StepsAreRightWhateverFails/wide least=200
    never=cudaDeviceSynchronize:1=1,cudaFree:1=1,cudaMalloc:1=1,cudaMemcpy:1=1
    rules=(
      any:%d=2             # out of memory, once
      any:%d=700:sticky    # a kernel faulted: every later call fails too
      launch:%d=719:sticky # the same, but noticed only when the host waits
      graph:%d=2
      graph:%d=901 # another thread has ended our capture
      malloc:%d=2
    )
    ;;
  binary)
    test=Each/Cuda.StepsAreRightWhateverFails/binary least=100
    never=cudaDeviceSynchronize:1=1,cudaFree:1=1,cudaMalloc:1=1,cudaMemcpy:1=1
    rules=(any:%d=2 launch:%d=719:sticky)
    ;;
  unrecorded)
    test=Each/Cuda.StepsWithoutGraphsAreRightWhateverFails/wide least=60 never=graph:1=1
    rules=(any:%d=2 launch:%d=719:sticky)
    ;;
  background)
    test=CudaAdaptive.PairsAreTheSameOnHostAndGpu least=80
    rules=(any:%d=2 launch:%d=719:sticky)
    ;;
  device)
    test=CudaDeviceFaults.SearchesAreRightWhateverFails least=150
    rules=(any:%d=2 launch:%d=719:sticky)
    ;;
  *)
    echo "cuda_faults.sh: no such steps: $steps" >&2
    exit 2
    ;;
esac

if [ "$stride" -gt 1 ]; then least=3; fi

run() { timeout 300 "$program" --gtest_filter="$test" 2>&1; }

# fail_each RULE: RULE is an injection rule with %d for the number of the call. The last line of
# output is "INJECTED WRONG", the numbers of injected errors and of wrong results.
fail_each() {
  local rule=$1 nth output status injected=0 wrong=0 missed=0 most=3
  if [ "$stride" -gt 1 ]; then most=1; fi
  # The number of calls in the background depends on timing. So the loop ends only when three runs in a row had
  # no injected error.
  for ((nth = 1; missed < most; nth += stride)); do
    # shellcheck disable=SC2059
    output=$(PTXVM_FAIL=$(printf "$rule" "$nth") run)
    status=$?
    if ! grep -q 'injected error' <<<"$output"; then
      missed=$((missed + 1))
      continue
    fi
    missed=0
    injected=$((injected + 1))
    if [ $status -ne 0 ] || ! grep -q 'PASSED.* 1 test' <<<"$output"; then
      wrong=$((wrong + 1))
      echo "FAILED with $rule at call $nth (exit $status):"
      grep -vE '^(\[|Note|Running)' <<<"$output" | head -n 12
    fi
  done
  echo "$test, $rule: $injected calls, $wrong wrong results"
  echo "$injected $wrong"
}

if [ -n "$never" ] && PTXVM_FAIL=$never run | grep 'injected error'; then
  echo "$test makes a call that it must not make"
  exit 1
fi

for i in "${!rules[@]}"; do
  fail_each "${rules[i]}" >"$results/$i" &
done
wait

head -q -n -1 "$results"/*
tail -q -n 1 "$results"/* | {
  injected=0 wrong=0
  while read -r i w; do injected=$((injected + i)) wrong=$((wrong + w)); done
  echo "$injected faults injected, $wrong of them left a wrong result"
  [ $injected -gt $least ] && [ $wrong -eq 0 ]
}

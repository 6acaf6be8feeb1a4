#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Fails every CUDA call of some steps, one after the other, on the PTX interpreter, and has the test
# check pairs and delta each time. Usage: cuda_faults.sh CUDA_TESTS
set -u
program=$1
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
recorded=Cuda.StepsAreRightWhateverFails
unrecorded=Cuda.StepsWithoutGraphsAreRightWhateverFails
background=CudaAdaptive.PairsAreTheSameWhoeverServes
device=CudaDeviceFaults.SearchesAreRightWhateverFails

run() {  # NAME OF A TEST
  timeout 60 "$program" --gtest_filter="$1" 2>&1
}

# RULE is an injection rule with %d for the number of the call. Prints "INJECTED WRONG" at last.
fail_each() {
  local test=$1 rule=$2 nth output status injected=0 wrong=0 missed=0
  # In the background as many calls are made as time allows: the end is where three in a row are not.
  for ((nth = 1; missed < 3; ++nth)); do
    # shellcheck disable=SC2059
    output=$(PTXVM_FAIL=$(printf "$rule" "$nth") run "$test")
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

# What no step may call, because it waits for the whole device; nor, without graphs, what captures.
for never in "$recorded cudaDeviceSynchronize:1=1,cudaFree:1=1,cudaMalloc:1=1,cudaMemcpy:1=1" \
  "$unrecorded graph:1=1"; do
  if PTXVM_FAIL=${never#* } run "${never% *}" | grep 'injected error'; then
    echo "${never% *} calls what it must not"
    exit 1
  fi
done

rules=(
  "$recorded any:%d=2"             # out of memory, once
  "$recorded any:%d=700:sticky"    # a kernel faulted: every later call fails too
  "$recorded launch:%d=719:sticky" # the same, noticed when somebody waits
  "$recorded graph:%d=2"
  "$recorded graph:%d=901" # another thread has ended our capture
  "$recorded malloc:%d=2"
  "$unrecorded any:%d=2"
  "$unrecorded launch:%d=719:sticky"
  "$background any:%d=2"
  "$background launch:%d=719:sticky"
  "$device any:%d=2"
  "$device launch:%d=719:sticky"
)
for i in "${!rules[@]}"; do
  # shellcheck disable=SC2086  # two words
  fail_each ${rules[i]} >"$results/$i" &
done
wait

head -q -n -1 "$results"/*
tail -q -n 1 "$results"/* | {
  injected=0 wrong=0
  while read -r i w; do injected=$((injected + i)) wrong=$((wrong + w)); done
  echo "$injected faults injected, $wrong of them left a wrong result"
  [ $injected -gt 500 ] && [ $wrong -eq 0 ]
}

#!/usr/bin/env bash
# Fails every CUDA call of three steps, one after the other, on the PTX interpreter, and has the test
# check pairs and delta each time. Usage: cuda_faults.sh CUDA_TEST
set -u
injected=0 wrong=0

# RULE is an injection rule with %d for the number of the call.
fail_each() {
  local rule=$1 nth output status
  for ((nth = 1; ; ++nth)); do
    # shellcheck disable=SC2059
    output=$(PTXVM_FAIL=$(printf "$rule" "$nth") timeout 60 "$cuda_test" \
      --gtest_filter=Cuda.StepsAreRightWhateverFails 2>&1)
    status=$?
    if ! grep -q 'injected error' <<<"$output"; then break; fi
    injected=$((injected + 1))
    if [ $status -ne 0 ] || ! grep -q 'PASSED.* 1 test' <<<"$output"; then
      wrong=$((wrong + 1))
      echo "FAILED with $rule at call $nth (exit $status):"
      grep -vE '^(\[|Note|Running)' <<<"$output" | head -n 12
    fi
  done
}

cuda_test=$1
fail_each 'any:%d=2'             # out of memory, once
fail_each 'any:%d=700:sticky'    # a kernel faulted: every later call fails too
fail_each 'launch:%d=719:sticky' # the same, noticed when somebody waits
fail_each 'malloc:%d=2'
echo "$injected faults injected, $wrong of them left a wrong result"
[ $injected -gt 100 ] && [ $wrong -eq 0 ]

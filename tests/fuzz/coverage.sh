#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Finds the lines of broadphase/ and integration/ that no fuzz target reaches. Runs each target on
# the committed inputs, on inputs that ./run fuzz found on this machine, and on 200 random inputs.
# Needs Clang and the tools of LLVM.
# Usage: coverage.sh, from any folder. Prints a table, then the lines.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build/coverage

cmake -S . -B $build -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG="-O1 -g" -D GPULBVH_CHECKED=ON \
  -D CMAKE_CXX_COMPILER=clang++ -D GPULBVH_CUDA=OFF \
  -D CMAKE_CXX_FLAGS="-fprofile-instr-generate -fcoverage-mapping" >/dev/null
targets=(finder adapter)
cmake --build $build --parallel "$(nproc)" --target "${targets[@]/#/replay_}" >/dev/null

for target in "${targets[@]}"; do
  inputs=("tests/fuzz/$target.inputs")
  if [ -d "build/fuzz/corpus/$target" ]; then inputs+=("build/fuzz/corpus/$target"); fi
  LLVM_PROFILE_FILE=$build/$target.profraw "$build/bin/replay_$target" --inputs 200 --seed 1 \
    "${inputs[@]}" 2>/dev/null
done
llvm-profdata merge -o $build/fuzz.profdata $build/*.profraw

covered=("$build/bin/replay_finder" -object "$build/bin/replay_adapter"
  -instr-profile=$build/fuzz.profdata "$PWD/broadphase" "$PWD/integration")
llvm-cov report "${covered[@]}" |
  awk '$NF ~ /%|-$/ && $1 !~ /^(Filename|-)/ {print $1, $8, "lines,", $9, "missed,", $10}' | column -t
echo
echo "lines that no input reaches:"
llvm-cov show "${covered[@]}" |
  awk '/^\/.*:$/ {file = $0; next} /^ +[0-9]+\| +0\|/ {print file $0}' | sed "s|^$PWD/||"

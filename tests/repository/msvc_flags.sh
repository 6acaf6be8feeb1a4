#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# What the project asks of MSVC reaches C++ and not nvcc, which takes /W4 for a second input file:
# nvcc compiles a kernel with the options for a build with MSVC. Usage: msvc_flags.sh ROOT CXX NVCC
set -euo pipefail
root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake -S "$root/tests/msvc_flags" -B "$scratch" -G 'Unix Makefiles' -D ROOT="$root" \
  -D CMAKE_CXX_COMPILER="$2" -D CMAKE_CUDA_COMPILER="$3" -D CMAKE_CUDA_ARCHITECTURES=75 \
  >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
cmake --build "$scratch" --target device
if ! grep -q '"command".*/W4 /WX.*host\.cpp' "$scratch/compile_commands.json"; then
  echo "C++ is compiled without /W4 /WX"
  exit 1
fi

#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Prints the registers per thread and the shared memory that ptxas reports for each of our kernels. Also
# prints how many of an SM's 64 warps these resources allow. Fails if a kernel spills or needs a stack.
# Usage: registers.sh [ARCHITECTURE]
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/cuda/bin
nvcc -std=c++20 -O3 -arch="${1:-sm_90}" -Xptxas -v -I. -c broadphase/cuda/step.cu -o /dev/null \
  -diag-suppress=20014 2>&1 | c++filt | awk '
  function down(x) { return int(x) }
  function least(a, b) { return a < b ? a : b }
  # An SM has 65,536 registers, 228 KiB of shared memory and at most 32 blocks. A warp gets registers
  # in multiples of 256, and CUDA reserves 1 KiB of shared memory per block.
  function warps(registers, shared, perBlock, blocks) {
    blocks = down(65536 / (perBlock * 256 * down((registers * 32 + 255) / 256)))
    blocks = least(least(blocks, down(228 * 1024 / (shared + 1024))), 32)
    return least(blocks * perBlock, 64)
  }
  /Compiling entry function/ {
    kernel = $0
    sub(/.*function \047/, "", kernel)
    sub(/^void /, "", kernel)
    ours = kernel ~ /^lbvh::/
    sub(/^lbvh::/, "", kernel)
    sub(/^sortTiesKernel</, "SortTies, ", kernel)
    sub(/^[a-zA-Z]*Kernel</, "", kernel)
    sub(/>?\(.*/, "", kernel)
    gsub(/lbvh::/, "", kernel)
  }
  /bytes stack frame/ && ours && !/ 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/ {
    print kernel ":" $0
    spills = 1
  }
  /Used/ && ours {
    shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
    perBlock = kernel ~ /pack(Blocks|Changed)/ ? 32 : kernel ~ /^false/ ? 8 : 4  # findBlockPairs<false>
    printf "%s: %d registers, %d bytes shared, %d warps\n", kernel, $5, shared, warps($5, shared, perBlock)
    ++kernels
  }
  END { exit spills || kernels == 0 }' | sort

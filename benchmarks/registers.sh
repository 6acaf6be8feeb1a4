#!/usr/bin/env bash
# Registers a thread of each of our kernels, as ptxas says; fails if one spills or needs a stack.
# Usage: registers.sh [ARCHITECTURE]
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/cuda/bin
nvcc -std=c++20 -O3 -arch="${1:-sm_90}" -Xptxas -v -I. -c broadphase/pipelines/cuda.cu -o /dev/null \
  -diag-suppress=20014 2>&1 | c++filt | awk '
  /Compiling entry function/ {
    kernel = $0
    sub(/.*void /, "", kernel)
    ours = kernel ~ /^lbvh::/
    sub(/^lbvh::[a-zA-Z]*Kernel</, "", kernel)
    sub(/>\(.*/, "", kernel)
    gsub(/lbvh::/, "", kernel)
  }
  /bytes stack frame/ && ours && !/ 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/ {
    print kernel ":" $0
    spills = 1
  }
  /Used/ && ours { print kernel ": " $5; ++kernels }
  END { exit spills || kernels == 0 }' | sort

#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Each C++ block of the README stands in samples/hello.cpp, line for line and in the README's order.
# hello.cpp is compiled and run by other tests. Usage: readme_snippet.sh ROOT
set -euo pipefail
newline=$'\n'
rest=$newline$(<"$1/samples/hello.cpp")$newline
mapfile -t -d $'\034' blocks < <(awk '/^```cpp$/ { inside = 1; next }
                              /^```$/ && inside { printf "\034"; inside = 0 }
                              inside' "$1/README.md")
[ ${#blocks[@]} -ge 1 ] || { echo "FAILED: README.md has no C++ block"; exit 1; }
for block in "${blocks[@]}"; do
  if [[ $rest != *"$newline$block"* ]]; then
    echo "FAILED: not in samples/hello.cpp, or not in this order:$newline$block"
    exit 1
  fi
  rest=$newline${rest#*"$newline$block"}
done
[[ ${blocks[*]} == *"GpuLbvhBroadphase broadphase;  // was: "* ]] ||
  { echo "FAILED: the README does not show the line to change"; exit 1; }

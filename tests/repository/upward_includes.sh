#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# The project's floors: no file includes one of a higher floor, or of another room on its own floor.
# Usage: upward_includes.sh ROOT
set -euo pipefail
cd "$1"
find broadphase integration samples viewer benchmarks -type f \
  \( -name '*.h' -o -name '*.inl' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) | sort |
  xargs awk '
  # Rooms from the ground up: a floor, and how the paths in the room begin. The first that fits counts.
  BEGIN {
    n = split("1 broadphase/core/,2 broadphase/lbvh/,2.1 broadphase/host/parallel/,2.2 broadphase/host/simd/," \
              "2.15 broadphase/host/block_tree,2.3 broadphase/host/verlet/,3 broadphase/host/,2.1 broadphase/cuda/runtime/," \
              "2.3 broadphase/cuda/kernels/,3 broadphase/cuda/,4 broadphase/choose/," \
              "5 broadphase/pair_finder,5.5 broadphase/device_pair_finder,0 broadphase/," \
              "6 integration/,7 samples/support/,8 samples/scenes/,8 samples/worlds/,9 samples/report/,10 samples/," \
              "10 viewer/,10 benchmarks/", rooms, ",")
    for (i = 1; i <= n; ++i) { split(rooms[i], words, " "); floor[i] = words[1]; prefix[i] = words[2] }
    for (i = 1; i < ARGC; ++i) {
      isFile[ARGV[i]] = 1
      base = ARGV[i]; sub(/.*\//, "", base); named[base] = ARGV[i]
    }
  }
  function roomOf(path, i) {
    for (i = 1; i <= n; ++i) if (index(path, prefix[i]) == 1) return i
    return 0
  }
  # Beside the file, from the root, from samples/, or the one file of that name.
  function resolve(name, from, folder, base) {
    folder = from; sub(/[^\/]*$/, "", folder)
    if ((folder name) in isFile) return folder name
    if (name in isFile) return name
    if (("samples/" name) in isFile) return "samples/" name
    base = name; sub(/.*\//, "", base)
    return base in named ? named[base] : ""
  }
  match($0, /^ *# *include *"[^"]+"/) {
    name = substr($0, RSTART, RLENGTH); sub(/^[^"]*"/, "", name); sub(/"$/, "", name)
    to = resolve(name, FILENAME)
    if (to == "") next
    ++count
    a = roomOf(FILENAME); b = roomOf(to)
    if (a != b && floor[b] >= floor[a]) {
      printf "%s:%d: includes %s, which is not below it\n", FILENAME, FNR, to
      bad = 1
    }
  }
  END {
    if (count < 200) { print "only " count " includes were found"; bad = 1 }
    if (!bad) print count " includes, none upward"
    exit bad
  }'

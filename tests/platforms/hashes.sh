#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Makes scenes and finds their pairs with each of the processor's instruction sets. Compares the hashes of
# scenes and pairs with the hashes from x86-64 in hashes.txt, and prints the result.
# Usage: hashes.sh FOLDER_OF_PROGRAMS [EMULATOR...]    or, to rewrite hashes.txt: hashes.sh --write FOLDER
set -euo pipefail
expected=$(cd "$(dirname "$0")" && pwd)/hashes.txt
write=false
if [ "$1" = --write ]; then write=true && shift; fi
bin=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
suffix=""
if [ -f "$bin/replay.exe" ]; then suffix=.exe; fi

# Prints for each scene its name, and the hashes of its boxes and of their pairs.
hashes() {
  local kind simd pairs all
  for kind in walk city clusters fall groups sizes; do
    "$@" "$bin/make_scene$suffix" $kind 3000 6 "$scratch/scene.aabb" >/dev/null
    all=""
    for simd in avx512 avx2 neon baseline; do  # an unavailable set becomes the baseline
      pairs=$(GPULBVH_SIMD=$simd "$@" "$bin/replay$suffix" "$scratch/scene.aabb" --backend host |
        sed -nE 's/^frame=5 .* hash=([0-9a-f]+).*/\1/p')
      case " $all " in *" $pairs "*) ;; *) all+=" $pairs" ;; esac
    done
    echo "$kind $(sha256sum <"$scratch/scene.aabb" | cut -c1-16)$all"
  done
}
hashes "$@" >"$scratch/found"
if $write; then
  cp "$scratch/found" "$expected"
elif cmp -s "$scratch/found" "$expected"; then
  echo "hashes: all $(wc -l <"$expected") scenes and their pairs are as on x86-64"
else
  echo "hashes: these differ from x86-64:"
  diff "$expected" "$scratch/found"
fi

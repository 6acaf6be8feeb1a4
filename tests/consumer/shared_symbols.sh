#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# What the shared libraries in a folder show: of the public classes and functions, and nothing else.
# Usage: shared_symbols.sh FOLDER
set -euo pipefail
cd "$1"
public='^(vtable for |typeinfo for |typeinfo name for )?(lbvh::(PairFinder|DevicePairFinder|RayTest)|GpuLbvhBroadphase)(::|$)'
public+='|^(lbvh::)?(whyUnavailable(\[abi:cxx11\])?|version|nodesAtLevel|aabbTestBatch|rayTestBatch|migrateBroadphase)\('
public+='|^((vtable|typeinfo|typeinfo name) for )?std::'  # of the compiler's library, which are never hidden
failures=0
for library in libgpulbvh_broadphase libgpulbvh_bullet; do
  name=$library.so
  # By its version: the link, the link that programs are told of, and the file.
  soname=$(objdump -p "$name" | awk '$1 == "SONAME" { print $2 }')
  [[ $soname =~ ^$library\.so\.[0-9]+\.[0-9]+$ && -L $soname && -L $name ]] ||
    { echo "FAILED: $name: its name is '$soname'"; failures=1; }
  shown=$(nm -D -C --defined-only "$name" | cut -d' ' -f3-)
  count=$(wc -l <<<"$shown")
  inside=$(grep -vE "$public" <<<"$shown" || true)
  echo "$name: $count symbols"
  if [ -n "$inside" ]; then echo "FAILED: these are not public:" && head -n 20 <<<"$inside"; failures=1; fi
  [ "$count" -ge 2 ] || { echo "FAILED: too few"; failures=1; }
done
exit $failures

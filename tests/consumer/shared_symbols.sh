#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Checks that the shared libraries in a folder export the public classes and functions, and nothing else.
# Usage: shared_symbols.sh FOLDER
set -euo pipefail
cd "$1"
public='^(vtable for |typeinfo for |typeinfo name for )?(lbvh::(PairFinder|DevicePairFinder|BoxTree|RayTest)|GpuLbvhBroadphase)(::|$)'
public+='|^(lbvh::)?(whyUnavailable(\[abi:cxx11\])?|version|nodesAtLevel|aabbTestBatch|rayTestBatch|migrateBroadphase)\('
public+='|^((vtable|typeinfo|typeinfo name) for )?std::'  # the standard library's symbols are never hidden
failures=0
for library in libgpulbvh_broadphase libgpulbvh_bullet; do
  name=$library.so
  # Both the name without a version and the SONAME, which has a version, must be symbolic links.
  soname=$(objdump -p "$name" | awk '$1 == "SONAME" { print $2 }')
  [[ $soname =~ ^$library\.so\.[0-9]+\.[0-9]+$ && -L $soname && -L $name ]] ||
    { echo "FAILED: $name: the SONAME '$soname' is not a link like $name.0.3"; failures=1; }
  shown=$(nm -D -C --defined-only "$name" | cut -d' ' -f3-)
  count=$(wc -l <<<"$shown")
  inside=$( (grep -vE "$public" <<<"$shown"; grep -E '^[^<]*::Impl::' <<<"$shown") || true)
  echo "$name: $count symbols"
  if [ -n "$inside" ]; then echo "FAILED: these are not public:" && head -n 20 <<<"$inside"; failures=1; fi
  [ "$count" -ge 2 ] || { echo "FAILED: $name exports only $count symbols"; failures=1; }
done
exit $failures

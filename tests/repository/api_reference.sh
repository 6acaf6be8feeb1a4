#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Makes the API reference: Doxygen has nothing to warn of, it tells of every public header and of
# nothing else, and no link in it is dead. Exits with 77 (skipped) where there is no Doxygen.
# Usage: api_reference.sh ROOT VERSION HEADER...
set -euo pipefail
if ! command -v doxygen >/dev/null; then echo "skipped: no doxygen"; exit 77; fi
cd "$1"
version=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
pages="$scratch/a reference/html"
mkdir "$scratch/a reference"
VERSION=$version OUTPUT="$scratch/a reference" HEADERS="$*" doxygen docs/Doxyfile ||
  { echo "FAILED: Doxygen warned, see above"; exit 1; }

failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
# has PAGE TEXT    PAGE may be a pattern
# shellcheck disable=SC2086  # for the pattern
has() { grep -qsF -- "$2" "$pages"/$1 || fail "$1 does not have: $2"; }
has index.html "$version"
has md_docs_*integration.html "One line"  # with the snippets that docs_snippets.sh compiles
has classlbvh_1_1PairFinder.html "updateUnchanged"
has classGpuLbvhBroadphase.html "calculateOverlappingPairs"
has migrateBroadphase_8h.html "ghostCallback"  # a function, which is not there if its file is not
has namespacelbvh.html "rayTestBatch"

told=$(grep -oE '[A-Za-z_]+\.h</a>' "$pages/files.html" | sed 's/<.*//' | sort -u)
public=$(printf '%s\n' "${@##*/}" | sort -u)
[ "$told" = "$public" ] || fail "headers: it tells of $(xargs <<<"$told"), and should of $(xargs <<<"$public")"

cd "$pages"
links=$(grep -ohE '(href|src)="[^"#]+' ./*.html | sed 's/^[^"]*"//' | grep -vE '^(https?|javascript):' |
  sort -u)
[ "$(wc -l <<<"$links")" -ge 80 ] || fail "too few links were found"
while IFS= read -r link; do
  [ -e "$link" ] || fail "a dead link to $link in" "$(grep -lF "\"$link" ./*.html | head -n 3)"
done <<<"$links"
echo "$(wc -l <<<"$links") links, $failures failures"
exit $((failures > 0))

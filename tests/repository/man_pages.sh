#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Makes the programs' manual pages: each names its program, its version, what it is for and every
# option, and groff has nothing to warn of. Exits with 77 (skipped) where a tool is missing.
# Usage: man_pages.sh ROOT FOLDER_OF_PROGRAMS VERSION PROGRAM...
set -euo pipefail
for tool in help2man groff; do
  if ! command -v $tool >/dev/null; then echo "skipped: no $tool"; exit 77; fi
done
root=$1 bin=$2 version=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

failures=0
for program in "$@"; do
  page=$scratch/$program.1
  fail() { echo "FAILED: $program: $*"; failures=$((failures + 1)); }
  "$root/cmake/man_page.sh" "$bin/$program" "$page"
  groff -man -ww -Tascii -P-cbu "$page" >"$scratch/text" 2>"$scratch/warnings"
  [ ! -s "$scratch/warnings" ] || fail "groff warns: $(cat "$scratch/warnings")"
  help=$("$bin/$program" --help)
  read -r first second _ <<<"${help,}"
  # has PATTERN
  has() { grep -qE -- "$1" "$scratch/text" || fail "its page does not have: $1"; }
  has "^${program^^}\\(1\\) "
  has "^ +$program +- +$first +$second"
  has "^ +$program .*OPTIONS"
  has "^GpuLbvhBroadphase ${version//./\\.} "
  # Line ends and hyphens are groff's, so options are looked for in what it read.
  sed 's/\\-/-/g' "$page" >"$scratch/source"
  options=$(grep <<<"$help" -oE '^ +(-[a-z],)?--[a-z-]+' | grep -oE '\-\-[a-z-]+')
  [ "$(wc -l <<<"$options")" -ge 4 ] || fail "too few options: $options"
  for option in $options; do
    grep -qE -- "$option([^a-z-]|$)" "$scratch/source" || fail "its page does not have $option"
  done
done
exit $((failures > 0))

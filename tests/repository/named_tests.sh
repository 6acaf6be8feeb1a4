#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Every test that docs/contract.md names exists. Usage: named_tests.sh SOURCE_FOLDER
set -u
cd "$1" || exit 1
failures=0
names=$(grep -oE '`[A-Z][A-Za-z]+\.[A-Z][A-Za-z]+`' docs/contract.md | tr -d '`' | sort -u)
for name in $names; do
  grep -qE "^TEST(_F|_P)?\\(${name%.*}, ${name#*.}\\)" tests/*/*.cpp || {
    echo "FAILED: there is no test $name"
    failures=1
  }
done
[ "$(wc -w <<<"$names")" -ge 20 ] || { echo "FAILED: no names found"; failures=1; }
exit $failures

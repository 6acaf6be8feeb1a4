#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Rewrites the rows of docs/platforms.md with the results of run.sh, which must have run for every system.
# Usage: table.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
rows=""
for name in aarch64 i386 mingw debian13 ubuntu24 libcxx libcxx14; do
  row=build/platforms/$name/row.md
  [ -f $row ] || { echo "table: no row of $name: run tests/platforms/run.sh $name"; exit 1; }
  rows+=$(cat $row)$'\n'
done
table=$(awk -v rows="$rows" '
  /^\| system \| compiler / { print; getline; print; printf "%s", rows; within = 1; next }
  within && /^\|/ { next }
  { within = 0; print }' docs/platforms.md)
echo "$table" >docs/platforms.md

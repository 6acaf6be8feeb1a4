#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Makes the pictures again by the commands in docs/viewer.md; needs pngquant to make them small.
set -euo pipefail
cd "$(dirname "$0")/../.."
grep -E '^build/release/bin/(many_worlds|viewer .*--screenshot) ' docs/viewer.md | while read -r command; do
  echo "$command"
  bash -c "$command" </dev/null
  picture=$(sed -nE 's/.*--screenshot ([^ ]+).*/\1/p' <<<"$command")
  if [ -z "$picture" ]; then continue; fi
  pngquant --force --speed 1 --nofs --output "docs/pictures/$picture" 200 "$picture"
  rm "$picture"
done
rm worlds.aabb

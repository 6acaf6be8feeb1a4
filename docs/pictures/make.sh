#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Makes the PNG files of this folder. The viewer's pictures come from the commands in docs/viewer.md, and comparison.png
# is a screenshot of a report. Needs Chromium, and pngquant to shrink the files.
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

build/release/bin/rigid_bodies --threads 1 --compare gpu-lbvh,dbvt --report comparison.html
chromium --headless --no-sandbox --hide-scrollbars --window-size=1100,1190 --screenshot=comparison.png \
  "file://$PWD/comparison.html"
pngquant --force --speed 1 --nofs --output docs/pictures/comparison.png 64 comparison.png
rm comparison.html comparison.png

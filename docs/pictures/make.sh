#!/usr/bin/env bash
# Makes the pictures again by the commands in docs/viewer.md; needs pngquant to make them small.
set -euo pipefail
cd "$(dirname "$0")/../.."
grep -E '^\./run viewer .*--screenshot docs/pictures/' docs/viewer.md | while read -r command; do
  echo "$command"
  bash -c "$command" </dev/null
done
pngquant --force --ext .png --speed 1 --nofs 128 docs/pictures/*.png

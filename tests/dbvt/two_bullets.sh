#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Loads two plugins in one process, each with its own Bullet. Both Bullets have the same precision. The Bullet
# that makes a broad phase first must use ours. The other Bullet must use its own, and one message must say so.
# The second Bullet is a copy of the first under another name.
# Usage: two_bullets.sh LIBRARY PLUGIN_HOST PLUGIN
set -euo pipefail
library=$1 host=$2 plugin=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bullet=$(ldd "$plugin" | awk '/libBulletCollision/ { print $3 }')
name=$(basename "$bullet")
other=libBulletTheSecond${name#libBulletCollision}  # as long as $name, which it replaces in binaries
[ ${#other} = ${#name} ] || { echo "FAILED: $name"; exit 1; }
sed "s/$name/$other/g" "$bullet" >"$scratch/$other"
sed "s/$name/$other/g" "$plugin" >"$scratch/plugin.so"
export LD_LIBRARY_PATH=$scratch
failures=0
for order in "$plugin $scratch/plugin.so $other" "$scratch/plugin.so $plugin $name"; do
  read -r first second stays <<<"$order"
  LD_PRELOAD=$library "$host" ours "$first" bullets "$second" >"$scratch/said" 2>&1 || failures=1
  said=$(grep '^gpulbvh:' "$scratch/said" || true)
  wanted="^gpulbvh: the broad phase stays Bullet's own (.*${stays}[^ ]*): another Bullet of the same precision already uses GpuLbvhBroadphase\$"
  if ! grep -q "$wanted" <<<"$said" || [ "$(wc -l <<<"$said")" != 1 ]; then failures=1; fi
  if [ $failures != 0 ]; then echo "FAILED: $order:" && cat "$scratch/said"; fi
done
exit $failures

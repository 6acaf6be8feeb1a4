#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Tests what libgpulbvh_dbvt.so needs, exports and prints. It must have no effect on a process without a
# broad phase.
# Usage: preload.sh LIBRARY EVERY_WAY
set -euo pipefail
library=$1 every_way=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=1; }
# has TEXT PATTERN: a failure if PATTERN is not in the text.
has() { grep -q -e "$2" <<<"$1" || fail "no '$2' in: $1"; }
preloaded() { LD_PRELOAD=$library "$@"; }

needed=$(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^(libc|libdl|libpthread|ld-linux.*)\.so' || true)
[ -z "$needed" ] || fail "it needs $needed"
for file in "$(dirname "$library")"/*.so; do
  shown=$(nm -D -C --defined-only "$file" | cut -d' ' -f3-)
  inside=$(grep -vE '^(btDbvtBroadphase::|_exit$|_Exit$|gpulbvh_dbvt_implementation$)' <<<"$shown" || true)
  [ -z "$inside" ] || fail "$file exports $inside"
done

said=$(preloaded sh -c 'cat /proc/self/maps' 2>&1)
has "$said" libgpulbvh_dbvt
! grep -E 'libgpulbvh_dbvt-|stdc\+\+|tbb|Bullet|^gpulbvh' <<<"$said" || fail "a shell loaded or printed these"

said=$(preloaded "$every_way" ours 2>/dev/null)
has "$said" 'GpuLbvhBroadphase on host'
said=$(GPULBVH_THREADS=1 preloaded "$every_way" ours 2>/dev/null)
has "$said" '1 thread '
for wrong in THREADS=many BACKEND=gpu MARGIN=-1; do
  said=$(env "GPULBVH_$wrong" LD_PRELOAD="$library" "$every_way" ours 2>&1 >/dev/null)
  has "$said" "gpulbvh: GPULBVH_${wrong%=*} is '${wrong#*=}', which is not .*; it is not used"
done

# Without an implementation all broad phases are Bullet's, and one message says so.
cp "$library" "$scratch/"
said=$(LD_PRELOAD=$scratch/$(basename "$library") "$every_way" bullets 2>&1 >/dev/null)
has "$said" "^gpulbvh: the broad phase stays Bullet's own (.*): .*libgpulbvh_dbvt-.*No such file"
[ "$(grep -c '^gpulbvh:' <<<"$said")" = 1 ] || fail "more than one message: $said"

# The library reads Bullet's version from the file's name, so copies with other names count as other versions.
bullet=$(ldd "$every_way" | awk '/libBulletCollision/ { print $3 }')
for version in 2.88 3.25; do cp "$bullet" "$scratch/libBulletCollision.so.$version"; done
said=$(LD_PRELOAD=$library:$scratch/libBulletCollision.so.2.88 "$every_way" bullets 2>&1 >/dev/null)
has "$said" "^gpulbvh: the broad phase stays Bullet's own (.*/libBulletCollision.so.2.88): its version is not 3.24 to 3.27$"
said=$(LD_PRELOAD=$library:$scratch/libBulletCollision.so.3.25 "$every_way" ours 2>&1 >/dev/null)
! grep '^gpulbvh' <<<"$said" || fail "3.25 was refused"
exit $failures

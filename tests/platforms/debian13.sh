#!/usr/bin/env bash
# Runs ./run test of a clone of this checkout in a root with Debian 13, which it makes first: as root,
# and with what ./run itself installs there. Usage: debian13.sh FOLDER
set -euo pipefail
mkdir -p "$1"
root=$(cd "$1" && pwd)/root
if ! command -v debootstrap >/dev/null; then
  apt-get update -qq
  env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
fi
# This machine's mirror.
uri=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
  sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *(http[^ ]+).*/\3/p' | head -n 1)
if [ ! -f "$root/made" ]; then
  rm -rf "$root"
  debootstrap --variant=minbase trixie "$root" "$uri" >"$root.log" 2>&1 || { tail "$root.log"; exit 1; }
  touch "$root/made"
fi
unmount() {
  local folder
  for folder in dev/shm dev proc; do umount "$root/$folder" 2>/dev/null || true; done
}
trap unmount EXIT
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
if [ ! -d "$root/src" ]; then git clone -q . "$root/src"; else git -C "$root/src" pull -q; fi
chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
  sh -c 'apt-get update -qq; apt-get install -y -qq --no-install-recommends git ca-certificates >/dev/null
         cd /src && ./run test --timeout 600'

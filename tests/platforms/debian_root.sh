# SPDX-License-Identifier: Zlib
# shellcheck shell=bash
# To be sourced. Installs Debian and Ubuntu releases in folders, so that projects can be built there. Needs
# root.

# debian_root SUITE FOLDER: installs a minimal release in FOLDER.
debian_root() {
  local options=(--variant=minbase) mirror=()
  if [ -f "$2/complete" ]; then return; fi
  if [ "$1" = noble ]; then
    # Debian has no package with Ubuntu's keys, so TLS replaces signatures. debootstrap's script for
    # Ubuntu is called `gutsy`.
    options+=("--components=main,universe" --no-check-gpg)
    mirror=(https://archive.ubuntu.com/ubuntu gutsy)
  fi
  rm -rf "$2"
  mkdir -p "$2"
  timeout "${DOWNLOAD_SECONDS:-0}" debootstrap --download-only "${options[@]}" "$1" "$2" "${mirror[@]}" >"$2.log" ||
    not_reachable || return
  debootstrap "${options[@]}" "$1" "$2" "${mirror[@]}" >"$2.log" || { tail "$2.log"; return 1; }
  sed -i s,https:,http:, "$2/etc/apt/sources.list"  # the release itself can check signatures
  touch "$2/complete"
}

# in_root FOLDER COMMAND...: runs COMMAND as root in FOLDER. The command's mounts are private and
# end with it.
in_root() {
  local root=$1
  shift
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  # shellcheck disable=SC2016  # for the inner shell
  unshare --mount env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LANG=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive sh -c '
      mount -t proc proc "$0/proc" && mkdir -p "$0/dev/shm" && mount -t tmpfs shm "$0/dev/shm" &&
      exec chroot "$0" "$@"' "$root" "$@"
}

# install_in_root FOLDER PACKAGE...
install_in_root() {
  local root=$1
  shift
  in_root "$root" apt-get update -qq
  in_root "$root" apt-get install -y -qq --no-install-recommends "$@" >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log"; return 1; }
}

# shellcheck shell=bash
# SPDX-License-Identifier: Zlib
# Sourced by ./run, .ci/parts.sh and tests/platforms/run.sh.

debian_has() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }

# install_debian WHO PACKAGE...: installs the packages that are missing. Messages begin with WHO.
install_debian() {
  local who=$1 package missing=() sudo=()
  shift
  for package in "$@"; do
    debian_has "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then return; fi
  echo "$who: installing ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "$who: this needs root, and there is no sudo; run as root: apt-get install ${missing[*]}" >&2
      return 1
    fi
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# shellcheck shell=bash
# SPDX-License-Identifier: Zlib
# Sourced by ./run, .ci/parts.sh and tests/platforms/run.sh.

debian_has() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }

# If DOWNLOAD_SECONDS is set, as in CI, a download that fails or takes longer than that ends with status 77
# (skipped).
not_reachable() {
  if [ -z "${DOWNLOAD_SECONDS:-}" ]; then return 1; fi
  echo "the packages could not be downloaded"
  return 77
}

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
  local install=(apt-get install -y -qq --no-install-recommends)
  # Only the download has a limit, because an installation must not be interrupted.
  # shellcheck disable=SC2016  # the inner shell expands "$@"
  "${sudo[@]}" timeout "${DOWNLOAD_SECONDS:-0}" sh -c 'apt-get update -qq && "$@" >/dev/null' sh \
    "${install[@]}" --download-only "${missing[@]}" || not_reachable || return
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" "${missing[@]}" >/dev/null
}

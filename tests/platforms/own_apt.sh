# SPDX-License-Identifier: Zlib
# shellcheck shell=bash
# To be sourced. own_apt FOLDER ARCHITECTURE makes later calls of apt-get work in FOLDER. They use
# this machine's package sources, choose packages for ARCHITECTURE, and assume that no package is installed.
own_apt() {
  local apt=$1
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/sources"
  : >"$apt/state/status"
  # This machine's sources, for packages and for source packages.
  : >"$apt/sources.list"
  if [ -f /etc/apt/sources.list ]; then
    sed 'p; s/^deb /deb-src /' /etc/apt/sources.list >"$apt/sources.list"
  fi
  local file
  for file in /etc/apt/sources.list.d/*.sources; do
    if [ ! -f "$file" ]; then continue; fi
    sed 's/^Types:.*/Types: deb deb-src/' "$file" >"$apt/sources/$(basename "$file")"
  done
  cat >"$apt/conf" <<EOT
APT::Architecture "$2";
APT::Architectures { "$2"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Dir::State "$apt/state";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "$apt/sources";
EOT
  export APT_CONFIG=$apt/conf DEBIAN_FRONTEND=noninteractive
  # An incomplete list is no reason to stop. If a package is missing from it, a later call to apt-get fails.
  timeout "${DOWNLOAD_SECONDS:-0}" apt-get update -qq || echo "own_apt: some lists of packages could not be downloaded"
}

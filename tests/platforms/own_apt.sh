# SPDX-License-Identifier: Zlib
# shellcheck shell=bash
# Sourced. own_apt FOLDER ARCHITECTURE: from now on apt-get works in this folder, with this machine's
# sources but for another architecture, and knows no installed package.
own_apt() {
  local apt=$1
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/sources"
  : >"$apt/state/status"
  # The same places, for packages and for their sources.
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
  # One list that a mirror has not whole is no reason to stop: what is missing then, apt-get names.
  apt-get update -qq || echo "own_apt: not all lists of packages could be had"
}

#!/usr/bin/env bash
# Unpacks packages of this machine's Debian for another architecture, and what they depend on, into a
# folder, for a cross-compiler and an emulator. Installs nothing here.
# Usage: sysroot.sh ARCHITECTURE FOLDER PACKAGE...
#   sysroot.sh arm64 build/arm64/root libc6-dev libtbb-dev
set -euo pipefail
architecture=$1 root=$2
shift 2
mkdir -p "$root"
root=$(cd "$root" && pwd)
done=$root/packages
if [ -f "$done" ] && [ "$(cat "$done")" = "$*" ]; then exit; fi

# An apt of its own that knows no installed package, so that all are fetched.
apt=$root/apt
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
: >"$apt/state/status"
cat >"$apt/conf" <<EOT
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Dir::State "$apt/state";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
EOT
export APT_CONFIG=$apt/conf DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --download-only "$@" >/dev/null
for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
rm -r "$apt"
echo "$*" >"$done"

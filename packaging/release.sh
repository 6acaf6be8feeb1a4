#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# The checklist of a release. Checks every point, prints whether it holds, and exits with 1 if one does
# not. Publishes nothing: it ends with a list of what is left to do by hand. Needs abidiff, and what pack.sh
# needs for Debian packages: `file`, dpkg-dev, and the maintainer in DEBFULLNAME and DEBEMAIL.
# Usage: release.sh VERSION [--no-ci]    --no-ci leaves out .ci/all, which takes hours
set -uo pipefail
cd "$(dirname "$0")/.." || exit
version=${1:-}
if ! [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || [[ $# -gt 1 && $2 != --no-ci ]]; then
  sed -n '3,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
fi
date=$(sed -nE "s/^## $version, (20.*)/\1/p" CHANGELOG.md)
failures=0

# point SENTENCE COMMAND...
point() {
  local sentence=$1
  shift
  if "$@" >build/release.log 2>&1; then
    echo "ok      $sentence"
  else
    echo "FAILED  $sentence"
    tail -n 15 build/release.log | sed 's/^/        | /'
    failures=$((failures + 1))
  fi
}
has() { grep -qE -- "$2" "$1" || { echo "$1 has no line like: $2"; return 1; }; }
is_clean() {
  local changes
  changes=$(git status --short) || return 1
  echo "$changes"
  [ -z "$changes" ]
}
all_parts_ran() {
  .ci/all && ! grep ', skipped: ' build/release.log
}
table_is_current() { tests/platforms/table.sh && git diff --exit-code docs/platforms.md; }
is_new() { ! cut -d' ' -f1 packaging/releases.txt | grep -qxF "$version"; }

mkdir -p build
point "the work tree is clean" is_clean
point "no release has this version" is_new
point "CMakeLists.txt has the version" has CMakeLists.txt "^project\(GpuLbvhBroadphase VERSION $version "
point "the changelog has the version, with a date" has CHANGELOG.md "^## $version, 20[0-9]{2}-[0-9]{2}-[0-9]{2}$"
point "CITATION.cff has the version" has CITATION.cff "^version: $version$"
point "CITATION.cff has the changelog's date" has CITATION.cff "^date-released: ${date:-missing}$"
point "the README has the version and the changelog's date" has README.md \
  "^- \*\*State\.\*\* This is version $version of ${date:-missing}\."
point "the vcpkg port has the version" has packaging/vcpkg/gpu-lbvh-broadphase/vcpkg.json "\"version(-semver)?\": \"$version\""
point "the ABI is compatible, or the SONAME is new" tests/repository/abi.sh build/abi
if [ $# -gt 1 ]; then
  echo "LEFT OUT .ci/all: run it before the release"
else
  point ".ci/all passes, and every part could run" all_parts_ran
  point "docs/platforms.md has the platforms' results" table_is_current
fi
rm -rf build/packages && mkdir build/packages
point "the packages can be made" packaging/pack.sh deb archive
point "the sources can be packed" git archive --prefix="GpuLbvhBroadphase-$version/" \
  --output="build/packages/GpuLbvhBroadphase-$version.tar.gz" HEAD
if [ $failures -gt 0 ]; then
  echo "release: points that do not hold: $failures"
  exit 1
fi

commit=$(git rev-parse HEAD)
(cd build/packages && sha256sum ./*)
cat <<EOF
release: what is left to do by hand:
  git tag -a v$version -m "Version $version" $commit && git push origin v$version
  publish build/packages with the changelog's section
  echo "$version $commit" >>packaging/releases.txt    and commit it; the next ABI is compared with this one
  for a registry, give the vcpkg port and the Conan recipe the address and hash of the source archive
  if there is a GPU, run benchmarks/gpu.sh and describe its figures under benchmarks/results/
EOF

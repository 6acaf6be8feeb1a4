#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Compares the shared libraries' ABI with that of the last release (packaging/releases.txt). If the SONAME is the same,
# nothing may be removed or changed, but symbols may be added. If the SONAME differs, changes are only printed.
# Compares only types of the public headers. Does not detect changes in inline functions.
# Usage: abi.sh FOLDER     FOLDER is for temporary files
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
cores=$(getconf _NPROCESSORS_ONLN)
read -r version commit < <(tail -n 1 packaging/releases.txt)
if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
  echo "abi: cannot compare: the commit of version $version is not in this clone"
  exit 77
fi
if ! command -v abidiff >/dev/null; then
  echo "abi: abidiff is not installed (Debian: apt-get install abigail-tools)"
  exit 1
fi

# libraries SOURCE NAME: builds the libraries and installs them in FOLDER/NAME.
libraries() {
  cmake -S "$1" -B "$folder/$2.build" -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG="-O0 -g" -D BUILD_SHARED_LIBS=ON \
    -D GPULBVH_CUDA=OFF -D GPULBVH_SAMPLES=OFF -D GPULBVH_TESTS=OFF \
    -D CMAKE_INSTALL_PREFIX="$folder/$2" -D CMAKE_INSTALL_LIBDIR=lib >"$folder/$2.log"
  cmake --build "$folder/$2.build" --parallel "$cores" --target install >>"$folder/$2.log"
}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
rm -rf "$folder/source" "$folder/old" "$folder/old.build" "$folder/new"
mkdir "$folder/source"
git archive "$commit" | tar -x -C "$folder/source"
libraries "$folder/source" old
libraries . new

soname() { objdump -p "$1" | awk '$1 == "SONAME" { print $2 }'; }
status=0
for library in broadphase bullet; do
  file=lib/libgpulbvh_$library.so
  old=$folder/old new=$folder/new
  said=$folder/$library.txt differs=0
  abidiff --no-added-syms --headers-dir1 "$old/include" --headers-dir2 "$new/include" \
    "$old/$file" "$new/$file" >"$said" || differs=$?
  if [ $((differs & 3)) -ne 0 ]; then  # abidiff could not compare
    cat "$said"
    exit 1
  elif [ $differs -eq 0 ]; then
    echo "abi: $(soname "$new/$file") works with programs that were linked with version $version"
  elif [ "$(soname "$old/$file")" != "$(soname "$new/$file")" ]; then
    cat "$said"
    echo "abi: $(soname "$new/$file") differs from $(soname "$old/$file") of version $version, as another SONAME allows"
  else
    cat "$said"
    echo "abi: $(soname "$new/$file") is incompatible with version $version, but has the same SONAME"
    status=1
  fi
done
exit $status

#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Compares the shared libraries' ABI with that of the last release (packaging/releases.txt). While both
# have the same SONAME, what was there must be there unchanged, and more may be added; with another
# one the differences are listed. Of types it looks at those of the public headers. It does not see
# what inline functions of these do.
# Usage: abi.sh FOLDER, to work in
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
cores=$(getconf _NPROCESSORS_ONLN)
read -r version commit < <(tail -n 1 packaging/releases.txt)
if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
  echo "abi: cannot compare: the commit of version $version is not in this clone"
  exit 77
fi

# libraries SOURCE NAME: builds them and installs them in FOLDER/NAME.
libraries() {
  cmake -S "$1" -B "$folder/$2.build" -D CMAKE_BUILD_TYPE=Debug -D BUILD_SHARED_LIBS=ON \
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
  if [ $((differs & 3)) -ne 0 ]; then  # it could not compare
    cat "$said"
    exit 1
  elif [ $differs -eq 0 ]; then
    echo "abi: $(soname "$new/$file") fits what was linked with version $version"
  elif [ "$(soname "$old/$file")" != "$(soname "$new/$file")" ]; then
    cat "$said"
    echo "abi: $(soname "$new/$file") differs from $(soname "$old/$file") of version $version, as it may"
  else
    cat "$said"
    echo "abi: $(soname "$new/$file") is not what version $version had under this name"
    status=1
  fi
done
exit $status

#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Makes a folder, and FOLDER.tar.gz of it, that runs on a bare Linux with an NVIDIA driver, without
# compiler, Bullet, oneTBB or CUDA Toolkit: the programs of gpu.sh, built for sm_90 with PTX for other
# GPUs, every shared library that is not glibc's, and the scripts. There, benchmarks/gpu.sh
# OUTPUT_FOLDER does the rest.
# It needs about the glibc of the machine that made it; the last line says which. Made on Debian 12
# that is 2.36, for libstdc++ alone: where glibc is 2.35 and libstdc++ that of GCC 12
# (Ubuntu 22.04), delete lib/libstdc++.so.6. Needs here what ./run build needs, nvcc included.
# Usage: gpu_bundle.sh [--from BUILD] [FOLDER]    (default: build/gpu_bundle; it is made anew)
# With --from it packs what ./run build built for the interpreter (GPULBVH_INTERPRETER), in seconds,
# to check the packing. That bundle is not for a GPU: it is not compiled for one.
set -euo pipefail
cd "$(dirname "$0")/.."
from=
if [ "${1:-}" = --from ]; then
  from=${2:?--from needs a folder}
  shift 2
fi
folder=$(realpath -m "${1:-build/gpu_bundle}")
build=${from:-build/gpu}
most_mib=56  # of the archive: an upload should not be longer than the tests
export PATH=$PATH:/usr/local/cuda/bin
programs=(cuda_tests cuda_kernel_tests cuda_stress)
programs+=(replay make_scene rigid_bodies stages gpu_micro worlds)  # what gpu.sh needs

fail() { echo "gpu_bundle.sh: $*" >&2; exit 1; }

# PTX for compute_75 is what the interpreter reads. A shared CUDA runtime, so that the interpreter's
# can take its place; RUNPATH and not RPATH, so that LD_LIBRARY_PATH says so.
build_programs() {
  command -v nvcc >/dev/null || fail "no nvcc"
  mkdir -p "$build/lib"
  # shellcheck disable=SC2086  # a list of words
  cmake -S . -B "$build" -D CMAKE_BUILD_TYPE=Release \
    -D "CMAKE_CUDA_ARCHITECTURES=75-virtual;90-real;90-virtual" -D CMAKE_CUDA_RUNTIME_LIBRARY=Shared \
    -D CMAKE_BUILD_WITH_INSTALL_RPATH=ON -D "CMAKE_INSTALL_RPATH=\$ORIGIN/../lib" \
    -D CMAKE_EXE_LINKER_FLAGS=-Wl,--enable-new-dtags ${CMAKE_ARGS:-} >"$build/configure.log" ||
    fail "cmake failed; see $build/configure.log"
  grep -q 'CUDA space: on' "$build/configure.log" || fail "built without CUDA; see $build/configure.log"
  local cudart
  cudart=$(sed -n 's/^CUDA_cudart_LIBRARY:FILEPATH=//p' "$build/CMakeCache.txt")
  ln -sf "$(realpath "$cudart")" "$build/lib/libcudart.so.13"
  cmake --build "$build" --parallel "$(nproc)" --target "${programs[@]}" >"$build/build.log" 2>&1 ||
    { tail -n 30 "$build/build.log" >&2; fail "the build failed"; }
}

if [ -e "$folder" ] && [ ! -e "$folder/this-is-a-gpu-bundle" ]; then
  fail "$folder is there, and was not made by this script"
fi
if [ -z "$from" ]; then build_programs; fi

rm -rf "$folder" "$folder.tar.gz"
mkdir -p "$folder"/{bin,lib,benchmarks}
git describe --always --tags --dirty >"$folder/this-is-a-gpu-bundle" 2>/dev/null || true
for program in "${programs[@]}"; do
  [ -x "$build/bin/$program" ] || fail "no $program in $build/bin"
  strip -o "$folder/bin/$program" "$build/bin/$program"
done
glibc='lib(c|m|dl|rt|pthread|mvec|resolv|util)\.so\.|ld-linux|linux-vdso'
for program in "${programs[@]}"; do env -u LD_LIBRARY_PATH ldd "$build/bin/$program"; done |
  grep -vE "$glibc" | sort -u |
  while read -r name _ path _; do
    [ -e "$path" ] || fail "$name: not found here"
    strip -o "$folder/lib/$name" "$(realpath "$path")"
  done
cp LICENSE "$folder"
cp benchmarks/gpu.sh benchmarks/step_times.sh benchmarks/worlds.sh "$folder/benchmarks"

tar -C "$(dirname "$folder")" -czf "$folder.tar.gz" "$(basename "$folder")"
mib=$(du -sm "$folder.tar.gz" | cut -f1)
[ "$mib" -lt $most_mib ] || fail "$folder.tar.gz has $mib MiB; less than $most_mib are allowed"
needed=$(objdump -T "$folder"/bin/* "$folder"/lib/* | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1)
echo "$folder.tar.gz: $mib MiB, needs glibc ${needed#GLIBC_} or newer, and an NVIDIA driver for CUDA 13"

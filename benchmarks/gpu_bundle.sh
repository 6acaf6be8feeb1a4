#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Makes a folder, and the archive FOLDER.tar.gz of it. The folder has the programs of gpu.sh, the scripts, and every
# shared library except glibc's. The programs run on any other Linux machine with an NVIDIA driver. They need no
# compiler, Bullet, oneTBB or CUDA Toolkit. Unpack the archive on that machine and run benchmarks/gpu.sh OUTPUT_FOLDER.
# The bundle's core is a shared library, so that the archive contains the kernels once and not in each program. The
# other machine needs a glibc about as new as this machine's. The last line of output says which version. A bundle made
# on Debian 12 needs glibc 2.36, but only because of libstdc++. If the other machine has glibc 2.35 and the libstdc++
# of GCC 12 (Ubuntu 22.04), delete lib/libstdc++.so.6. This script needs what ./run build needs, and nvcc.
# Usage: gpu_bundle.sh [--gpus LIST] [--from BUILD] [FOLDER]
#   --gpus   compute capabilities to make machine code for, separated by commas (default: 90). For other
#            GPUs the driver compiles the PTX for 7.5 at the first start. 80,89,120: A100, RTX 40 and RTX 50
#   --from   packs what ./run build built for the interpreter (GPULBVH_INTERPRETER), in seconds, to
#            check the packing. That bundle does not run on a GPU, because it is not compiled for one
#   FOLDER   is deleted and made again (default: build/gpu_bundle; with --gpus build/gpu_bundle_LIST)
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "gpu_bundle.sh: $*" >&2; exit 1; }
from='' gpus=90 suffix=''
while [[ ${1:-} == --* ]]; do
  case $1 in
    --from) from=${2:?--from needs a folder} ;;
    --gpus) gpus=${2:?--gpus needs a list} suffix=_${gpus//,/_} ;;
    *) fail "unknown option $1" ;;
  esac
  shift 2
done
[[ $gpus =~ ^[0-9]+(,[0-9]+)*$ ]] || fail "--gpus: not a list of compute capabilities: $gpus"
folder=$(realpath -m "${1:-build/gpu_bundle$suffix}")
build=${from:-build/gpu$suffix}
most_mib=28  # maximum size of the archive: its upload should not take longer than the tests
export PATH=$PATH:/usr/local/cuda/bin
programs=(cuda_tests cuda_kernel_tests cuda_stress)
programs+=(replay make_scene rigid_bodies gpu_micro worlds)  # gpu.sh needs the programs up to here
programs+=(stages)  # for runs by hand

# The interpreter reads PTX for compute_75. It replaces the CUDA runtime, so the programs must link the
# runtime as a shared library. They must find it by RUNPATH, because LD_LIBRARY_PATH overrides RUNPATH but
# not RPATH.
build_programs() {
  command -v nvcc >/dev/null || fail "no nvcc"
  mkdir -p "$build/lib"
  # shellcheck disable=SC2086  # a list of words
  cmake -S . -B "$build" -D CMAKE_BUILD_TYPE=Release \
    -D "CMAKE_CUDA_ARCHITECTURES=75-virtual;${gpus//,/-real;}-real" -D CMAKE_CUDA_RUNTIME_LIBRARY=Shared \
    -D BUILD_SHARED_LIBS=ON -D "CMAKE_LIBRARY_OUTPUT_DIRECTORY=$PWD/$build/lib" \
    -D CMAKE_BUILD_WITH_INSTALL_RPATH=ON -D "CMAKE_INSTALL_RPATH=\$ORIGIN/../lib" \
    -D CMAKE_EXE_LINKER_FLAGS=-Wl,--enable-new-dtags \
    -D CMAKE_SHARED_LINKER_FLAGS=-Wl,--enable-new-dtags ${CMAKE_ARGS:-} >"$build/configure.log" ||
    fail "cmake failed; see $build/configure.log"
  grep -q 'CUDA backend: on' "$build/configure.log" || fail "built without CUDA; see $build/configure.log"
  local cudart
  cudart=$(sed -n 's/^CUDA_cudart_LIBRARY:FILEPATH=//p' "$build/CMakeCache.txt")
  ln -sf "$(realpath "$cudart")" "$build/lib/libcudart.so.13"
  cmake --build "$build" --parallel "$(nproc)" --target "${programs[@]}" >"$build/build.log" 2>&1 ||
    { tail -n 30 "$build/build.log" >&2; fail "the build failed"; }
}

if [ -e "$folder" ] && [ ! -e "$folder/this-is-a-gpu-bundle" ]; then
  fail "$folder exists, but was not made by this script"
fi
if [ -z "$from" ]; then build_programs; fi

rm -rf "$folder" "$folder.tar.gz"
mkdir -p "$folder"/{bin,lib,benchmarks}
git describe --always --tags --dirty >"$folder/this-is-a-gpu-bundle" 2>/dev/null || true
for program in "${programs[@]}"; do
  [ -x "$build/bin/$program" ] || fail "no program $program in $build/bin"
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
cp benchmarks/gpu.sh benchmarks/gpu_parts.sh "$folder/benchmarks"

tar -C "$(dirname "$folder")" -czf "$folder.tar.gz" "$(basename "$folder")"
mib=$(du -sm "$folder.tar.gz" | cut -f1)
[ "$mib" -lt $most_mib ] || fail "$folder.tar.gz has $mib MiB, but must have less than $most_mib"
needed=$(objdump -T "$folder"/bin/* "$folder"/lib/* | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1)
echo "$folder.tar.gz: $mib MiB, needs glibc ${needed#GLIBC_} or newer, and an NVIDIA driver for CUDA 13"

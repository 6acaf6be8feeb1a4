#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Checks that a bundle of gpu_bundle.sh needs nothing from this machine except glibc. Also checks that
# all parts of gpu.sh run from the bundle, on the PTX interpreter with tiny sizes.
# Usage: gpu_bundle_check.sh BUNDLE INTERPRETER_FOLDER [ROOT]
#   benchmarks/gpu_bundle_check.sh build/gpu_bundle build/release/tests/ptxvm
# Without ROOT it runs a copy of the bundle in an empty environment, in half a minute. ROOT is the root
# folder of another Linux. With ROOT the copy runs in that folder. This needs root privileges, because it mounts /proc
# there: programs find their own path through /proc.
#   debootstrap --variant=minbase bookworm /tmp/bare
#   benchmarks/gpu_bundle_check.sh build/gpu_bundle build/release/tests/ptxvm /tmp/bare
set -euo pipefail
fail() { echo "gpu_bundle_check.sh: $*" >&2; exit 1; }
[ $# -eq 2 ] || [ $# -eq 3 ] || { sed -n '/^# Usage/,/^set/{/^#/p}' "$0" >&2; exit 2; }
[ -e "$1/this-is-a-gpu-bundle" ] || fail "$1 was not made by gpu_bundle.sh"
[ -e "$2/libcudart.so.13" ] || fail "no interpreter in $2"
bundle=$(realpath "$1") interpreter=$(realpath "$2") root=${3:-}

# The path of the copy, for this script (`outside`) and for the bundle's programs (`inside`).
if [ -n "$root" ]; then
  [ -x "$root/usr/bin/env" ] || fail "$root is not a root folder"
  [ "$(id -u)" -eq 0 ] || fail "chroot needs root"
  outside=$(mktemp -d "$(realpath "$root")/gpu_check_XXXXXX")
  inside=/$(basename "$outside")
  bare() { chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin "$@"; }
else
  outside=$(mktemp -d) inside=$outside
  bare() { env -i PATH=/usr/bin:/bin "$@"; }
fi
mounted=
clean() {
  if [ -n "$mounted" ]; then umount "$root/proc"; fi
  rm -rf "$outside"
}
trap clean EXIT
if [ -n "$root" ] && [ ! -e "$root/proc/self" ]; then
  mount -t proc proc "$root/proc" || fail "cannot mount $root/proc"
  mounted=yes
fi
cp -r "$bundle" "$outside/bundle"
mkdir "$outside/interpreter"
cp "$interpreter/libcudart.so.13" "$outside/interpreter"
# shellcheck disable=SC2016  # the other shell's variables
bare bash -c '. /etc/os-release && echo "on $PRETTY_NAME, $(ldd --version | head -n 1)"'

if [ -n "$root" ]; then
  # If these programs were in ROOT, the check would prove little.
  for name in gcc nvcc nvidia-smi; do
    if bare bash -c "command -v $name" >/dev/null; then fail "$root has $name: not bare"; fi
  done
  if bare ldconfig -p | grep -E 'libcudart|libcuda\.|libtbb|libBullet|libfmt'; then
    fail "$root has these libraries: not bare"
  fi
fi

# Each library must belong to glibc or be in the bundle.
glibc='^\s*(lib(c|m|dl|rt|pthread|mvec|resolv|util)\.so\.|/lib.*/ld-linux|linux-vdso)'
for program in "$outside"/bundle/bin/*; do
  name=$(basename "$program")
  libraries=$(bare ldd "$inside/bundle/bin/$name") || fail "$name: ldd: $libraries"
  if grep -vE "$glibc" <<<"$libraries" | grep -vE "=> $inside/bundle/(bin|lib)/\.\./lib/"; then
    fail "$name needs these libraries from outside the bundle"
  fi
  dynamic=$(readelf -d "$program")
  # shellcheck disable=SC2016  # the loader's variable
  if ! grep -qF 'Library runpath: [$ORIGIN/../lib' <<<"$dynamic"; then
    fail "$name has no RUNPATH that begins with \$ORIGIN/../lib"
  fi
done
echo "$(find "$outside/bundle/bin" -type f | wc -l) programs need only glibc from outside the bundle"

# Runs all parts with the interpreter in place of the CUDA runtime. Without the interpreter there is no GPU, so gpu.sh
# must fail.
bare LD_LIBRARY_PATH="$inside/interpreter" PTXVM_NO_PDL=1 "$inside/bundle/benchmarks/gpu.sh" --tiny "$inside/results" ||
  fail "gpu.sh failed"
grep -q '^walk,[0-9]*,[0-9]*,cuda,cuda,' "$outside/results/times.csv" || fail "the interpreter was not used"
if [ -n "$root" ] &&
  bare "$inside/bundle/benchmarks/gpu.sh" --tiny "$inside/nothing" micro >/dev/null 2>&1; then
  fail "gpu.sh succeeded without a GPU"
fi
echo "the bundle runs"

#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Runs PyBullet and Bullet's examples without a window, stock and with our broad phase. Builds them from the
# user's checkout of Bullet, at a tag such as 3.25, in double precision and with threads. Changes nothing in
# the checkout.
# Usage: bullet.sh CHECKOUT PREFIX FOLDER     PREFIX has gpulbvh-run; FOLDER is for builds and work files
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(realpath "$1") prefix=$(realpath "$2") folder=$3
mkdir -p "$folder/work"
folder=$(realpath "$folder")
tree=$folder/tree launcher=$prefix/bin/gpulbvh-run
cores=$(getconf _NPROCESSORS_ONLN)
failures=0
fail() { echo "FAILED: $*"; failures=1; }
say() { echo "bullet: $*"; }

# build OPTIONS...: builds shared libraries, as every build with PyBullet does.
build() {
  cmake -S "$checkout" -B "$tree" -D CMAKE_BUILD_TYPE=Release -D BUILD_PYBULLET=ON -D USE_DOUBLE_PRECISION=ON \
    -D BULLET2_MULTITHREADING=ON -D BUILD_UNIT_TESTS=OFF -D CMAKE_CXX_FLAGS=-w -D CMAKE_C_FLAGS=-w \
    -D CMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -D CMAKE_POLICY_VERSION_MINIMUM=3.5 "$@" >"$folder/configure.log" 2>&1 ||
    { tail -n 20 "$folder/configure.log"; return 1; }
  cmake --build "$tree" --parallel "$cores" --target pybullet App_ExampleBrowser >"$folder/build.log" 2>&1 ||
    { tail -n 30 "$folder/build.log"; return 1; }
}

# link_examples: links the examples' objects with examples.cpp instead of their main.cpp.
link_examples() {
  local objects=$tree/examples/ExampleBrowser libraries paths
  mapfile -t libraries < <(find "$tree" -name 'lib*.so')
  mapfile -t paths < <(printf '%s\n' "${libraries[@]%/*}" | sort -u)
  mapfile -t objects < <(find "$objects/CMakeFiles/App_ExampleBrowser.dir" -name '*.o' ! -path '*App_ExampleBrowser.dir/main.*')
  g++ -O1 -w -std=c++17 -D BT_USE_DOUBLE_PRECISION -D BT_THREADSAFE=1 -I"$checkout/src" -I"$checkout/examples" \
    "$here/examples.cpp" "${objects[@]}" -o "$folder/examples" "${libraries[@]}" "${paths[@]/#/-Wl,-rpath,}" -pthread -ldl
}

# build_samples: builds rigid_bodies with this Bullet. The source of rigid_bodies names our broad phase.
build_samples() {
  local library
  for library in LinearMath BulletCollision BulletDynamics BulletSoftBody; do
    cmake --install "$tree/src/$library" --prefix "$folder/bullet" >/dev/null
  done
  cp "$checkout"/src/*.h "$folder/bullet/include/bullet/"
  cmake -S "$here/../.." -B "$folder/samples" -D CMAKE_BUILD_TYPE=Release -D GPULBVH_DOUBLE=ON -D GPULBVH_CUDA=OFF \
    -D GPULBVH_TESTS=OFF -D Bullet_ROOT="$folder/bullet" -D CMAKE_CXX_FLAGS=-DBT_THREADSAFE=1 >"$folder/samples.log" 2>&1 ||
    { tail -n 20 "$folder/samples.log"; return 1; }
  cmake --build "$folder/samples" --parallel "$cores" --target rigid_bodies >"$folder/samples.log" 2>&1 ||
    { tail -n 30 "$folder/samples.log"; return 1; }
}

# compile_with_dropin: compiles with gpulbvh/dropin.h each example that can use a btDbvtBroadphase. An example may fail
# only if it does not compile without dropin.h either, because a header is missing.
compile_with_dropin() {
  local part source sources count=0 compiler=(g++ -fsyntax-only -w -std=c++17)
  for part in src examples examples/ThirdPartyLibs Extras/Serialize/BulletFileLoader \
    Extras/Serialize/BulletWorldImporter; do
    compiler+=(-I "$checkout/$part")
  done
  compiler+=(-I "$prefix/include/GpuLbvhBroadphase/include")
  mapfile -t sources < <(grep -rlE 'btDbvtBroadphase|Common(RigidBody|RigidBodyMT|MultiBody|DeformableBody)Base\.h' \
    --include='*.cpp' "$checkout/examples")
  for source in "${sources[@]}"; do
    if "${compiler[@]}" -include gpulbvh/dropin.h "$source" 2>dropin.err; then
      count=$((count + 1))
    elif "${compiler[@]}" "$source" 2>/dev/null; then
      fail "$source does not compile with dropin.h: $(cat dropin.err)"
    fi
  done
  say "with dropin.h $count of ${#sources[@]} examples compile"
  [ $count -gt 0 ]
}

# python SCRIPT...: runs a script, with the launcher if that is in `how`.
python() { "${how[@]}" python3 "$@"; }

# unit_tests LABEL: runs PyBullet's own tests, which find their data in ./data.
unit_tests() {
  local name log=$folder/$1.log
  for name in unittests saveRestoreStateTest userDataTest; do
    python "$checkout/examples/pybullet/unittests/$name.py" >"$log" 2>&1 || fail "$1: $name: $(tail -n 5 "$log")"
    say "$1: $name: $(grep -E '^Ran|^OK' "$log" | tr '\n' ' ')"
    grep -q '^Ran [1-9]' "$log" || fail "$1: $name ran nothing"
    if [ $name = saveRestoreStateTest ]; then cp saveFile.txt "$folder/$1.saved"; fi
  done
}

# value KEY FILE: prints a value from the output of cubes.py.
value() { tr ' ' '\n' <"$2" | sed -n "s/^$1=//p"; }

build -D CMAKE_SHARED_LINKER_FLAGS=
say "built $(cat "$checkout/VERSION")"
link_examples
cd "$folder/work"
ln -sfn "$checkout/data" data
compile_with_dropin
export PYTHONPATH=$tree/examples/pybullet:$checkout/examples/pybullet/gym
# import_says LAUNCHER...: prints the messages of our library when PyBullet makes a world.
import_says() {
  "$@" env GPULBVH_VERBOSE=1 python3 -c 'import pybullet; pybullet.connect(pybullet.DIRECT)' 2>&1 | grep '^gpulbvh:' || true
}

how=()
[ -z "$(import_says)" ] || fail "our library is there without the launcher"
unit_tests stock
how=("$launcher")
grep -q 'are ours' <<<"$(import_says "$launcher")" || fail "not ours: $(import_says "$launcher")"
unit_tests ours
cmp "$folder/stock.saved" "$folder/ours.saved" || fail "a saved state differs"

# Drops a thousand cubes, alternately with both broad phases.
for round in 1 2 3; do
  for whose in stock ours; do
    how=()
    if [ $whose = ours ]; then how=("$launcher"); fi
    python "$here/cubes.py" 2>/dev/null | grep contacts= >"$folder/cubes-$whose.txt" || fail "cubes: $whose"
    say "cubes, $round, $whose: $(cat "$folder/cubes-$whose.txt")"
  done
done
for key in contacts height deepest; do
  [ "$(value $key "$folder/cubes-stock.txt")" = "$(value $key "$folder/cubes-ours.txt")" ] || fail "$key differs"
done
[ "$(value left "$folder/cubes-ours.txt")" = 0 ] || fail "contacts of a cube that is far away"

python3 "$here/examples.py" compare "$folder/examples" "$launcher" 60 >"$folder/examples.log" || fail "examples"
tail -n 12 "$folder/examples.log"

# Times whole steps on Bullet's threads: first those of a program under gpulbvh-run, then those of our samples. The
# samples step worlds with both broad phases alternately.
python3 "$here/examples.py" times "$folder/examples" "$launcher" 100 2 "1000 stack" "Multithreaded Demo" || fail "times"
build_samples
for scene in pile ragdolls; do
  "$folder/samples/bin/rigid_bodies" --scene $scene --objects 1000 --steps 100 --bullet-threads \
    --compare dbvt,gpu-lbvh >"$folder/$scene.log" || fail "rigid_bodies ended with $?"
  grep -q 'btDiscreteDynamicsWorldMt' "$folder/$scene.log" || fail "$scene: no threads"
  sed -n '/^median ms/,/^$/p' "$folder/$scene.log"
done

# Tests the recipe of docs/try.md: our library is linked before Bullet's. All other libraries are linked only
# as needed. If more libraries are linked, Bullet destroys one of its clocks twice at exit.
ours="-L$prefix/lib/gpulbvh -Wl,-rpath,$prefix/lib/gpulbvh"
build -D CMAKE_SHARED_LINKER_FLAGS="$ours -Wl,--push-state,--no-as-needed -lgpulbvh_dbvt -Wl,--pop-state"
how=()
grep -q 'are ours' <<<"$(import_says)" || fail "relinked, and not ours: $(import_says)"
unit_tests relinked
cmp "$folder/stock.saved" "$folder/relinked.saved" || fail "a saved state differs, relinked"
exit $failures

#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Builds the project for another system, processor or compiler in build/platforms/NAME, runs its tests
# there, and writes a row of docs/platforms.md. Installs compilers and emulators on Debian. Exits with 77
# if it cannot run.
# Usage: run.sh NAME [all|quick|core|rest]    NAME is one of
#   aarch64    64-bit ARM: Debian's cross-compiler, on QEMU
#   i386       32-bit x86 with SSE2: Debian's cross-compiler, on QEMU
#   mingw      64-bit Windows: Debian's MinGW, on Wine
#   libcxx     Clang with libc++, the newest one that is complete in Debian 12
#   libcxx14   Clang with an older libc++, which has no std::atomic_ref
#   debian13   ./run test all in an empty Debian 13
#   ubuntu24   ./run test all in an empty Ubuntu 24.04
#   packages12 the packages of packaging/pack.sh in an empty Debian 12; no row
#   packages13 the same in an empty Debian 13
#   abi        the shared libraries' ABI, compared with the last release's; no row
#   static     dbvt/ with static Bullets, and with a Bullet that is linked as on Ubuntu; no row
#   programs   programs for Debian's Bullet, such as DART, with gpulbvh-run; no row
#   bullet     PyBullet and Bullet's examples, from the checkout that GPULBVH_BULLET_SOURCE names; no row
# With quick it builds and runs only the tests of ./run test. With core it uses only core_tests of these, and
# with rest the others. Only all writes a row.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=cmake/install_debian.sh
. cmake/install_debian.sh
name=${1:-} scope=${2:-all}
case $scope in all | quick | core | rest) ;; *) name='' ;; esac  # prints the usage
build=$PWD/build/platforms/$name
cores=$(getconf _NPROCESSORS_ONLN)

# Prints why the platform cannot run here, and exits with 77, which means neither success nor failure.
cannot() {
  echo "platforms: $name cannot run here: $1"
  exit 77
}
install() {
  local package
  for package in "$@"; do
    if ! debian_has "$package" && [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
      cannot "$package is not installed, and this user may not install it"
    fi
  done
  install_debian platforms "$@"
}

# configure OPTIONS...
configure() {
  mkdir -p "$build"
  rm -f "$build/CMakeCache.txt"  # if the compiler changes, CMake drops the other options
  cmake -S . -B "$build" -D CMAKE_BUILD_TYPE=Release -D GPULBVH_CUDA=OFF -D GPULBVH_WERROR=ON "$@" \
    >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; return 1; }
  local targets=()
  case $scope in
    quick) targets=(--target quick) ;;
    core) targets=(--target core_tests) ;;
    every_way) targets=(--target every_way) ;;
    rest)
      targets=(--target memory_tests adapter_tests worlds_tests sample_tests hello replay_finder replay_adapter
        replay every_way)
      ;;
  esac
  if [[ "$scope" =~ quick|rest ]]; then  # not every system has these
    mapfile -t -O "${#targets[@]}" targets < <(cmake --build "$build" --target help |
      grep -owE 'make_scene|clean_registers_tests(_O[0s])?' | sort -u)
  fi
  cmake --build "$build" --parallel "$cores" ${targets[@]+"${targets[@]}"}
}

# progress: passes only the lines of CTest's output that say which tests start and end.
progress() { grep --line-buffered -E '^ *Start +[0-9]+: |Test +#[0-9]+: '; }

# check SYSTEM COMPILER INSTRUCTIONS HOW EXCLUDED [EMULATOR...]: runs the tests except those whose names
# match EXCLUDED, and writes the row.
check() {
  local what=("${@:1:4}") excluded=$5 log=$build/tests.log compare=() some=()
  shift 5
  if [ "$scope" != all ]; then some=(--label-exclude '^all$' --stop-on-failure); fi
  if [ "$scope" = core ]; then some+=(--tests-regex ^core_tests); fi
  if [ "$scope" = rest ]; then excluded+='|^core_tests'; fi
  ctest --test-dir "$build" --parallel "$cores" --timeout 1500 --no-tests=error --verbose \
    --exclude-regex "$excluded" ${some[@]+"${some[@]}"} 2>&1 | tee "$log" | progress ||
    { grep -vE 'Passed|\[ +(OK|RUN) +\]|\[-+\]' "$log"; return 1; }
  if [ "$scope" != core ] && ls "$build"/bin/make_scene* >/dev/null 2>&1; then
    compare=("$here/hashes.sh" "$build/bin" "$@")
  fi
  row "${what[@]}" "${compare[@]}"
}

# row SYSTEM COMPILER INSTRUCTIONS HOW [COMMAND...]: writes the row, with the number of tests and the result
# of COMMAND, which runs hashes.sh.
row() {
  local row="$1 | $2 | $3 | $4" passed hashes="no programs"
  shift 4
  # Counts the cases of GoogleTest programs, and the other tests.
  passed=$(awk '/\[  PASSED  \]/ { cases += $5; ++programs }
    /, 0 tests failed out of/ { print cases + $NF - programs }' "$build/tests.log")
  if [ $# -gt 0 ]; then
    "$@" | tee "$build/hashes.log"
    hashes=$(sed -nE 's/.*all ([0-9]+) scenes.*/\1 of \1/p' "$build/hashes.log")
  fi
  row="| $row | ${passed:?}$(skips "$build/tests.log") | ${hashes:-differ} |"
  echo "$row"
  if [ "$scope" = all ]; then echo "$row" >"$build/row.md"; fi
  [ -n "$hashes" ]
}

# skips LOG: prints how many tests were skipped, if any.
skips() {
  local count
  count=$(grep -cE '\(Skipped\)|\[  SKIPPED \] .* ms\)' "$1" || true)
  if [ "$count" -gt 0 ]; then echo ", $count of them skipped"; fi
}

libraries=(libc6-dev libstdc++-12-dev libtbb-dev libbullet-dev libbullet-extras-dev libgtest-dev
  libfmt-dev libcli11-dev)
# Tests that do not depend on the processor run on one system only.
of_one_system='run_packages|docs_snippets|readme_snippet|install_and_consume|find_bullet|without_cmake'
of_one_system+='|report_renders|man_pages|api_reference|upward_includes|named_files|named_tests|license_lines'
of_one_system+='|command_lines|many_worlds|record_and_replay|each_hierarchy|same_on_every_thread_count'

# These tests measure the memory of the process, which here is the emulator.
of_emulators='-*AdapterStaysWithinItsLimits*:*PairsTakeTwentyFourBytes*'
# Simulations of rigid bodies take twenty minutes on an emulator, so only `all` runs them.
if [ "$scope" = rest ]; then of_emulators+=':Scenes*:Migrate/Routes*'; fi

# cross TRIPLE DEBIAN_ARCHITECTURE QEMU OPTIONS...
cross() {
  local triple=$1 architecture=$2 emulator=$3
  shift 3
  install "g++-$triple" qemu-user-static
  "$here/sysroot.sh" "$architecture" "$build/root" "${libraries[@]}"
  configure -D CMAKE_TOOLCHAIN_FILE="$here/linux.cmake" -D TRIPLE="$triple" \
    -D SYSROOT="$build/root" -D EMULATOR="/usr/bin/$emulator" "$@"
}

# with_libcxx VERSION: builds GoogleTest and the project with Clang and libc++. The samples are left out,
# because they need fmt. Debian can install only one libc++ at a time, so the requested one is unpacked to a folder.
with_libcxx() {
  local version=$1
  local llvm=$build/root/usr/lib/llvm-$version
  install "clang-$version" googletest libtbb-dev libbullet-dev
  "$here/sysroot.sh" "$(dpkg --print-architecture)" "$build/root" "libc++-$version-dev" \
    "libc++abi-$version-dev"
  local linked="-L$llvm/lib -Wl,-rpath,$llvm/lib -lc++ -lc++abi"
  local options=(-D CMAKE_CXX_COMPILER="clang++-$version"
    -D CMAKE_CXX_FLAGS="-nostdinc++ -isystem $llvm/include/c++/v1 -nostdlib++"
    -D CMAKE_EXE_LINKER_FLAGS="$linked" -D CMAKE_MODULE_LINKER_FLAGS="$linked")
  cmake -S /usr/src/googletest -B "$build/googletest" "${options[@]}" \
    -D CMAKE_INSTALL_PREFIX="$build/prefix" -D BUILD_GMOCK=OFF >/dev/null
  cmake --build "$build/googletest" --parallel "$cores" --target install >/dev/null
  configure "${options[@]}" -D CMAKE_PREFIX_PATH="$build/prefix" -D GPULBVH_SAMPLES=OFF
}

# install_ours: installs the library and gpulbvh-run to $build/prefix, as a user does.
install_ours() {
  local scope=all  # the targets of the other scopes exist only with tests
  install g++ cmake libbullet-dev libtbb-dev libfmt-dev
  configure -D GPULBVH_SAMPLES=OFF -D GPULBVH_TESTS=OFF -D CMAKE_INSTALL_PREFIX="$build/prefix"
  cmake --install "$build" >/dev/null
}

need_roots() {
  unshare --mount true 2>/dev/null || cannot "this user may not mount"
  install debootstrap
}

# in_empty SUITE SYSTEM: runs `./run test all` or `./run test` in a new system of the release SUITE.
in_empty() {
  local root=$build/root all=()
  if [ "$scope" = all ]; then all=(all); fi
  need_roots
  # shellcheck source=tests/platforms/debian_root.sh
  . "$here/debian_root.sh"
  debian_root "$1" "$root"
  in_root "$root" apt-get update -qq
  in_root "$root" mkdir -p /src
  find "$root/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  git ls-files -coz --exclude-standard | tar --null --files-from=- -c | tar -x -C "$root/src"
  in_root "$root" /src/run test ${all[@]+"${all[@]}"} --verbose --timeout 1500 2>&1 |
    tee "$build/tests.log" | progress ||
    { grep -v Passed "$build/tests.log" | tail -n 100; return 1; }
  grep '^skipped' "$build/tests.log" || true
  in_root "$root" cmake --build /src/build/release --target make_scene >/dev/null
  row "$2" "GCC $(in_root "$root" gcc -dumpfullversion)" "AVX-512, AVX2, SSE2" native \
    in_root "$root" /src/tests/platforms/hashes.sh /src/build/release/bin
}

# Builds programs against the Windows package that cpack makes, and runs them.
use_zip() {
  local unpacked=$build/unpacked
  rm -rf "$build/packages" "$unpacked"
  (cd "$build" && cpack -B packages >/dev/null)
  unzip -q -d "$unpacked" "$build"/packages/GpuLbvhBroadphase-*.zip
  cmake -S tests/consumer -B "$build/consumer" -D CMAKE_TOOLCHAIN_FILE="$here/mingw.cmake" \
    -D CMAKE_PREFIX_PATH="$(echo "$unpacked"/*);$build/libraries" -D CMAKE_BUILD_TYPE=Release \
    -D HELLO="$PWD/samples/hello.cpp" -D DOUBLE=OFF >/dev/null
  cmake --build "$build/consumer" --parallel "$cores" >/dev/null
  for program in core adapter hello; do
    /usr/lib/wine/wine64 "$build/consumer/$program.exe" >"$build/$program.log" ||
      { cat "$build/$program.log"; return 1; }
  done
  echo "platforms: hello runs with the .zip"
}

gcc_version() { "$1" -dumpfullversion; }

if [ "$scope" = all ]; then rm -f "$build/row.md"; fi
case $name in
  aarch64)
    cross aarch64-linux-gnu arm64 qemu-aarch64-static
    GTEST_FILTER=$of_emulators check "Linux, 64-bit ARM" "GCC $(gcc_version aarch64-linux-gnu-g++)" "NEON" QEMU \
      "$of_one_system" qemu-aarch64-static -L "$build/root"
    ;;
  i386)
    cross i686-linux-gnu i386 qemu-i386-static -D CMAKE_CXX_FLAGS="-msse2 -mfpmath=sse"
    GTEST_FILTER=$of_emulators check "Linux, 32-bit x86" "GCC $(gcc_version i686-linux-gnu-g++)" "SSE2" QEMU \
      "$of_one_system" qemu-i386-static -L "$build/root"
    ;;
  mingw)
    install g++-mingw-w64-x86-64-posix wine64 xz-utils unzip
    "$here/mingw_libraries.sh" "$build/libraries"
    # Starts one server for all programs, because a server that starts with a program is not always ready in
    # time.
    export WINEDEBUG=-all WINEPREFIX=$build/wine WINEPATH=$build/libraries/bin
    mkdir -p "$WINEPREFIX"
    trap '/usr/lib/wine/wineserver -k || true' EXIT
    /usr/lib/wine/wineserver -p
    /usr/lib/wine/wine64 cmd /c exit
    configure -D CMAKE_TOOLCHAIN_FILE="$here/mingw.cmake" -D CMAKE_PREFIX_PATH="$build/libraries"
    check "Windows, 64-bit x86" "GCC $(gcc_version x86_64-w64-mingw32-g++-posix) (MinGW)" \
      "AVX-512, AVX2, SSE2" Wine "$of_one_system" /usr/lib/wine/wine64
    use_zip
    ;;
  libcxx | libcxx14)
    version=19
    if [ "$name" = libcxx14 ]; then version=14; fi
    with_libcxx $version
    check "Linux, 64-bit x86" "Clang $version with libc++" "AVX-512, AVX2, SSE2" native \
      "$of_one_system"
    ;;
  debian13) in_empty trixie "Debian 13, 64-bit x86" ;;
  ubuntu24)
    need_roots
    install wget ca-certificates
    wget -q --timeout=30 --tries=2 --spider https://archive.ubuntu.com/ubuntu/dists/noble/Release ||
      cannot "Ubuntu's archive cannot be reached"
    in_empty noble "Ubuntu 24.04, 64-bit x86"
    ;;
  packages12 | packages13)
    suite=bookworm
    if [ "$name" = packages13 ]; then suite=trixie; fi
    need_roots
    install lintian libfmt-dev
    mkdir -p "$build"
    "$here/packages.sh" "$suite" "$build"
    ;;
  abi)
    install abigail-tools
    mkdir -p "$build"
    tests/repository/abi.sh "$build"
    ;;
  static)
    install g++ cmake libtbb-dev libbullet-dev libgtest-dev
    "$here/bullet_trees.sh" "$build/trees"
    trees=$build/trees wanted='^dbvt_'
    if [ "$scope" = all ]; then wanted+='|^find_bullet_from_source$'; fi
    scope=every_way
    for double in OFF ON; do
      build=$PWD/build/platforms/static/double-$double
      configure -D GPULBVH_SAMPLES=OFF -D GPULBVH_DOUBLE=$double -D GPULBVH_BULLET_TREES="$trees"
      ctest --test-dir "$build" --tests-regex "$wanted" --exclude-regex report --parallel "$cores" \
        --timeout 600 --verbose >"$build/tests.log" 2>&1 || { cat "$build/tests.log"; exit 1; }
      # With this precision every test must have found its Bullet.
      for test in dbvt_static dbvt_symbolic_linked dbvt_symbolic_ours dbvt_symbolic_bullets; do
        grep -E " $test \.+ +Passed" "$build/tests.log"
      done
    done
    ;;
  programs)
    install libdart-collision-bullet-dev libignition-physics-sdf-dev libignition-physics5-bullet-plugin5 \
      libignition-plugin-dev libsdformat-dev pkg-config python3-siconos
    install_ours
    "$here/../programs/debian.sh" "$build/prefix/bin/gpulbvh-run" "$build/programs"
    ;;
  bullet)
    if [ -z "${GPULBVH_BULLET_SOURCE:-}" ]; then cannot "GPULBVH_BULLET_SOURCE names no checkout of Bullet"; fi
    install python3-dev
    install_ours
    "$here/../programs/bullet.sh" "$GPULBVH_BULLET_SOURCE" "$build/prefix" "$build/bullet"
    ;;
  *)
    sed -n '3,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2
    exit 2
    ;;
esac

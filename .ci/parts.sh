# shellcheck shell=bash
# SPDX-License-Identifier: Zlib
# Sourced by .ci/run: the parts of CI. A part runs in the repository's root, in a shell of its own with errexit.
# Exit status 77 means that the part was skipped. The last line of its output then says why.
clang=22  # the newest in Debian

# Each line has a name, the seconds that the part usually takes on two quick cores, and a function with arguments.
# shellcheck disable=SC2034  # .ci/run reads it
gate='packages 30 packages
format 5 format
build 80 build_tests release
tests 70 tests release
build-clang 120 build_tests clang
tests-clang 120 tests clang
build-double 90 build_tests double
tests-double 40 tests double
counts 60 counts 12486
demo 30 demo'

# These parts run after the gate. The seconds include the time to build what the part needs.
# shellcheck disable=SC2034
rotation='tidy 90 tidy
all-cuda 200 all_tests --label-regex ^cuda$ --exclude-regex cuda_faults|left_to_all|fuzz_inputs
cuda-long 150 long_cuda_tests
all-viewer 150 all_tests --label-regex viewer
all-install 200 all_tests --label-regex install
all-rest 200 all_tests --label-exclude cuda|viewer|install --exclude-regex gpu_dry_run
gpu-dry-run 240 all_tests --tests-regex ^gpu_dry_run$
faults-recorded 150 faults recorded
faults-binary 100 faults binary
faults-unrecorded 60 faults unrecorded
faults-background 140 faults background
faults-device 150 faults device
docs 180 docs_commands
machines 150 machines
fuzz-finder 170 fuzz finder
fuzz-adapter 170 fuzz adapter
fuzz-readers 170 fuzz readers
cuda-weak 180 cuda_tests PTXVM_SEED=1 PTXVM_WEAK=1
cuda-weak-2 180 cuda_tests PTXVM_SEED=2 PTXVM_WEAK=1
cuda-seed-3 180 cuda_tests PTXVM_SEED=3
cuda-race 180 cuda_tests PTXVM_RACE=2
cuda-race-4 180 cuda_tests PTXVM_RACE=2 PTXVM_SEED=4
registers 20 registers
counts-1024 60 counts 1024
worlds-counts 60 worlds_counts
bundle 200 bundle
variants 60 variants
interpreter 120 interpreter
without-cmake 60 without_cmake
first-minutes 60 first_minutes
tsan 180 tsan
aarch64 200 platform aarch64 core
aarch64-rest 240 platform aarch64 rest
i386 200 platform i386 core
i386-rest 300 platform i386 rest
mingw 240 platform mingw
libcxx 180 platform libcxx
libcxx14 180 platform libcxx14
debian13 240 platform debian13
ubuntu24 240 platform ubuntu24
packages12 180 platform packages12
packages13 180 platform packages13
abi 120 platform abi
static 200 platform static
programs 180 platform programs'

# Only `.ci/run all` and `.ci/run PART` run these parts, because they take too long for the rotation.
# shellcheck disable=SC2034
release='counts-100000 900 counts 100000
steps-10000 1500 ten_thousand_steps
bullet 1200 platform bullet'

# Patterns of the accepted reasons for skipping a test. In these cases the machine or the build lacks what the test
# needs. Without nvcc the CUDA backend is off.
everywhere='built without threads|names no Bullet from source|Bullet.s proxies are larger|CUDA backend: off'
everywhere+='|not on this processor|this processor does not tell which registers are in use'

# test_command PRESET ARGUMENTS...: runs ./run test with the preset's compiler.
test_command() {
  # The preset clang is the build with ASan and UBSan. It needs Clang $clang.
  if [ "$1" = clang ]; then export PATH=/usr/lib/llvm-$clang/bin:$PATH; fi
  PRESET=$1 ./run test "${@:2}"
}

# run_tests PRESET REASONS ARGUMENTS...: runs tests. Fails if a test was skipped for a reason that does not match
# REASONS.
run_tests() {
  local log
  log=$(mktemp)
  test_command "$1" "${@:3}" --stop-on-failure | tee "$log"
  if grep '^skipped: ' "$log" | grep -vE "$2"; then
    echo "ci: these reasons for skipping a test are not accepted"
    exit 1
  fi
}

# The gate.
packages() {
  local attempt wanted
  # shellcheck source=cmake/install_debian.sh
  . cmake/install_debian.sh
  mapfile -t wanted < <(awk '$1 == "build" { print $2 }' cmake/system_packages.txt)
  wanted+=(clang-format "clang-$clang" "clang-tidy-$clang" "libclang-rt-$clang-dev")
  for attempt in 1 2 3; do
    if install_debian ci "${wanted[@]}"; then return; fi
    echo "ci: attempt $attempt to install failed"
    sleep 5
  done
  return 1
}
format() { git ls-files -- '*.h' '*.cpp' '*.inl' '*.cuh' '*.cu' | xargs clang-format --dry-run -Werror; }
build_tests() { test_command "$1" --show-only; }
# The gate installs no libraries for the viewer, so the viewer is left out on systems that lack them.
tests() { run_tests "$1" "$everywhere|Viewer: left out" --timeout 600; }
# ThreadSanitizer makes tests ten times slower. So tests in which threads rarely race are left out: tests of memory
# use, of work counts and of single loops, and tests with one thread. Tests with 70,000 boxes are left out, too.
# SkinTest runs only as avx2_alternating.
tsan() {
  export GTEST_FILTER='-Memory.*:SkinWork.*:Simd/*:*Threads1:*/Boxes70000*:SkinTest.*/avx512_*:SkinTest.*/baseline_*'
  GTEST_FILTER+=':SkinTest.*/*_always:SkinTest.*/*_never:SkinTest.*/*_automatic'
  run_tests tsan "$everywhere|Viewer: left out" --timeout 600
}
demo() { ./run demo; }

needs_interpreter() {
  if grep -q 'CUDA tests: on the interpreter' build/release/configure.log; then return; fi
  grep -oE 'CUDA (space|tests):.*' build/release/configure.log | tail -n 1
  exit 77
}
# build_targets TARGET...: builds these targets of the release build.
build_targets() { cmake --build build/release --parallel "$(nproc)" --target "$@"; }
# counts BOXES
counts() {
  needs_interpreter
  build_targets replay make_scene worlds ptxvm
  benchmarks/bench.py counts --steps 4 --moving 1,0.1,one --check benchmarks/results/interpreter/counts.csv "$1"
}

# The rotation.
tidy() {
  build_tests clang
  run-clang-tidy-$clang -quiet -hide-progress -j "$(nproc)" -p build/clang
}
# needs_packages PURPOSE...: installs the packages that cmake/system_packages.txt lists for these purposes, or ends
# the part as skipped.
needs_packages() {
  local wanted
  # shellcheck source=cmake/install_debian.sh
  . cmake/install_debian.sh
  mapfile -t wanted < <(awk -v purposes=" $* " 'index(purposes, " " $1 " ") { print $2 }' cmake/system_packages.txt)
  install_debian ci "${wanted[@]}"
}
# all_tests ARGUMENTS...: runs tests that only `./run test all` runs. CTest selects them by ARGUMENTS.
all_tests() {
  needs_packages build check viewer test browser
  run_tests release "$everywhere" all --timeout 600 --label-regex '^all$' "$@"
}
docs_commands() {
  needs_packages build check viewer test browser
  ./run test all --show-only
  tests/repository/check.py docs_commands build/release/bin
}
# Runs tests of ./run test as if on other machines: with shorter vectors, and with 16 cores or one.
machines() {
  local preloaded=$PWD/build/release/cores.so machine program simd cores
  build_targets quick
  c++ -std=c++17 -Wall -Wextra -Werror -shared -fPIC tests/support/cores.cpp -o "$preloaded"
  for machine in avx2,16 baseline,1; do
    IFS=, read -r simd cores <<<"$machine"
    for program in core adapter memory worlds sample; do
      echo "ci: ${program}_tests with $simd on $cores cores"
      env GPULBVH_SIMD="$simd" CORES="$cores" LD_PRELOAD="$preloaded" "build/release/bin/${program}_tests" \
        --gtest_brief=1
    done
  done
}
fuzz() {
  needs_packages build viewer fuzz
  ./run fuzz 1 "$1"
}
# faults STEPS: see tests/cuda/cuda_faults.sh.
faults() {
  needs_interpreter
  build_targets cuda_tests ptxvm
  ctest --preset release --tests-regex "^cuda_faults_$1$" --no-tests=error --verbose
}
long_cuda_tests() {
  needs_interpreter
  build_targets cuda_tests replay_finder ptxvm
  ctest --preset release --tests-regex 'cuda_tests_left_to_all|fuzz_inputs_finder_cuda' --parallel "$(nproc)" \
    --timeout 600 --no-tests=error --verbose
}
# cuda_tests VARIABLE=VALUE...: runs the tests labelled cuda. The variables are options of the interpreter
# (tests/ptxvm/README.md). No test may be skipped.
cuda_tests() {
  local log=$PWD/build/release/cuda_tests.log
  needs_interpreter
  build_targets quick cuda_kernel_tests cuda_stress
  env "$@" ctest --preset release --label-regex '^cuda$' --exclude-regex 'cuda_faults|fuzz_inputs|left_to_all' \
    --parallel "$(nproc)" --timeout 600 --stop-on-failure --no-tests=error --verbose --output-log "$log"
  if grep -E 'Skipped|SKIPPED' "$log"; then exit 1; fi
}
registers() {
  needs_interpreter
  benchmarks/registers.sh
}
ten_thousand_steps() {
  needs_interpreter
  build_targets cuda_tests ptxvm
  TEST_STEPS=10000 LD_LIBRARY_PATH=build/release/tests/ptxvm PTXVM_NO_PDL=1 build/release/bin/cuda_tests \
    --gtest_filter='*.FollowManyRandomSteps:*.WrongPairIsCorrectedByTheNextStep'
}
worlds_counts() {
  needs_interpreter
  build_targets worlds ptxvm
  benchmarks/bench.py worlds --check counts
}
bundle() {
  needs_interpreter
  build_targets cuda_tests cuda_kernel_tests cuda_stress replay make_scene rigid_bodies stages gpu_micro worlds ptxvm
  benchmarks/gpu_bundle.sh --from build/release build/gpu_bundle_check
  benchmarks/gpu_bundle_check.sh build/gpu_bundle_check build/release/tests/ptxvm
}
# Runs two programs on the interpreter: `stages`, which compares the variants of each stage, and `replay`.
variants() {
  needs_interpreter
  build_targets stages replay ptxvm
  export LD_LIBRARY_PATH=build/release/tests/ptxvm PTXVM_NO_PDL=1
  build/release/bin/stages --scene uniform --objects 300 --backend cuda --rounds 1 | tee build/release/stages.txt
  if grep '; host' build/release/stages.txt; then
    echo "ci: stages ran on the host"
    exit 1
  fi
  build/release/bin/replay tests/data/brownian1k.aabb --backend cuda | tail -n 1
}
interpreter() {
  needs_interpreter
  tests/ptxvm/run_tests.sh build/ptxvm
}
without_cmake() { tests/repository/check.py without_cmake; }
first_minutes() { tests/repository/check.py first_minutes c++; }
# platform NAME [SCOPE]: runs the tests of SCOPE on a platform. .ci/all runs all tests of the platform, and writes the
# platform's row of docs/platforms.md.
platform() {
  if [ -z "${CI_ALL:-}" ]; then
    tests/platforms/run.sh "$1" "${2:-quick}"
  elif [ "${2:-}" != rest ]; then
    tests/platforms/run.sh "$1"
  fi
}

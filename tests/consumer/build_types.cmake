# SPDX-License-Identifier: Zlib
# Configures a game that contains the library as a subdirectory, with each build type. By default the library must be
# optimised with every build type, and CMake must say if the game's own files are not optimised.
# Usage: cmake -D ROOT=... -D SCRATCH=... -D CXX=... -P build_types.cmake

# Sets `variable` to the last level of optimisation in the command that compiles `file`, or to nothing.
function(last_level variable file commands)
  string(REGEX MATCH "\"command\": [^\n]* -c [^\n]*/${file}" command "${commands}")
  if(NOT command)
    message(FATAL_ERROR "no command compiles ${file}")
  endif()
  string(REGEX MATCHALL " -O[^ ]*" levels "${command}")
  list(POP_BACK levels last)
  set(${variable} "${last}" PARENT_SCOPE)
endfunction()

# expect(TYPE LEVEL SAYS ARGUMENTS...): checks a configuration with build type TYPE. LEVEL must be the last
# level of optimisation in the command that compiles the library (empty: none). CMake must print SAYS (empty:
# no message of ours).
function(expect type level says)
  file(REMOVE_RECURSE ${SCRATCH})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${ROOT}/tests/consumer/subproject -B ${SCRATCH}
    -D ROOT=${ROOT} -D CMAKE_CXX_COMPILER=${CXX} -D GPULBVH_CUDA=OFF -D CMAKE_BUILD_TYPE=${type} ${ARGN}
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    message(FATAL_ERROR "build type '${type}' ${ARGN}: ${said}")
  endif()
  if(says AND NOT said MATCHES "${says}")
    message(FATAL_ERROR "build type '${type}' ${ARGN}: CMake does not say '${says}' but: ${said}")
  elseif(NOT says AND said MATCHES "optimise|checked")
    message(FATAL_ERROR "build type '${type}' ${ARGN}: CMake prints an unexpected message: ${said}")
  endif()
  file(READ ${SCRATCH}/compile_commands.json commands)
  last_level(ours simd/avx2.cpp "${commands}")
  last_level(games game.cpp "${commands}")
  if(NOT "${ours}" STREQUAL "${level}")
    message(FATAL_ERROR "build type '${type}' ${ARGN}: the library is compiled with '${ours}', not '${level}'")
  elseif(says AND NOT "${games}" STREQUAL "")
    message(FATAL_ERROR "build type '${type}' ${ARGN}: the game is compiled with '${games}'")
  endif()
endfunction()

set(only_ours "build type '[A-Za-z]*' does not optimise; only this library's files are compiled with -O2")
expect("" " -O2" "${only_ours}")
expect(Debug " -O2" "${only_ours}")
expect(Release " -O3" "")
expect(MinSizeRel " -Os" "")
expect(Debug " -O0" "" "-D CMAKE_CXX_FLAGS=-O0")
expect("" " -O3" "" "-D CMAKE_CXX_FLAGS=-O3")
expect(Debug "" "each step is checked" "-D GPULBVH_CHECKED=ON")

# A project with this one as a subdirectory builds the adapter, but not the libraries of dbvt/.
execute_process(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH} -- -n RESULT_VARIABLE failed OUTPUT_VARIABLE built)
if(failed OR NOT built MATCHES "integration" OR built MATCHES "dbvt/preload")
  message(FATAL_ERROR "a game should build integration/, and nothing of dbvt/: ${built}")
endif()

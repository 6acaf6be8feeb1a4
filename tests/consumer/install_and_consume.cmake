# SPDX-License-Identifier: Zlib
# Installs GpuLbvhBroadphase to a prefix under SCRATCH, and renames the prefix to a name with a space.
# Builds the programs of this folder against it, as users do with CMake and with pkg-config. Some programs
# must run. The others must not compile, and a message must say why. Installs the build folder BUILD. Without
# BUILD, it first builds a shared library with the Bullet in BULLET.
# Usage: cmake -D ROOT=... -D SCRATCH=... -D CONFIG=... -D VERSION=... -D CXX=... -D DOUBLE=ON|OFF (-D BUILD=... | -D BULLET=...)
#   -P install_and_consume.cmake
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "failed (${failed}): ${ARGN}")
  endif()
endfunction()

# Requires that `target` does not compile, and that the compiler prints `sentence` but no error in a template.
function(refused target sentence)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH}/build --config ${CONFIG} --target ${target}
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT failed OR NOT said MATCHES "${sentence}" OR said MATCHES "template")
    message(FATAL_ERROR "${target}: must fail with '${sentence}' and without templates, not with: ${said}")
  endif()
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
if(NOT BUILD)
  set(BUILD ${SCRATCH}/library)
  step(${CMAKE_COMMAND} -S ${ROOT} -B ${BUILD} -D BUILD_SHARED_LIBS=ON -D GPULBVH_DOUBLE=${DOUBLE}
       -D Bullet_ROOT=${BULLET}
       -D GPULBVH_CUDA=OFF -D GPULBVH_SAMPLES=OFF -D GPULBVH_TESTS=OFF -D CMAKE_BUILD_TYPE=${CONFIG})
  step(${CMAKE_COMMAND} --build ${BUILD} --config ${CONFIG})
  step(${CMAKE_CURRENT_LIST_DIR}/shared_symbols.sh ${BUILD})
endif()
step(${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${SCRATCH}/prefix)
file(RENAME ${SCRATCH}/prefix "${SCRATCH}/moved prefix")
step(${CMAKE_COMMAND} -S ${ROOT}/tests/consumer -B ${SCRATCH}/build -D CMAKE_BUILD_TYPE=${CONFIG}
     "-D CMAKE_PREFIX_PATH=${SCRATCH}/moved prefix" -D HELLO=${ROOT}/samples/hello.cpp -D DOUBLE=${DOUBLE})
step(${CMAKE_COMMAND} --build ${SCRATCH}/build --config ${CONFIG})
foreach(program core adapter hello)
  step(${SCRATCH}/build/${program})
endforeach()
step(${SCRATCH}/build/every_way ours)
if(EXISTS "${SCRATCH}/moved prefix/bin/gpulbvh-run")
  step("${SCRATCH}/moved prefix/bin/gpulbvh-run" ${SCRATCH}/build/every_way_plain ours)
endif()

refused(core_cxx14 "needs C\\+\\+17: compile with -std=c\\+\\+17")
refused(adapter_cxx14 "needs C\\+\\+17: compile with -std=c\\+\\+17")
refused(other_precision "this GpuLbvhBroadphase was built for Bullet with (single|double) precision")

# Requests only the core, and then a component that does not exist.
set(configure_alone ${CMAKE_COMMAND} -S ${ROOT}/tests/consumer -B ${SCRATCH}/alone
  -D CMAKE_BUILD_TYPE=${CONFIG} "-D CMAKE_PREFIX_PATH=${SCRATCH}/moved prefix")
step(${configure_alone} -D COMPONENTS=broadphase)
step(${CMAKE_COMMAND} --build ${SCRATCH}/alone --config ${CONFIG})
step(${SCRATCH}/alone/core)
execute_process(COMMAND ${configure_alone} -D COMPONENTS=wings
  RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
string(REGEX REPLACE "[ \n]+" " " said "${said}")
if(NOT failed OR NOT said MATCHES "has no component 'wings'")
  message(FATAL_ERROR "wings: ${said}")
endif()

find_program(PKG_CONFIG pkg-config)
if(NOT PKG_CONFIG)
  message(STATUS "left out: the test of pkg-config, which is not installed")
  return()
endif()
file(GLOB_RECURSE pc_file "${SCRATCH}/moved prefix/*/gpulbvh_bullet.pc")
get_filename_component(pc_files "${pc_file}" DIRECTORY)
step(${CMAKE_COMMAND} -E env CXX=${CXX}
  ${CMAKE_CURRENT_LIST_DIR}/pkg_config.sh "${pc_files}" ${ROOT} ${VERSION})

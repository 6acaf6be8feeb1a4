# SPDX-License-Identifier: Zlib
# Tests which Bullet FindBulletPhysics.cmake finds, and its message if it finds no usable Bullet.
# Usage: cmake -D MODULES=.../cmake -D SCRATCH=FOLDER [-D REAL=FOLDER] -P find_bullet.cmake
# Builds small fakes of Bullet. With REAL, it uses a real Bullet, and makes only the checks that hold for any
# Bullet. The source is in REAL/source, and the installations are in REAL/single and REAL/double, named after
# the precision.
cmake_policy(VERSION 3.22)
if(DEFINED REAL AND NOT REAL)
  message("skipped: GPULBVH_BULLET_TREES names no Bullet from source")
  return()
endif()
file(REMOVE_RECURSE ${SCRATCH})
set(fake ${CMAKE_CURRENT_LIST_DIR}/bullet3)

function(install_fake prefix)
  set(build ${SCRATCH}/fake)
  file(REMOVE_RECURSE ${build})
  set(configuring -S ${fake} -B ${build} -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_INSTALL_PREFIX=${prefix} ${ARGN})
  foreach(arguments "${configuring}" "--build;${build}" "--install;${build}")
    execute_process(COMMAND ${CMAKE_COMMAND} ${arguments} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endfunction()

# Configures the program with ARGN: NAME=VALUE is a cache variable, $NAME=VALUE an environment variable.
# Uses the build folder of the previous check, to test that nothing in its cache matters.
# Sets `failed` and `said` (output on one line).
function(configure)
  set(environment --unset=Bullet_ROOT --unset=CMAKE_PREFIX_PATH)
  set(arguments -U Bullet* -U BULLET3 -U CMAKE_PREFIX_PATH -U SYSTEM -U USE_DOUBLE_PRECISION
    -U CMAKE_BUILD_TYPE)
  foreach(argument IN LISTS ARGN)
    if(argument MATCHES "^[$](.*)")
      list(APPEND environment "${CMAKE_MATCH_1}")
    else()
      list(APPEND arguments -D "${argument}")
    endif()
  endforeach()
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${environment} ${CMAKE_COMMAND} --no-warn-unused-cli
      -S ${CMAKE_CURRENT_FUNCTION_LIST_DIR} -B ${SCRATCH}/build -D MODULES=${MODULES}
      -D BUILD_UNIT_TESTS=OFF -D BUILD_CPU_DEMOS=OFF -D BUILD_BULLET2_DEMOS=OFF -D BUILD_EXTRAS=OFF
      ${arguments}
    OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
  if(said MATCHES "Warning[^\n]*FindBulletPhysics")
    message(SEND_ERROR "a warning: ${said}")
  endif()
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  set(said "${said}" PARENT_SCOPE)
  set(failed "${failed}" PARENT_SCOPE)
endfunction()

# Checks that with the arguments ARGN, headers and all libraries are found in the folder `tree`, and that a
# program links.
function(finds tree)
  configure(${ARGN})
  set(wanted "")
  foreach(name LinearMath Collision Dynamics)
    list(APPEND wanted "${name} INTERFACE_INCLUDE_DIRECTORIES ${tree}/")
    if(tree STREQUAL source)
      list(APPEND wanted "${name} IMPORTED_LOCATION_RELEASE --")
    else()
      list(APPEND wanted "${name} IMPORTED_LOCATION_RELEASE ${tree}/")
    endif()
  endforeach()
  foreach(text IN LISTS wanted)
    string(FIND "${said}" "${text}" at)
    if(failed OR at EQUAL -1)
      message(SEND_ERROR "${ARGN}: no '${text}' in: ${said}")
      return()
    endif()
  endforeach()
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH}/build --target program
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    message(SEND_ERROR "${ARGN}: does not build: ${said}")
  endif()
  message(STATUS "finds ${tree} given ${ARGN}")
endfunction()

# Checks that with the arguments ARGN, a program of CMAKE_BUILD_TYPE `configuration` links
# `folder`/libNAME`postfix`.a, and no other library of Bullet.
function(links folder postfix configuration)
  configure(CMAKE_BUILD_TYPE=${configuration} ${ARGN})
  if(NOT failed)
    execute_process(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH}/build --target program --clean-first --verbose
      RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  endif()
  string(REGEX MATCHALL "[^ \n]*/lib(LinearMath|Bullet)[^ \n]*" linked "${said}")
  list(REMOVE_DUPLICATES linked)
  set(wanted "")
  foreach(part BulletDynamics BulletCollision LinearMath)
    list(APPEND wanted ${folder}/lib${part}${postfix}.a)
  endforeach()
  if(failed OR NOT linked STREQUAL wanted)
    message(SEND_ERROR "${configuration} ${ARGN}: not '${wanted}' but '${linked}': ${said}")
    return()
  endif()
  message(STATUS "links ${folder}/lib*${postfix}.a in ${configuration} given ${ARGN}")
endfunction()

# Checks that with the arguments ARGN, configuring fails with a message that matches `sentence`.
function(says sentence)
  configure(${ARGN})
  if(NOT failed OR NOT said MATCHES "${sentence}")
    message(SEND_ERROR "${ARGN}: must fail with '${sentence}', not with: ${said}")
  endif()
  message(STATUS "says ${sentence} given ${ARGN}")
endfunction()

if(REAL)
  set(source ${REAL}/source)
  set(single ${REAL}/single)
  set(double ${REAL}/double)
else()
  set(source ${fake})
  set(single ${SCRATCH}/single)
  set(double ${SCRATCH}/double)
  install_fake(${single})
  install_fake(${double} -D USE_DOUBLE_PRECISION=ON)
endif()
set(config lib/cmake/bullet)
set(for_double BulletPhysics_DOUBLE=ON)

# In each line the first place takes precedence over the second, which is the first place of the next line.
# Debian's Bullet may be installed, too.
finds(${single} Bullet_ROOT=${single} $Bullet_ROOT=${double})
finds(${single} $Bullet_ROOT=${single} Bullet_DIR=${double}/${config})
finds(${single} Bullet_DIR=${single}/${config} BULLET3=${source} USE_DOUBLE_PRECISION=ON)
finds(${source} BULLET3=${source} CMAKE_PREFIX_PATH=${double})
finds(${single} CMAKE_PREFIX_PATH=${single} $CMAKE_PREFIX_PATH=${double})
finds(${single} $CMAKE_PREFIX_PATH=${single} BulletPhysics_HINT=${double})
finds(${single} BulletPhysics_HINT=${single} SYSTEM=${double})
finds(${single} SYSTEM=${single})
# The lines below find a Bullet with double precision in these places.
finds(${double} Bullet_ROOT=${double} ${for_double})
finds(${double} Bullet_DIR=${double}/${config} ${for_double})
finds(${source} BULLET3=${source} USE_DOUBLE_PRECISION=ON ${for_double})
finds(${double} CMAKE_PREFIX_PATH=${double} ${for_double})

set(is_double "has double precision, and GpuLbvhBroadphase is for single: .* -D GPULBVH_DOUBLE=ON")
set(is_single "has single precision, and GpuLbvhBroadphase is for double: .* -D GPULBVH_DOUBLE=OFF")
says("${double}/include/bullet ${is_double}" Bullet_ROOT=${double})
says("${single}/include/bullet ${is_single}" Bullet_ROOT=${single} ${for_double})
says("${source}/src ${is_double}" BULLET3=${source} USE_DOUBLE_PRECISION=ON)
says("${source}/src ${is_single}" BULLET3=${source} ${for_double})
says("Bullet_ROOT .${SCRATCH}/nowhere. does not name an installed Bullet" Bullet_ROOT=${SCRATCH}/nowhere)
says("Bullet_DIR .${SCRATCH}/nowhere. does not name an installed Bullet" Bullet_DIR=${SCRATCH}/nowhere)
says("${source}. does not name an installed Bullet, but Bullet's sources: install .* -D Bullet_ROOT=PREFIX, or call add_subdirectory"
  Bullet_ROOT=${source})

if(REAL)
  return()
endif()

# Tests other layouts: Debian's, with both precisions in one prefix; a prefix without BulletConfig.cmake;
# folders that only BulletConfig.cmake names; and a prefix that was moved.
set(debian ${SCRATCH}/debian)
install_fake(${debian})
install_fake(${debian} -D USE_DOUBLE_PRECISION=ON -D CMAKE_RELEASE_POSTFIX=-float64)
finds(${debian} Bullet_ROOT=${debian})
finds(${debian} Bullet_ROOT=${debian} ${for_double})
file(REMOVE_RECURSE ${debian}/lib/cmake)
finds(${debian} CMAKE_PREFIX_PATH=${debian} ${for_double})
install_fake(${SCRATCH}/odd -D INCLUDE_INSTALL_DIR=headers -D LIB_DESTINATION=libraries)
finds(${SCRATCH}/odd CMAKE_PREFIX_PATH=${SCRATCH}/odd)
file(RENAME ${SCRATCH}/odd ${SCRATCH}/moved)
finds(${SCRATCH}/moved Bullet_DIR=${SCRATCH}/moved/${config})

# Writes a BulletConfig.cmake that names the headers but not the libraries. vcpkg has such a file in the
# prefix. Conan has it outside the prefix, and with a list of folders.
function(write_config folder headers root)
  file(WRITE ${folder}/BulletConfig.cmake
    "set(BULLET_INCLUDE_DIR ${headers})\nset(BULLET_LIBRARY_DIRS)\nset(BULLET_ROOT_DIR ${root})\n")
endfunction()
write_config(${SCRATCH}/generators "${single}/include;${single}/include/bullet" ${single})
finds(${single} CMAKE_PREFIX_PATH=${SCRATCH}/generators BulletPhysics_HINT=${double})

# Tests Release and Debug libraries. Every configuration other than Debug uses the Release libraries. If
# only one of the two is installed, all configurations use it.
set(debug -D CMAKE_BUILD_TYPE=Debug -D CMAKE_DEBUG_POSTFIX=_Debug)
set(vcpkg ${SCRATCH}/vcpkg)
install_fake(${vcpkg})
install_fake(${vcpkg} ${debug} -D LIB_DESTINATION=debug/lib)
file(REMOVE_RECURSE ${vcpkg}/lib/cmake)
write_config(${vcpkg}/share/bullet3 ${vcpkg}/include/bullet ${vcpkg})
links(${vcpkg}/lib "" Release CMAKE_PREFIX_PATH=${vcpkg})
links(${vcpkg}/lib "" RelWithDebInfo CMAKE_PREFIX_PATH=${vcpkg})
links(${vcpkg}/debug/lib _Debug Debug CMAKE_PREFIX_PATH=${vcpkg})
file(REMOVE_RECURSE ${vcpkg}/share)
links(${vcpkg}/debug/lib _Debug Debug Bullet_ROOT=${vcpkg})
foreach(part LinearMath BulletCollision BulletDynamics)  # without postfix, as outside Windows
  file(RENAME ${vcpkg}/debug/lib/lib${part}_Debug.a ${vcpkg}/debug/lib/lib${part}.a)
endforeach()
links(${vcpkg}/debug/lib "" Debug Bullet_ROOT=${vcpkg})
file(REMOVE ${vcpkg}/debug/lib/libBulletCollision.a)
links(${vcpkg}/lib "" Debug Bullet_ROOT=${vcpkg})
install_fake(${SCRATCH}/debug ${debug})
links(${SCRATCH}/debug/lib _Debug Debug Bullet_ROOT=${SCRATCH}/debug)
links(${SCRATCH}/debug/lib _Debug Release Bullet_ROOT=${SCRATCH}/debug)
install_fake(${SCRATCH}/debug)
links(${SCRATCH}/debug/lib _Debug Debug Bullet_ROOT=${SCRATCH}/debug)
links(${SCRATCH}/debug/lib "" Release Bullet_ROOT=${SCRATCH}/debug)
install_fake(${SCRATCH}/debug ${debug} -D USE_DOUBLE_PRECISION=ON)
says("${SCRATCH}/debug/include/bullet ${is_double}" Bullet_ROOT=${SCRATCH}/debug)
install_fake(${SCRATCH}/symbols -D CMAKE_BUILD_TYPE=RelWithDebInfo -D CMAKE_RELWITHDEBINFO_POSTFIX=_RelWithDebugInfo)
links(${SCRATCH}/symbols/lib _RelWithDebugInfo Release Bullet_ROOT=${SCRATCH}/symbols)

# A Bullet with missing parts is not completed with parts of another Bullet.
file(COPY ${single}/include DESTINATION ${SCRATCH}/headers)
says("${SCRATCH}/headers/include/bullet.* has no library LinearMath in ${SCRATCH}/headers/lib"
  CMAKE_PREFIX_PATH=${SCRATCH}/headers BulletPhysics_HINT=${single})
file(COPY ${single}/ DESTINATION ${SCRATCH}/mixed)
file(REMOVE ${SCRATCH}/mixed/lib/libBulletDynamics.a)  # COPY would not replace a file with the same time stamp
file(COPY ${double}/lib/libBulletDynamics.a DESTINATION ${SCRATCH}/mixed/lib)
says("${SCRATCH}/mixed/lib/libBulletDynamics.a does not link with the headers in ${SCRATCH}/mixed"
  Bullet_ROOT=${SCRATCH}/mixed)
# Without any Bullet, the message says how to install one on every system.
says("Debian, Ubuntu: apt-get install libbullet-dev Fedora: dnf install bullet-devel Arch: pacman -S bullet \
Homebrew: brew install bullet vcpkg: vcpkg install bullet3, -D CMAKE_TOOLCHAIN_FILE=[^ ]*vcpkg.cmake \
Conan: bullet3 with [^:]* from source: [^:]* -D Bullet_ROOT=PREFIX" SYSTEM=${SCRATCH}/nowhere)

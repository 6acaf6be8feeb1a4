# SPDX-License-Identifier: Zlib
# Finds Bullet with the precision that BulletPhysics_DOUBLE selects, and defines these targets:
#   Bullet::LinearMath, Bullet::Collision, Bullet::Dynamics, and, if these libraries exist,
#   Bullet::SoftBody, Bullet::WorldImporter (on Debian: libbullet-extras-dev)
# Uses the first Bullet that it finds in this order:
#   1. Bullet_ROOT, a variable of CMake or of the environment: the prefix of an installed Bullet
#   2. Bullet_DIR: the folder of a BulletConfig.cmake
#   3. the targets of an earlier add_subdirectory(bullet3)
#   4. the prefixes in CMAKE_PREFIX_PATH, first CMake's variable and then the environment's
#   5. BulletPhysics_HINT: the Bullet that an installed GpuLbvhBroadphase was built with
#   6. the prefixes of the system
# At each location, BulletConfig.cmake says where the files are. Without that file, the usual folders are
# searched. Headers and libraries are from the same Bullet. If that Bullet is incomplete or has the other
# precision, that is an error, and no other Bullet is tried. A Debug build uses the Debug libraries if
# there are any, as in vcpkg's Bullet. This file is installed with the package, for find_dependency.
cmake_policy(VERSION 3.22)  # The program's project may require an older version of CMake.
if(TARGET Bullet::Dynamics)  # found before
  set(BulletPhysics_FOUND TRUE)
  return()
endif()

# Looks for Bullet at `place`, which is a prefix or the folder of a BulletConfig.cmake. Sets
# `library_dirs`, and `headers`, which is false if there are no headers.
function(_bullet_look_at place)
  find_package(_bullet_config QUIET CONFIG NAMES Bullet PATHS "${place}" NO_DEFAULT_PATH)
  if(_bullet_config_FOUND)
    if(NOT BULLET_LIBRARY_DIRS)  # The files of vcpkg and Conan name a valid prefix, but no library folder.
      set(BULLET_LIBRARY_DIRS "${BULLET_ROOT_DIR}/lib")
    endif()
    set(headers "")
    # The file names the prefix that Bullet was built for, but Bullet may have been moved. So the folders
    # above the file are searched first.
    set(up "${_bullet_config_DIR}/..")
    foreach(prefix "${up}" "${up}/.." "${up}/../.." "${up}/../../.." "${BULLET_ROOT_DIR}")
      foreach(folder IN LISTS BULLET_INCLUDE_DIR)  # Conan's file names two folders.
        get_filename_component(folder "${folder}" ABSOLUTE BASE_DIR "${prefix}")
        if(NOT headers AND EXISTS "${folder}/LinearMath/btScalar.h")
          set(headers "${folder}")
          get_filename_component(library_dirs "${BULLET_LIBRARY_DIRS}" ABSOLUTE BASE_DIR "${prefix}")
        endif()
      endforeach()
    endforeach()
  else()
    unset(headers)  # otherwise find_path would not search
    find_path(headers LinearMath/btScalar.h PATHS "${place}"
      PATH_SUFFIXES include/bullet include NO_DEFAULT_PATH NO_CACHE)
    set(library_dirs "${place}/lib/${CMAKE_LIBRARY_ARCHITECTURE}" "${place}/lib" "${place}/lib64")
  endif()
  unset(_bullet_config_DIR CACHE)
  set(headers "${headers}" PARENT_SCOPE)
  set(library_dirs "${library_dirs}" PARENT_SCOPE)
endfunction()

# Chooses a Bullet in the order at the top of this file. Sets `headers`, which is empty if there is no
# Bullet, and `library_dirs`. Sets `place` to the element of `places` where Bullet is. Sets `said_by` to
# the variable that names these places, or to an empty string.
function(_bullet_choose)
  file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" environment)
  set(places ${CMAKE_PREFIX_PATH} ${environment} ${BulletPhysics_HINT} ${CMAKE_SYSTEM_PREFIX_PATH})
  set(said_by "")
  if(Bullet_ROOT OR DEFINED ENV{Bullet_ROOT})
    set(said_by Bullet_ROOT)
    set(places ${Bullet_ROOT} $ENV{Bullet_ROOT})
  elseif(Bullet_DIR)
    set(said_by Bullet_DIR)
    set(places ${Bullet_DIR})
  elseif(TARGET BulletDynamics)
    get_target_property(folder BulletDynamics SOURCE_DIR)
    get_filename_component(folder "${folder}" DIRECTORY)
    if(EXISTS "${folder}/LinearMath/btScalar.h")  # false for an imported target
      set(headers "${folder}" PARENT_SCOPE)
      return()
    endif()
  endif()
  set(said_by "${said_by}" PARENT_SCOPE)
  set(places "${places}" PARENT_SCOPE)
  foreach(place IN LISTS places)
    _bullet_look_at("${place}")
    if(headers)
      set(headers "${headers}" PARENT_SCOPE)
      set(library_dirs "${library_dirs}" PARENT_SCOPE)
      set(place "${place}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# For each part of Bullet that exists, sets `Release_PART` and `Debug_PART` to a file or to a target of
# this build. Sets `configurations` to the configurations in which Bullet is complete. If there is no such
# configuration, sets `missing` to a missing part.
function(_bullet_libraries)
  set(suffix "")
  if(wanted STREQUAL "double" AND library_dirs)
    find_library(debian LinearMath-float64 PATHS ${library_dirs} NO_DEFAULT_PATH NO_CACHE)
    if(debian)  # Debian has both precisions in one folder.
      set(suffix -float64)
    endif()
  endif()
  set(debug_dirs ${library_dirs})
  list(TRANSFORM debug_dirs APPEND /../debug/lib)  # vcpkg's folder
  set(configurations Release Debug)
  foreach(part LinearMath BulletCollision BulletDynamics BulletSoftBody BulletFileLoader
          BulletWorldImporter)
    unset(Release)  # otherwise find_library would not search
    unset(Debug)
    set(name ${part}${suffix})
    if(library_dirs)
      # On Windows Bullet appends the configuration's name to a library's name, except for Release.
      find_library(Release NAMES ${name} ${name}_RelWithDebugInfo ${name}_MinsizeRel
        PATHS ${library_dirs} NO_DEFAULT_PATH NO_CACHE)
      find_library(Debug NAMES ${name}_Debug ${name} PATHS ${debug_dirs} NO_DEFAULT_PATH NO_CACHE)
      find_library(Debug NAMES ${name}_Debug PATHS ${library_dirs} NO_DEFAULT_PATH NO_CACHE)
    elseif(TARGET ${part} AND EXISTS "${headers}/${part}")
      set(Release ${part})
    endif()
    foreach(configuration Release Debug)
      set(${configuration}_${part} "${${configuration}}" PARENT_SCOPE)
      if(NOT ${configuration} AND part MATCHES "^(LinearMath|BulletCollision|BulletDynamics)$")
        list(REMOVE_ITEM configurations ${configuration})
      endif()
    endforeach()
    if(NOT configurations)
      set(missing ${part} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(configurations "${configurations}" PARENT_SCOPE)
endfunction()

# Sets `precision` to the libraries' precision, single or double. If the libraries link with the headers
# in neither precision, `precision` stays empty, and `output` is the linker's message.
function(_bullet_measure configuration)
  if(TARGET ${Release_BulletDynamics})  # The library is not built yet, so this reads its folder's definitions.
    get_target_property(folder BulletDynamics SOURCE_DIR)
    get_directory_property(definitions DIRECTORY "${folder}" COMPILE_DEFINITIONS)
    set(precision single PARENT_SCOPE)
    if("BT_USE_DOUBLE_PRECISION" IN_LIST definitions)
      set(precision double PARENT_SCOPE)
    endif()
    return()
  endif()
  set(CMAKE_TRY_COMPILE_CONFIGURATION ${configuration})  # MSVC cannot link libraries of another configuration.
  foreach(candidate ${wanted} ${unwanted})
    set(definitions -DSCALAR_BYTES=4)
    if(candidate STREQUAL "double")
      set(definitions -DSCALAR_BYTES=8 -DBT_USE_DOUBLE_PRECISION)
    endif()
    try_compile(_bullet_links "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/bullet_precision"
      SOURCES "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/bullet_precision.cpp"
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${headers}"
      COMPILE_DEFINITIONS ${definitions}
      LINK_LIBRARIES ${${configuration}_BulletDynamics} ${${configuration}_BulletCollision}
        ${${configuration}_LinearMath}
      OUTPUT_VARIABLE output
      CXX_STANDARD 17)
    if(_bullet_links)
      set(precision ${candidate} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Makes Bullet::`name` from the libraries of `part`, if there are any.
function(_bullet_target name part dependencies)
  foreach(configuration IN LISTS configurations)
    set(library "${${configuration}_${part}}")
    if(TARGET "${library}")
      add_library(Bullet::${name} INTERFACE IMPORTED)
      set_property(TARGET Bullet::${name} PROPERTY INTERFACE_LINK_LIBRARIES ${part} ${dependencies})
    elseif(library)
      if(NOT TARGET Bullet::${name})
        add_library(Bullet::${name} UNKNOWN IMPORTED)
      endif()
      # A program's other configurations use the libraries of the first of `configurations`.
      string(TOUPPER ${configuration} upper)
      set_property(TARGET Bullet::${name} APPEND PROPERTY IMPORTED_CONFIGURATIONS ${upper})
      set_target_properties(Bullet::${name} PROPERTIES
        IMPORTED_LOCATION_${upper} "${library}" INTERFACE_LINK_LIBRARIES "${dependencies}")
    endif()
  endforeach()
  if(TARGET Bullet::${name})
    set_target_properties(Bullet::${name} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${headers}"
      INTERFACE_COMPILE_DEFINITIONS "$<$<BOOL:${BulletPhysics_DOUBLE}>:BT_USE_DOUBLE_PRECISION>")
  endif()
endfunction()

# Makes the targets. Sets BulletPhysics_PLACE, which an installed package uses as BulletPhysics_HINT.
# Sets BulletPhysics_SUMMARY to a text for a message. If no Bullet can be used, sets BulletPhysics_REASON
# instead.
function(_bullet_find)
  foreach(result headers library_dirs place places said_by missing)
    set(${result} "")
  endforeach()
  set(wanted single)
  set(unwanted double)
  set(switch ON)
  if(BulletPhysics_DOUBLE)
    set(wanted double)
    set(unwanted single)
    set(switch OFF)
  endif()

  _bullet_choose()
  if(NOT headers AND said_by)
    set(advice "")
    foreach(place IN LISTS places)
      if(EXISTS "${place}/src/LinearMath/btScalar.h")
        set(advice ", but Bullet's sources: install a build of them to a PREFIX (cmake --install) and pass \
-D Bullet_ROOT=PREFIX, or call add_subdirectory(${place}) before GpuLbvhBroadphase's")
      endif()
    endforeach()
    set(BulletPhysics_REASON
      "${said_by} (${places}) does not name an installed Bullet${advice}" PARENT_SCOPE)
    return()
  elseif(NOT headers)
    set(BulletPhysics_REASON
      "no prefix has a Bullet. To get one:
   Debian, Ubuntu: apt-get install libbullet-dev
   Fedora:         dnf install bullet-devel
   Arch:           pacman -S bullet
   Homebrew:       brew install bullet
   vcpkg:          vcpkg install bullet3, -D CMAKE_TOOLCHAIN_FILE=VCPKG/scripts/buildsystems/vcpkg.cmake
   Conan:          bullet3 with the generators CMakeDeps and CMakeToolchain
   from source:    cmake --install its build to a PREFIX, -D Bullet_ROOT=PREFIX" PARENT_SCOPE)
    return()
  endif()

  _bullet_libraries()
  if(missing)
    set(BulletPhysics_REASON
      "the Bullet of ${headers} has no library ${missing} in ${library_dirs}" PARENT_SCOPE)
    return()
  endif()

  set(libraries "")
  foreach(configuration IN LISTS configurations)
    set(library "${${configuration}_BulletDynamics}")
    string(APPEND libraries "${library}, ")
    set(precision "")
    _bullet_measure(${configuration})
    if(precision STREQUAL unwanted)
      set(BulletPhysics_REASON
        "the Bullet of ${headers} has ${unwanted} precision, and GpuLbvhBroadphase is for ${wanted}: \
configure it with -D GPULBVH_DOUBLE=${switch}, or name another Bullet with -D Bullet_ROOT=PREFIX"
        PARENT_SCOPE)
      return()
    elseif(NOT precision)
      set(BulletPhysics_REASON
        "${library} does not link with the headers in ${headers}: ${output}" PARENT_SCOPE)
      return()
    endif()
  endforeach()

  _bullet_target(LinearMath LinearMath "")
  _bullet_target(Collision BulletCollision Bullet::LinearMath)
  _bullet_target(Dynamics BulletDynamics Bullet::Collision)
  _bullet_target(SoftBody BulletSoftBody Bullet::Dynamics)
  if(EXISTS "${headers}/BulletWorldImporter")
    _bullet_target(FileLoader BulletFileLoader Bullet::LinearMath)
    _bullet_target(WorldImporter BulletWorldImporter "Bullet::Dynamics;Bullet::FileLoader")
  endif()
  set(BulletPhysics_PLACE "${place}" PARENT_SCOPE)
  set(BulletPhysics_SUMMARY
    "${headers}, ${libraries}${precision} precision" PARENT_SCOPE)
endfunction()

set(BulletPhysics_REASON "")
set(BulletPhysics_SUMMARY "")
_bullet_find()
# The next function would split the text at each ; into several arguments.
string(REPLACE ";" ", " BulletPhysics_REASON "${BulletPhysics_REASON}")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(BulletPhysics
  REQUIRED_VARS BulletPhysics_SUMMARY REASON_FAILURE_MESSAGE "${BulletPhysics_REASON}")

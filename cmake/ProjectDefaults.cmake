# SPDX-License-Identifier: Zlib
# Sets the build type, the optimisation, the output folders and the warnings. Only a top-level build changes global
# settings.
if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT MSVC)
  # Without this, a * b + c is rounded once or twice, depending on the processor, and results differ.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
endif()
if(MINGW)
  # With MinGW, GCC assumes that an inline function leaves the same registers unchanged in every file. This can
  # be wrong, because the linker may choose another file's copy of the function (GCC bug 115049).
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-ipa-ra>)
endif()

# A game's debug build needs a fast broad phase, too. So if no option sets the optimisation level, for
# example without a build type, this project's files are compiled with -O2.
if(GPULBVH_CHECKED)
  message(STATUS "GPULBVH_CHECKED: each step is checked, which is slow")
else()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" _type)
  set(_unoptimised 1)
  if(CMAKE_CONFIGURATION_TYPES)
    set(_type DEBUG)
    set(_unoptimised $<CONFIG:Debug>)
  endif()
  if(NOT " ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${_type}}" MATCHES " [-/]O")
    add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,${_unoptimised}>:-O2>)
    message(STATUS "GpuLbvhBroadphase: the build type '${CMAKE_BUILD_TYPE}' does not optimise; only this library's files are compiled with -O2")
  endif()
endif()

# Options for code that is slow to compile and need not run fast.
set(gpulbvh_quick_options $<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>>:-O1>)
function(gpulbvh_compile_quickly)  # SOURCES... are files in this folder
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${gpulbvh_quick_options})
endfunction()

# Most of the compile time of a small file is spent on headers. So a release build compiles each of FOLDERS as one
# file. Other builds, which clang-tidy and debuggers use, compile each file separately.
function(gpulbvh_compile_together target)  # FOLDERS... have sources of this target
  if(NOT CMAKE_BUILD_TYPE STREQUAL Release)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(folder ${ARGN})
    set(files ${sources})
    list(FILTER files INCLUDE REGEX "^${folder}/[A-Za-z_]+[.]cpp$")
    set_property(SOURCE ${files} PROPERTY UNITY_GROUP ${folder})
  endforeach()
endfunction()

# Warnings are private to our targets, and never exported.
add_library(gpulbvh_warnings INTERFACE)
if(MSVC)
  # nvcc would mistake options that begin with a slash for input files.
  target_compile_options(gpulbvh_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:/W4>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${GPULBVH_WERROR}>>:/WX>)
else()
  target_compile_options(gpulbvh_warnings INTERFACE
    # Clang warns that std::stable_sort in GCC 12's library uses a deprecated function.
    $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>
    $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${GPULBVH_WERROR}>>:-Werror>)
endif()

# SPDX-License-Identifier: Zlib
# Build type, output folders and warnings. Only a top-level build changes global settings.
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
  # Else a * b + c is rounded once or twice, as the processor has it, and scenes and variants differ.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
endif()

# For code in which no time is spent, but by the compiler.
set(gpulbvh_quick_options $<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>>:-O1>)
function(gpulbvh_compile_quickly)  # SOURCES... of this folder
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${gpulbvh_quick_options})
endfunction()

# Private to our targets; never exported.
add_library(gpulbvh_warnings INTERFACE)
if(MSVC)
  # nvcc, which knows no options that begin with a slash, would take them for input files.
  target_compile_options(gpulbvh_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:/W4>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${GPULBVH_WERROR}>>:/WX>)
else()
  target_compile_options(gpulbvh_warnings INTERFACE
    # Clang finds GCC 12's own std::stable_sort deprecated.
    $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>
    $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${GPULBVH_WERROR}>>:-Werror>)
endif()

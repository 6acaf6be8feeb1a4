# SPDX-License-Identifier: Zlib
# Sets GPULBVH_HAS_CUDA. If CUDA is off, prints why. For one machine, -D CMAKE_CUDA_ARCHITECTURES=native
# is enough and compiles faster.
set(GPULBVH_HAS_CUDA OFF)
if(NOT GPULBVH_CUDA)
  message(STATUS "CUDA backend: off (GPULBVH_CUDA)")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER AND NOT GPULBVH_CUDA STREQUAL "AUTO")
  message(FATAL_ERROR "GPULBVH_CUDA=${GPULBVH_CUDA}, but no CUDA compiler was found; with AUTO the build continues without CUDA")
endif()
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "CUDA backend: off, because no CUDA compiler was found; the CUDA Toolkit has one: \
https://developer.nvidia.com/cuda-downloads")
  return()
endif()

# Chooses machine code for each major GPU generation since Turing, if the compiler supports it. The code is
# for the first architecture of a generation. The generation's other GPUs can run it, except Jetson Orin.
# PTX for the oldest architecture is included, too. Drivers can compile it for GPUs for which there is no
# machine code. PTX for the newest architecture is for future GPUs. docs/gpus.md says which driver reads
# which PTX.
function(gpulbvh_architectures result)
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-code
    OUTPUT_VARIABLE known ERROR_QUIET)
  set(majors)
  foreach(major RANGE 80 200 10)
    if(known MATCHES "sm_${major}[ \r\n]")
      list(APPEND majors ${major})
    endif()
  endforeach()
  set(architectures 75)  # machine code and PTX
  if(majors)
    list(POP_BACK majors newest)
    list(TRANSFORM majors APPEND -real)
    list(APPEND architectures ${majors} ${newest})
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$" AND known MATCHES "sm_87[ \r\n]")
    list(APPEND architectures 87-real)
  endif()
  set(${result} ${architectures} PARENT_SCOPE)
endfunction()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  if(GPULBVH_INTERPRETER)
    set(CMAKE_CUDA_ARCHITECTURES 90)  # the interpreter runs PTX, and reads register counts from machine code
  else()
    gpulbvh_architectures(CMAKE_CUDA_ARCHITECTURES)
  endif()
endif()
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake versions before about 3.26 do not know this option of newer nvcc versions.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit REQUIRED)
if(GPULBVH_INTERPRETER AND NOT CUDAToolkit_VERSION_MAJOR EQUAL 13)
  message(STATUS "CUDA tests: the interpreter is not used, because it supports only CUDA 13")
  set(GPULBVH_INTERPRETER OFF)
endif()
# By default the CUDA runtime is static, so that programs start on machines without CUDA, and report that
# CUDA is missing.
set(GPULBVH_CUDART CUDA::cudart_static)
if(GPULBVH_INTERPRETER)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # so that tests can replace it with the interpreter
  list(PREPEND CMAKE_BUILD_RPATH "$ORIGIN/../lib")  # for gpu_bundle.sh --from, which packs this build
endif()
if(CMAKE_CUDA_RUNTIME_LIBRARY STREQUAL "Shared")
  set(GPULBVH_CUDART CUDA::cudart)
  set_property(SOURCE broadphase/cuda/step.cu APPEND PROPERTY
    COMPILE_DEFINITIONS GPULBVH_SHARED_CUDART)
endif()
set(GPULBVH_HAS_CUDA ON)
message(STATUS "CUDA backend: on (${CMAKE_CUDA_COMPILER_VERSION}, ${CMAKE_CUDA_ARCHITECTURES})")
if(GPULBVH_INTERPRETER)
  message(STATUS "CUDA tests: on the interpreter")
endif()

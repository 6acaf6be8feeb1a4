# Sets GPULBVH_HAS_CUDA and says why it is off. Architectures: every generation from Turing on, and
# PTX for those to come; -D CMAKE_CUDA_ARCHITECTURES=native is enough, and quick, for one machine.
set(GPULBVH_HAS_CUDA OFF)
if(NOT GPULBVH_CUDA)
  message(STATUS "CUDA space: off (GPULBVH_CUDA)")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "CUDA space: off, no CUDA compiler found; building for the host")
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real 100-real 120)
endif()
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake before 3.26 or so does not know it of newer nvcc.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit REQUIRED)
# Static by default: the binary runs where there is no CUDA at all, and says so.
set(GPULBVH_CUDART CUDA::cudart_static)
if(CMAKE_CUDA_RUNTIME_LIBRARY STREQUAL "Shared")
  set(GPULBVH_CUDART CUDA::cudart)
endif()
set(GPULBVH_HAS_CUDA ON)
message(STATUS "CUDA space: on (${CMAKE_CUDA_COMPILER_VERSION}, ${CMAKE_CUDA_ARCHITECTURES})")

# SPDX-License-Identifier: Zlib
# Writes GpuLbvhBroadphasePrecision.h, which stops the compilation of programs that use the other
# precision.
set(bytes 4)
set(precision single)
set(advice "compile the program without BT_USE_DOUBLE_PRECISION, or build the library with -D GPULBVH_DOUBLE=ON")
if(GPULBVH_DOUBLE)
  set(bytes 8)
  set(precision double)
  set(advice "compile the program with -DBT_USE_DOUBLE_PRECISION, or build the library with -D GPULBVH_DOUBLE=OFF")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/GpuLbvhBroadphasePrecision.h.in
  ${PROJECT_BINARY_DIR}/include/GpuLbvhBroadphasePrecision.h @ONLY)

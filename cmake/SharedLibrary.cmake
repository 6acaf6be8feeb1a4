# SPDX-License-Identifier: Zlib
# Sets the versions and the visible symbols of the libraries, if BUILD_SHARED_LIBS makes them shared.
set(_hidden hidden)
if(BUILD_SHARED_LIBS AND (GPULBVH_TESTS OR GPULBVH_SAMPLES))
  if(WIN32)
    message(FATAL_ERROR "Tests and samples use functions that shared libraries hide. On Windows build "
      "shared libraries with -D GPULBVH_TESTS=OFF -D GPULBVH_SAMPLES=OFF")
  endif()
  message(STATUS "Shared libraries: all symbols are exported, for tests and samples; "
    "-D GPULBVH_TESTS=OFF -D GPULBVH_SAMPLES=OFF hides all symbols that are not public")
  set(_hidden default)
endif()

# Sets the library's version, and hides all symbols that broadphase/export.h does not export. Before 1.0 a minor
# version may break the ABI, so the SOVERSION contains the minor version.
function(gpulbvh_as_shared_library target)
  set_target_properties(${target} PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    CXX_VISIBILITY_PRESET ${_hidden}
    CUDA_VISIBILITY_PRESET ${_hidden}
    VISIBILITY_INLINES_HIDDEN ON)
  if(BUILD_SHARED_LIBS)
    target_compile_definitions(${target} PUBLIC GPULBVH_SHARED)
  endif()
endfunction()

# SPDX-License-Identifier: Zlib
# What concerns the libraries where BUILD_SHARED_LIBS makes shared ones of them.
set(_hidden hidden)
if(BUILD_SHARED_LIBS AND (GPULBVH_TESTS OR GPULBVH_SAMPLES))
  if(WIN32)
    message(FATAL_ERROR "Tests and samples use what shared libraries hide. On Windows build those "
      "with -D GPULBVH_TESTS=OFF -D GPULBVH_SAMPLES=OFF")
  endif()
  message(STATUS "Shared libraries: they show everything, for tests and samples; "
    "-D GPULBVH_TESTS=OFF -D GPULBVH_SAMPLES=OFF hides what is not public")
  set(_hidden default)
endif()

# Names it by the version, and hides what broadphase/export.h does not show. Before 1.0 a minor
# version may break the ABI.
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

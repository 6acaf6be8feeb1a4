# SPDX-License-Identifier: Zlib
# Install and export: find_package(GpuLbvhBroadphase CONFIG) gives GpuLbvhBroadphase::broadphase and,
# if it was built, GpuLbvhBroadphase::bullet; pkg-config knows them as gpulbvh_broadphase and
# gpulbvh_bullet. Shared libraries are components of their own, the rest is `development`.
include(CMakePackageConfigHelpers)

set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/GpuLbvhBroadphase)
set(_headers ${CMAKE_INSTALL_INCLUDEDIR}/GpuLbvhBroadphase)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

install(FILES ${GPULBVH_CORE_HEADERS} DESTINATION ${_headers}/broadphase)
install(FILES ${GPULBVH_WAYS_IN} DESTINATION ${_headers}/include/gpulbvh)
install(FILES ${GPULBVH_FORMER_QUERY_HEADERS} DESTINATION ${_headers}/broadphase/query)
if(GPULBVH_BULLET)
  install(FILES ${GPULBVH_BULLET_HEADERS} ${PROJECT_BINARY_DIR}/include/GpuLbvhBroadphasePrecision.h
    DESTINATION ${_headers}/integration)
  install(FILES ${GPULBVH_BULLET_WAYS_IN} DESTINATION ${_headers}/include)
  list(TRANSFORM GPULBVH_BULLET_WAYS_IN REPLACE include/ include/gpulbvh/ OUTPUT_VARIABLE _ways_in)
  install(FILES ${_ways_in} DESTINATION ${_headers}/include/gpulbvh)
  install(FILES cmake/FindBulletPhysics.cmake cmake/bullet_precision.cpp DESTINATION ${_package})
endif()

# A shared adapter finds the core beside it, and a Bullet where the system does not look.
set(_beside "$ORIGIN")
if(APPLE)
  set(_beside "@loader_path")
endif()

# A file of targets for each component, so that the core alone does not ask for Bullet.
function(_install_component component)
  if(NOT DEFINED CMAKE_INSTALL_RPATH)
    set_target_properties(gpulbvh_${component} PROPERTIES
      INSTALL_RPATH "${_beside}" INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
  install(TARGETS gpulbvh_${component} EXPORT GpuLbvhBroadphase_${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
      COMPONENT ${component} NAMELINK_COMPONENT development
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
  install(EXPORT GpuLbvhBroadphase_${component} NAMESPACE GpuLbvhBroadphase:: DESTINATION ${_package})
endfunction()
_install_component(broadphase)
if(GPULBVH_BULLET)
  _install_component(bullet)
endif()

# A shared library has the CUDA runtime within it.
set(_static_with_cuda OFF)
if(GPULBVH_HAS_CUDA AND NOT BUILD_SHARED_LIBS)
  set(_static_with_cuda ON)
endif()
configure_package_config_file(cmake/GpuLbvhBroadphaseConfig.cmake.in
  ${PROJECT_BINARY_DIR}/GpuLbvhBroadphaseConfig.cmake INSTALL_DESTINATION ${_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/GpuLbvhBroadphaseConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/GpuLbvhBroadphaseConfig.cmake
  ${PROJECT_BINARY_DIR}/GpuLbvhBroadphaseConfigVersion.cmake
  DESTINATION ${_package})
include(PkgConfig)
include(Packages)

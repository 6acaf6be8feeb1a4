# SPDX-License-Identifier: Zlib
# Installs and exports the library. find_package(GpuLbvhBroadphase CONFIG) defines
# GpuLbvhBroadphase::broadphase and, if they were built, GpuLbvhBroadphase::bullet and
# GpuLbvhBroadphase::dbvt. pkg-config knows these libraries as gpulbvh_broadphase, gpulbvh_bullet and
# gpulbvh_dbvt. Each shared library is a component of the installation. The component `dbvt` is
# gpulbvh-run with its libraries; `development` is the rest.
include(CMakePackageConfigHelpers)

set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/GpuLbvhBroadphase)
set(_headers ${CMAKE_INSTALL_INCLUDEDIR}/GpuLbvhBroadphase)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

install(FILES ${GPULBVH_CORE_HEADERS} DESTINATION ${_headers}/broadphase)
install(FILES ${GPULBVH_BLOCK_HEADERS} DESTINATION ${_headers}/broadphase/host)
install(FILES ${GPULBVH_WAYS_IN} DESTINATION ${_headers}/include/gpulbvh)
install(FILES ${GPULBVH_FORMER_QUERY_HEADERS} DESTINATION ${_headers}/broadphase/query)
if(GPULBVH_BULLET)
  install(FILES ${GPULBVH_BULLET_HEADERS} ${PROJECT_BINARY_DIR}/include/GpuLbvhBroadphasePrecision.h
    DESTINATION ${_headers}/integration)
  install(FILES ${GPULBVH_BULLET_WAYS_IN} DESTINATION ${_headers}/include)
  list(TRANSFORM GPULBVH_BULLET_WAYS_IN REPLACE include/ include/gpulbvh/ OUTPUT_VARIABLE _ways_in)
  install(FILES ${_ways_in} include/gpulbvh/dropin.h DESTINATION ${_headers}/include/gpulbvh)
  install(FILES dbvt/btDbvtBroadphase.cpp dbvt/members.h DESTINATION ${_headers}/dbvt)
  install(TARGETS gpulbvh_dbvt_source EXPORT GpuLbvhBroadphase_bullet)
  install(FILES $<TARGET_OBJECTS:gpulbvh_dbvt_object> DESTINATION ${CMAKE_INSTALL_LIBDIR}/gpulbvh
    RENAME btDbvtBroadphase.o)
  install(FILES cmake/FindBulletPhysics.cmake cmake/bullet_precision.cpp DESTINATION ${_package})
endif()

# A shared adapter finds the core in its own folder. It also finds a Bullet that is not in a system
# folder.
set(_beside "$ORIGIN")
if(APPLE)
  set(_beside "@loader_path")
endif()

# Each component has its own file of targets, so that programs which use only the core do not need
# Bullet.
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

if(TARGET gpulbvh_dbvt)  # has its own folder, because programs are not linked with it
  install(TARGETS gpulbvh_dbvt gpulbvh_dbvt-float gpulbvh_dbvt-double
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gpulbvh COMPONENT dbvt)
  if(TARGET gpulbvh-report)  # gpulbvh-run --report starts it
    install(TARGETS gpulbvh-report DESTINATION ${CMAKE_INSTALL_LIBDIR}/gpulbvh COMPONENT dbvt)
  endif()
  install(PROGRAMS ${PROJECT_BINARY_DIR}/dbvt/installed/gpulbvh-run
    DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT dbvt)
  # The manual page exists only if the target `man` was built.
  install(FILES ${PROJECT_BINARY_DIR}/man/gpulbvh-run.1.gz
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT dbvt OPTIONAL)
endif()

# Programs need the CUDA Toolkit only if the library is static. A shared library contains the CUDA runtime.
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

# SPDX-License-Identifier: Zlib
# Writes and installs gpulbvh_broadphase.pc, gpulbvh_bullet.pc and gpulbvh_dbvt.pc for pkg-config. The
# .pc files name installed files relative to ${pcfiledir}, so the prefix may be moved. They name Bullet's
# files by the paths at which this build found them.
set(_pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Some distributions set absolute folders, which a .pc file cannot name by a relative path.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  message(STATUS "pkg-config: no files, because CMAKE_INSTALL_LIBDIR or CMAKE_INSTALL_INCLUDEDIR is absolute")
  return()
endif()
string(REGEX REPLACE "[^/]+" ".." up "${_pkgconfig}")

# Uses the caller's variables description, requires, cflags and libs. own_requires and own_libs are for
# the library itself; programs need them only if the library is static. link_name is the linker's
# argument for the library, if that argument is not -lNAME.
function(_install_pkgconfig name)
  if(NOT link_name)
    set(link_name -l${name})
  endif()
  if(BUILD_SHARED_LIBS)
    string(APPEND cflags " -DGPULBVH_SHARED")
  else()
    string(APPEND requires " ${own_requires}")
    string(APPEND libs " ${own_libs}")
    set(own_requires "")
    set(own_libs "")
  endif()
  set(written ${PROJECT_BINARY_DIR}/pkgconfig)
  configure_file(cmake/gpulbvh.pc.in ${written}/${name}.pc.in @ONLY)
  # Each configuration has its own folder, because Debug may use other libraries of Bullet.
  file(GENERATE OUTPUT ${written}/$<CONFIG>/${name}.pc INPUT ${written}/${name}.pc.in)
  install(FILES ${written}/$<CONFIG>/${name}.pc DESTINATION ${_pkgconfig})
endfunction()

set(description "${PROJECT_DESCRIPTION}: boxes to pairs")
set(requires "")
set(cflags "")
set(libs "")
set(own_requires tbb)
set(own_libs -pthread)
if(GPULBVH_HAS_CUDA AND GPULBVH_CUDART STREQUAL "CUDA::cudart_static")
  set(own_libs "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt -pthread")
elseif(GPULBVH_HAS_CUDA)
  set(own_libs "-L${CUDAToolkit_LIBRARY_DIR} -lcudart -pthread")
endif()
_install_pkgconfig(gpulbvh_broadphase)

if(GPULBVH_BULLET)
  set(description "${PROJECT_DESCRIPTION}: the adapter to Bullet")
  set(requires "gpulbvh_broadphase = ${PROJECT_VERSION}")
  set(own_requires "")
  set(own_libs "")
  get_target_property(_type Bullet::Dynamics TYPE)
  if(_type STREQUAL "INTERFACE_LIBRARY")  # a Bullet built with this project has the same prefix
    set(cflags "-I\${prefix}/include/bullet")
    set(libs "-lBulletDynamics -lBulletCollision -lLinearMath")
  else()
    set(_headers_of_bullet $<TARGET_PROPERTY:Bullet::Dynamics,INTERFACE_INCLUDE_DIRECTORIES>)
    set(cflags "-I\"$<JOIN:$<REMOVE_DUPLICATES:${_headers_of_bullet}>,\" -I\">\"")
    foreach(_part Dynamics Collision LinearMath)
      string(APPEND libs " \"$<TARGET_LINKER_FILE:Bullet::${_part}>\"")
    endforeach()
  endif()
  if(GPULBVH_DOUBLE)
    string(APPEND cflags " -DBT_USE_DOUBLE_PRECISION")
  endif()
  _install_pkgconfig(gpulbvh_bullet)

  set(description "${PROJECT_DESCRIPTION}: in the place of btDbvtBroadphase")
  set(requires "gpulbvh_bullet = ${PROJECT_VERSION}")
  set(cflags "")
  set(libs "")
  set(link_name "\${libdir}/gpulbvh/btDbvtBroadphase.o")
  _install_pkgconfig(gpulbvh_dbvt)
endif()

# SPDX-License-Identifier: Zlib
# Writes and installs gpulbvh_broadphase.pc and gpulbvh_bullet.pc, for pkg-config. They find what is
# installed beside them by ${pcfiledir}, so the prefix may move; and Bullet where this build had it.
set(_pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Some distributions set absolute folders. Nothing of those can move.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  message(STATUS "pkg-config: no files, for CMAKE_INSTALL_LIBDIR or CMAKE_INSTALL_INCLUDEDIR is absolute")
  return()
endif()
string(REGEX REPLACE "[^/]+" ".." up "${_pkgconfig}")

# Of the caller's variables: description, requires, cflags, libs; own_requires and own_libs are what
# the library needs itself, so that programs name them only if it is static.
function(_install_pkgconfig name)
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
  # A folder for each configuration, for Debug may have other libraries of Bullet.
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
  if(_type STREQUAL "INTERFACE_LIBRARY")  # a Bullet of this build: it is installed to the same prefix
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
endif()

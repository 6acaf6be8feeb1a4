# SPDX-License-Identifier: Zlib
# Configures Debian packages: one for each shared library, one for development, and gpulbvh-run. The name
# of a library's package contains the library's version. Without BUILD_SHARED_LIBS the libraries are
# static, and are in the development package.
if(NOT CPACK_DEBIAN_PACKAGE_MAINTAINER)
  message(FATAL_ERROR "Debian packages need a maintainer: -D CPACK_DEBIAN_PACKAGE_MAINTAINER='NAME <ADDRESS>'")
endif()
set(CMAKE_SKIP_INSTALL_RPATH ON)  # for the root folder's targets: /usr/lib needs no rpath

set(CPACK_COMPONENTS_ALL development)
if(BUILD_SHARED_LIBS)
  list(APPEND CPACK_COMPONENTS_ALL broadphase)
  if(GPULBVH_BULLET)
    list(APPEND CPACK_COMPONENTS_ALL bullet)
  endif()
endif()
if(TARGET gpulbvh_dbvt)
  list(APPEND CPACK_COMPONENTS_ALL dbvt)
  set_target_properties(gpulbvh_dbvt-float gpulbvh_dbvt-double PROPERTIES INSTALL_RPATH "")
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# Debian's rules for package names: a library's package has the library's name and version, and the name
# of the development package ends with -dev.
get_target_property(_soversion gpulbvh_broadphase SOVERSION)
set(CPACK_DEBIAN_BROADPHASE_PACKAGE_NAME libgpulbvh-broadphase${_soversion})
set(CPACK_DEBIAN_BULLET_PACKAGE_NAME libgpulbvh-bullet${_soversion})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libgpulbvh-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_BROADPHASE_DESCRIPTION
"Finds all overlapping pairs of axis-aligned boxes, exactly and in the same
order on any number of threads. This package has the library that does so,
without Bullet.")
set(CPACK_COMPONENT_BULLET_DESCRIPTION
"A btBroadphaseInterface that finds its pairs with GpuLbvhBroadphase. This
package has the library that connects the two.")
set(CPACK_DEBIAN_DBVT_PACKAGE_NAME gpulbvh-run)
set(CPACK_DEBIAN_DBVT_PACKAGE_SECTION utils)
set(CPACK_COMPONENT_DBVT_DESCRIPTION
"Runs a program that uses Bullet with GpuLbvhBroadphase in place of its broad
phase btDbvtBroadphase, and measures both. The program is not changed.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"Headers, and what CMake and pkg-config need to find the libraries.")

# The development package depends on the same version of the libraries, and on the packages that its
# headers and CMake files need.
set(_same "(= ${PROJECT_VERSION})")
set(_needs libtbb-dev)
if(GPULBVH_BULLET)
  list(APPEND _needs libbullet-dev)
endif()
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
foreach(_component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${_component} _COMPONENT)
  set(_name ${CPACK_DEBIAN_${_COMPONENT}_PACKAGE_NAME})
  if(NOT _component MATCHES "^(development|dbvt)$")
    list(APPEND _needs "${_name} ${_same}")
    set(CPACK_DEBIAN_${_COMPONENT}_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
  endif()
  # Each package has a copyright file and a changelog in Debian's format.
  set(_doc ${PROJECT_BINARY_DIR}/debian/${_name})
  string(TIMESTAMP _date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${_doc}/changelog "gpulbvh (${PROJECT_VERSION}) unstable; urgency=medium

  * Version ${PROJECT_VERSION}. CHANGELOG.md of the project says what is new.

 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${_date}
")
  execute_process(COMMAND gzip -9nf ${_doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
  configure_file(LICENSE ${_doc}/copyright COPYONLY)
  install(DIRECTORY ${_doc} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc COMPONENT ${_component})
endforeach()
list(JOIN _needs ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
if(BUILD_SHARED_LIBS)
  set(CPACK_DEBIAN_DBVT_PACKAGE_DEPENDS "${CPACK_DEBIAN_BROADPHASE_PACKAGE_NAME} ${_same}")
endif()
set(CPACK_DEBIAN_BULLET_PACKAGE_DEPENDS "${CPACK_DEBIAN_BROADPHASE_PACKAGE_NAME} ${_same}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})

# SPDX-License-Identifier: Zlib
# Debian packages: one of each shared library, by its name and version, and one for development.
# Without BUILD_SHARED_LIBS the latter alone, with static libraries.
if(NOT CPACK_DEBIAN_PACKAGE_MAINTAINER)
  message(FATAL_ERROR "Who maintains these packages? Say it with -D CPACK_DEBIAN_PACKAGE_MAINTAINER=...")
endif()
set(CMAKE_SKIP_INSTALL_RPATH ON)  # libraries of /usr/lib find each other

set(CPACK_COMPONENTS_ALL development)
if(BUILD_SHARED_LIBS)
  list(APPEND CPACK_COMPONENTS_ALL broadphase)
  if(GPULBVH_BULLET)
    list(APPEND CPACK_COMPONENTS_ALL bullet)
  endif()
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# The names that Debian's rules give: of a library its own and its version, for development -dev.
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
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"Headers, and what CMake and pkg-config need to find the libraries.")

# Whoever develops gets the same version of the libraries, and what the headers and CMake ask for.
set(_same "(= ${PROJECT_VERSION})")
set(_needs libtbb-dev)
if(GPULBVH_BULLET)
  list(APPEND _needs libbullet-dev)
endif()
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
foreach(_component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${_component} _COMPONENT)
  set(_name ${CPACK_DEBIAN_${_COMPONENT}_PACKAGE_NAME})
  if(NOT _component STREQUAL "development")
    list(APPEND _needs "${_name} ${_same}")
    set(CPACK_DEBIAN_${_COMPONENT}_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
  endif()
  # Each has its copyright and a changelog in Debian's form.
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
set(CPACK_DEBIAN_BULLET_PACKAGE_DEPENDS "${CPACK_DEBIAN_BROADPHASE_PACKAGE_NAME} ${_same}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})

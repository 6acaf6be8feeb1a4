# SPDX-License-Identifier: Zlib
# The target `doc` writes the API reference to doc/html in the build folder. The target `man` writes the
# programs' manual pages to man/. Neither target is part of `all`. Without Doxygen `doc` only says what is missing.
# Without help2man there is no target `man`.
find_program(DOXYGEN doxygen)
find_program(HELP2MAN help2man)

list(JOIN GPULBVH_PUBLIC_HEADERS " " _headers)
if(DOXYGEN)
  add_custom_target(doc
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/doc
    COMMAND ${CMAKE_COMMAND} -E env VERSION=${PROJECT_VERSION} OUTPUT=${PROJECT_BINARY_DIR}/doc
      "HEADERS=${_headers}" ${DOXYGEN} docs/Doxyfile
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
else()
  add_custom_target(doc
    COMMAND ${CMAKE_COMMAND} -E echo "The API reference needs Doxygen: install it, then configure again."
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()

# Makes manual pages for the programs that users of the library may run. help2man runs each program with
# --help.
if(HELP2MAN AND NOT CMAKE_CROSSCOMPILING)
  set(_pages)
  if(TARGET gpulbvh_dbvt)
    set(_page ${PROJECT_BINARY_DIR}/man/gpulbvh-run.1)
    add_custom_command(OUTPUT ${_page} DEPENDS dbvt/gpulbvh-run.in cmake/man_page.sh gpulbvh_dbvt
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
      COMMAND ${PROJECT_SOURCE_DIR}/cmake/man_page.sh ${PROJECT_BINARY_DIR}/bin/gpulbvh-run ${_page}
      COMMAND gzip -9nkf ${_page}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
    list(APPEND _pages ${_page})
  endif()
  foreach(_program rigid_bodies replay many_worlds make_scene viewer)
    if(TARGET ${_program})
      set(_page ${PROJECT_BINARY_DIR}/man/${_program}.1)
      add_custom_command(OUTPUT ${_page} DEPENDS ${_program} cmake/man_page.sh
        COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
        COMMAND ${PROJECT_SOURCE_DIR}/cmake/man_page.sh $<TARGET_FILE:${_program}> ${_page}
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
      list(APPEND _pages ${_page})
    endif()
  endforeach()
  add_custom_target(man DEPENDS ${_pages})
endif()

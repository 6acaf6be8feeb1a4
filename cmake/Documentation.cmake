# SPDX-License-Identifier: Zlib
# The targets `doc`, the API reference in doc/html of the build folder, and `man`, pages of the programs
# in man/. Neither is part of `all`. Each is there where its tool is.
find_program(DOXYGEN doxygen)
find_program(HELP2MAN help2man)

list(JOIN GPULBVH_PUBLIC_HEADERS " " _headers)
if(DOXYGEN)
  add_custom_target(doc
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/doc
    COMMAND ${CMAKE_COMMAND} -E env VERSION=${PROJECT_VERSION} OUTPUT=${PROJECT_BINARY_DIR}/doc
      "HEADERS=${_headers}" ${DOXYGEN} docs/Doxyfile
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
endif()

# Of the programs that are of use beside the library; help2man runs them.
if(HELP2MAN AND NOT CMAKE_CROSSCOMPILING)
  set(_pages)
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

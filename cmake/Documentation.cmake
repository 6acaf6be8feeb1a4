# The target `doc`, the API reference in doc/html of the build folder. It is not part of `all`, and there
# where Doxygen is.
find_program(DOXYGEN doxygen)

list(JOIN GPULBVH_PUBLIC_HEADERS " " _headers)
if(DOXYGEN)
  add_custom_target(doc
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/doc
    COMMAND ${CMAKE_COMMAND} -E env VERSION=${PROJECT_VERSION} OUTPUT=${PROJECT_BINARY_DIR}/doc
      "HEADERS=${_headers}" ${DOXYGEN} docs/Doxyfile
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
endif()

# SPDX-License-Identifier: Zlib
# Writes the commit of SOURCE to the header OUTPUT, if the commit has changed. Each build runs this script,
# so that a report names the commit that was built.
find_package(Git QUIET)
set(revision "unknown")
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} describe --always --tags --dirty --abbrev=10
    OUTPUT_VARIABLE described RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(status EQUAL 0)
    set(revision "${described}")
  endif()
endif()
set(text "#pragma once\n#define GPULBVH_REVISION \"${revision}\"\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()

# Installs BUILD to a prefix under SCRATCH, then configures, builds and runs the programs of SOURCE.
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "failed (${failed}): ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
step(${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${SCRATCH}/prefix)
step(${CMAKE_COMMAND} -S ${SOURCE} -B ${SCRATCH}/build -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix
     -D CMAKE_BUILD_TYPE=${CONFIG})
step(${CMAKE_COMMAND} --build ${SCRATCH}/build --config ${CONFIG})
foreach(program core adapter)
  step(${SCRATCH}/build/${program})
endforeach()
